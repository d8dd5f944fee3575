"""What is declared of an optimiser and of each parameter, and the charges that then have a law."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from dynascope.errors import InputError
from dynascope.symmetry import Charge
from dynascope.symmetry.step_rules import Rule
from dynascope.symmetry.symmetry_arguments import parameter_paths
from dynascope.theory.sgd import Momentum
from dynascope.training.step import Step
from dynascope.validation import require, require_kind, shown
from dynascope.validation.bounded_scalars import NonNegativeFloat, PositiveFloat

__all__ = ["Declaration", "implied_gradient", "intended_step", "momentum_buffer"]

_EQUAL = 1e-12  # relative difference of numbers that are equal up to rounding
_KINDS = {"rates": PositiveFloat, "weight_decay": NonNegativeFloat, "momentum": Momentum}


@dataclasses.dataclass(frozen=True)
class Declaration:
    """What is declared of the optimiser and of each parameter; equal ones are equal objects.

    With the rate ρη of a parameter, φ = θ/√ρ moves at the rate η, and so a symmetry has a law for Σ θᵀGθ/ρ over its
    parts.

    Attributes:
        symmetries: What is followed.
        optimizer: The rule of the steps.
        rates: ρ by path.
        weight_decay: λ by path.
        momentum: β by path.
        gradient_roundings: Roundings of a gradient.
    """

    symmetries: tuple[Charge, ...]
    optimizer: Rule
    rates: tuple[tuple[str, float], ...]
    weight_decay: tuple[tuple[str, float], ...]
    momentum: tuple[tuple[str, float], ...]
    gradient_roundings: int

    @classmethod
    def checked(
        cls,
        symmetries: Sequence[Charge],
        *,
        optimizer: Rule = "heavy_ball",
        momentum: Any = 0.0,
        weight_decay: Any = 0.0,
        rates: Any = 1.0,
        gradient_roundings: int = 128,
    ) -> Declaration:
        """The declaration of numbers, or mappings from paths to numbers, or `InputError` if there is no law for it."""
        paths = parameter_paths(symmetries)
        given = {"rates": rates, "weight_decay": weight_decay, "momentum": momentum}
        by_path = {name: _by_path(name, value, paths) for name, value in given.items()}
        found = cls(tuple(symmetries), optimizer, **by_path, gradient_roundings=gradient_roundings)
        found._require_alike("momentum", dict(found.momentum), "another momentum")
        if optimizer == "decoupled":
            found._require_alike("weight_decay", found._shrinking, "another decay times rate")
        return found

    @functools.cached_property
    def weighed(self) -> tuple[Charge, ...]:
        """The charges that have a law: parts divided by their ρ."""
        rates = dict(self.rates)
        return self._with_factors(lambda path: 1 / rates[path])

    @functools.cached_property
    def pulled(self) -> tuple[Charge, ...]:
        """Σ λ θᵀGθ of the parts, which decay that is added to gradients puts in their place."""
        return self._with_factors(dict(self.weight_decay).__getitem__)

    @property
    def linear(self) -> np.ndarray:
        """Which charges are sums of weights (charge,)."""
        return self._spread([each.kind == "translation" for each in self.symmetries])

    @functools.cached_property
    def shrinks_alike(self) -> np.ndarray:
        """Of which charges (charge,) all parts have the same ρλ, so that the law needs no recorded ones."""
        alike = [_alike([self._shrinking[path] for path in each.paths]) for each in self.symmetries]
        return self._spread(alike)

    def shrinking(self, dtype: Any) -> Any:
        """ρλ of each charge (charge,), of the first part; one number where all are equal."""
        return _numbers(self._spread([self._shrinking[each.paths[0]] for each in self.symmetries]), dtype)

    def momenta(self, dtype: Any) -> Any:
        """β of each charge, likewise."""
        return _numbers(self._spread([dict(self.momentum)[each.paths[0]] for each in self.symmetries]), dtype)

    def of_parts(self, name: str, dtype: Any) -> Any:
        """The numbers of the name for each part of each charge (charge, part), one number where all are equal."""
        values, most = dict(getattr(self, name)), max(len(each.parts) for each in self.symmetries)
        rows = []
        for each in self.symmetries:
            own = [values[part.path] for part in each.parts]
            rows.append(np.broadcast_to([*own, *own[:1] * (most - len(own))], (each.size, most)))
        return _numbers(np.concatenate(rows), dtype)

    def by_part(self, function: Callable[[Charge], Array]) -> Array:
        """A number for each part of each charge (charge, part), and zeros behind the last part."""
        most = max(len(each.parts) for each in self.symmetries)
        found = []
        for each in self.symmetries:
            values = [function(dataclasses.replace(each, parts=(part,))) for part in each.parts]
            values += [jnp.zeros_like(values[0])] * (most - len(values))
            found.append(jnp.stack(values, axis=-1))
        return jnp.concatenate(found)

    def at_one_rate(self, tree: Any) -> Any:
        """A tree of steps as they were at ρ = 1 for all."""
        rates = {path: rate for path, rate in self.rates if rate != 1}

        def divided(path: Any, leaf: Any) -> Any:
            rate = rates.get(jax.tree_util.keystr(path))
            return leaf if rate is None else leaf / rate

        return jax.tree_util.tree_map_with_path(divided, tree) if rates else tree

    def decayed(self, update: Any, weights: Any, rate: Any) -> Any:
        """Steps without what decoupled decay takes: d + η ρλ θ."""
        shrinking = self._shrinking

        def added(path: Any, step: Any, theta: Any) -> Any:
            return step + rate * shrinking.get(jax.tree_util.keystr(path), 0.0) * theta

        return jax.tree_util.tree_map_with_path(added, update, weights)

    def common_rate(self, learning_rate: Any) -> Any:
        """η of a step, or `InputError` if there are several rates and none were declared."""
        if not np.ndim(learning_rate) and hasattr(learning_rate, "dtype"):
            return learning_rate
        if all(rate == 1 for _, rate in self.rates):
            raise InputError(
                "layers have learning rates of their own, and so their weights laws of their own",
                argument="learning_rate",
                value=str(jax.tree.structure(learning_rate)),
                remedy="declare them as rates of charge_statistics, or give one rate, or a schedule, for all",
            )
        # Of a tree of rates that of the first parameter over its ρ.
        (path, rate), leaves = self.rates[0], jax.tree_util.tree_flatten_with_path(learning_rate)[0]
        return next(jnp.asarray(leaf) for name, leaf in leaves if jax.tree_util.keystr(name) == path) / rate

    @property
    def _shrinking(self) -> dict[str, float]:
        rates = dict(self.rates)
        return {path: decay * rates[path] for path, decay in self.weight_decay}

    def _with_factors(self, factor: Callable[[str], float]) -> tuple[Charge, ...]:
        return tuple(
            each
            if all(factor(path) == 1 for path in each.paths)
            else dataclasses.replace(
                each,
                parts=tuple(dataclasses.replace(part, factor=part.factor * factor(part.path)) for part in each.parts),
            )
            for each in self.symmetries
        )

    def _spread(self, values: Sequence[Any]) -> np.ndarray:
        return np.concatenate([np.full(each.size, value) for each, value in zip(self.symmetries, values, strict=True)])

    def _require_alike(self, name: str, values: Mapping[str, float], what: str) -> None:
        for each in self.symmetries:
            own = [values[path] for path in each.paths]
            require(
                _alike(own),
                f"parameters of {each.kind} {' '.join(each.paths)} have {what} than each other, for which no charge "
                "has a law",
                argument=name,
                value=own,
                remedy="leave this symmetry out",
            )


def momentum_buffer(step: Step) -> Any:
    """The buffer v after a step, if the state of the optimiser holds one that optax calls a trace, and else None."""
    traces = [value for _, value in optax.tree_utils.tree_get_all_with_path(step.optimizer_state, "trace")]
    known = len(traces) == 1 and jax.tree.structure(traces[0]) == jax.tree.structure(step.weights)
    return traces[0] if known else None


def implied_gradient(rule: str, along: Array, held: Array, beta: Any, decayed: Array) -> tuple[Array, Array]:
    """The buffer after a step of a rule, and the gradient behind it, from −d/η, the buffer before, β and λθ."""
    if rule == "nesterov":
        pushed = (along - beta**2 * held) / (1 + beta)
        return beta * held + pushed, pushed - decayed
    if rule == "decoupled":
        return along - decayed, along - decayed - beta * held
    return along, along - beta * held - decayed


def intended_step(rule: str, gradient: Array, held: Array, beta: Any, decayed: Array) -> tuple[Array, Array]:
    """The buffer after a step of a rule, and −d/η, from the gradient, the buffer before, β and λθ."""
    pushed = gradient if rule == "decoupled" else gradient + decayed
    buffer = beta * held + pushed
    if rule == "decoupled":
        return buffer, buffer + decayed
    return buffer, pushed + beta * buffer if rule == "nesterov" else buffer


def _by_path(name: str, value: Any, paths: Sequence[str]) -> tuple[tuple[str, float], ...]:
    if not isinstance(value, Mapping):
        return tuple((path, float(value)) for path in paths)
    missing = [path for path in paths if path not in value]
    unknown = [path for path in value if path not in paths]
    require(
        not missing and not unknown,
        f"{name} has no {missing[0]}"
        if missing
        else f"{name} has {shown((unknown or [''])[0])}, which is no parameter",
        argument=name,
        value=list(map(str, value)),
        remedy="give a number for each parameter of the symmetries, by its path",
    )
    for path in paths:
        require_kind(_KINDS[name], **{name: value[path]})
    return tuple((path, float(value[path])) for path in paths)


def _alike(values: Sequence[float]) -> bool:
    return all(math.isclose(each, values[0], rel_tol=_EQUAL, abs_tol=0.0) for each in values)


def _numbers(values: np.ndarray, dtype: Any) -> Any:
    """One number where all are equal, with which a program has no constants as long as the charges."""
    return float(values.flat[0]) if (values == values.flat[0]).all() else jnp.asarray(values, dtype)
