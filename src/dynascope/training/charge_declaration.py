"""Declared settings of the optimiser for each parameter, and the charges that obey a law under these settings."""

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

_EQUAL = 1e-12  # relative difference below which numbers count as equal
_KINDS = {"rates": PositiveFloat, "weight_decay": NonNegativeFloat, "momentum": Momentum}


@dataclasses.dataclass(frozen=True)
class Declaration:
    """Declared update rule, and the learning rate, weight decay and momentum of each parameter.

    Two declarations are equal if their settings are equal.

    If a parameter has the learning rate ρη, the rescaled parameter φ = θ/√ρ has the learning rate η. The charge that
    obeys a law is therefore Σ θᵀGθ/ρ over the parameters of the symmetry.

    Attributes:
        symmetries: The symmetries whose charges are tracked.
        optimizer: The update rule.
        rates: ρ of each parameter, by path.
        weight_decay: λ of each parameter, by path.
        momentum: β of each parameter, by path.
        gradient_roundings: Number of rounding errors in a gradient, for the bound on their effect.
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
        """Build a declaration from numbers, or from mappings of parameter paths to numbers.

        Raises:
            InputError: If a mapping does not match the parameters, or if the charges obey no law under these settings.
        """
        paths = parameter_paths(symmetries)
        given = {"rates": rates, "weight_decay": weight_decay, "momentum": momentum}
        by_path = {name: _by_path(name, value, paths) for name, value in given.items()}
        found = cls(tuple(symmetries), optimizer, **by_path, gradient_roundings=gradient_roundings)
        found._require_equal("momentum", dict(found.momentum), "momentum")
        if optimizer == "decoupled":
            found._require_equal("weight_decay", found._shrinkage, "weight decay times learning rate")
        return found

    @functools.cached_property
    def weighted(self) -> tuple[Charge, ...]:
        """The symmetries with each part divided by its ρ; the charges of these symmetries obey a law."""
        rates = dict(self.rates)
        return self._with_factors(lambda path: 1 / rates[path])

    @functools.cached_property
    def decay_weighted(self) -> tuple[Charge, ...]:
        """The symmetries with each part multiplied by its λ; weight decay in the gradient adds their charge to θᵀGv."""
        return self._with_factors(dict(self.weight_decay).__getitem__)

    @property
    def linear(self) -> np.ndarray:
        """Whether each charge is a sum of weights, shape (charge,)."""
        return self._spread([each.kind == "translation" for each in self.symmetries])

    @functools.cached_property
    def uniform_decay(self) -> np.ndarray:
        """Whether all parts of a charge have the same ρλ, shape (charge,).

        If ρλ is the same for all parts, the law depends on the charge alone and not on the recorded weights.
        """
        alike = [_all_equal([self._shrinkage[path] for path in each.paths]) for each in self.symmetries]
        return self._spread(alike)

    def shrinkage(self, dtype: Any) -> Any:
        """Return ρλ of the first part of each charge, shape (charge,), or one number if all are equal."""
        return _numbers(self._spread([self._shrinkage[each.paths[0]] for each in self.symmetries]), dtype)

    def momenta(self, dtype: Any) -> Any:
        """Return β of each charge, shape (charge,), or one number if all are equal."""
        return _numbers(self._spread([dict(self.momentum)[each.paths[0]] for each in self.symmetries]), dtype)

    def of_parts(self, name: str, dtype: Any) -> Any:
        """Return a setting for each part of each charge, shape (charge, part), or one number if all are equal."""
        values, most = dict(getattr(self, name)), max(len(each.parts) for each in self.symmetries)
        rows = []
        for each in self.symmetries:
            own = [values[part.path] for part in each.parts]
            rows.append(np.broadcast_to([*own, *own[:1] * (most - len(own))], (each.size, most)))
        return _numbers(np.concatenate(rows), dtype)

    def by_part(self, function: Callable[[Charge], Array]) -> Array:
        """Evaluate a function on each part of each charge, shape (charge, part), padded with zeros."""
        most = max(len(each.parts) for each in self.symmetries)
        found = []
        for each in self.symmetries:
            values = [function(dataclasses.replace(each, parts=(part,))) for part in each.parts]
            values += [jnp.zeros_like(values[0])] * (most - len(values))
            found.append(jnp.stack(values, axis=-1))
        return jnp.concatenate(found)

    def at_one_rate(self, tree: Any) -> Any:
        """Divide the update of each parameter by the ρ of the parameter."""
        rates = {path: rate for path, rate in self.rates if rate != 1}

        def divided(path: Any, leaf: Any) -> Any:
            rate = rates.get(jax.tree_util.keystr(path))
            return leaf if rate is None else leaf / rate

        return jax.tree_util.tree_map_with_path(divided, tree) if rates else tree

    def without_decay(self, update: Any, weights: Any, rate: Any) -> Any:
        """Remove decoupled weight decay from an update: d + η ρλ θ."""
        shrinking = self._shrinkage

        def added(path: Any, step: Any, theta: Any) -> Any:
            return step + rate * shrinking.get(jax.tree_util.keystr(path), 0.0) * theta

        return jax.tree_util.tree_map_with_path(added, update, weights)

    def common_rate(self, learning_rate: Any) -> Any:
        """Return η of a step, the learning rate of a parameter with ρ = 1.

        Raises:
            InputError: If layers have different learning rates but no `rates` were declared.
        """
        if not np.ndim(learning_rate) and hasattr(learning_rate, "dtype"):
            return learning_rate
        if all(rate == 1 for _, rate in self.rates):
            raise InputError(
                "learning_rate differs between layers, but charge_statistics received no rates",
                argument="learning_rate",
                value=str(jax.tree.structure(learning_rate)),
                remedy="pass the rates to charge_statistics, or use one rate or one schedule for all layers",
            )
        # For a tree of rates, η is the rate of the first parameter divided by its ρ.
        (path, rate), leaves = self.rates[0], jax.tree_util.tree_flatten_with_path(learning_rate)[0]
        return next(jnp.asarray(leaf) for name, leaf in leaves if jax.tree_util.keystr(name) == path) / rate

    @property
    def _shrinkage(self) -> dict[str, float]:
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

    def _require_equal(self, name: str, values: Mapping[str, float], what: str) -> None:
        for each in self.symmetries:
            own = [values[path] for path in each.paths]
            require(
                _all_equal(own),
                f"the parameters {', '.join(each.paths)} of a {each.kind} symmetry differ in their {what}, so the "
                "charge obeys no exact law",
                argument=name,
                value=own,
                remedy="omit this symmetry",
            )


def momentum_buffer(step: Step) -> Any:
    """Return the buffer v after a step if the optimiser state contains exactly one optax trace; otherwise None."""
    traces = [value for _, value in optax.tree_utils.tree_get_all_with_path(step.optimizer_state, "trace")]
    known = len(traces) == 1 and jax.tree.structure(traces[0]) == jax.tree.structure(step.weights)
    return traces[0] if known else None


def implied_gradient(rule: str, along: Array, held: Array, beta: Any, decayed: Array) -> tuple[Array, Array]:
    """Infer the gradient of a step from its update under an update rule.

    Args:
        rule: The update rule.
        along: −d/η, where d is the update.
        held: The momentum buffer before the step.
        beta: β.
        decayed: λθ.

    Returns:
        The momentum buffer after the step, and the gradient.
    """
    if rule == "nesterov":
        pushed = (along - beta**2 * held) / (1 + beta)
        return beta * held + pushed, pushed - decayed
    if rule == "decoupled":
        return along - decayed, along - decayed - beta * held
    return along, along - beta * held - decayed


def intended_step(rule: str, gradient: Array, held: Array, beta: Any, decayed: Array) -> tuple[Array, Array]:
    """Compute the step that an update rule makes from a gradient.

    Args:
        rule: The update rule.
        gradient: The gradient.
        held: The momentum buffer before the step.
        beta: β.
        decayed: λθ.

    Returns:
        The momentum buffer after the step, and −d/η, where d is the update.
    """
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
        f"{name} has no value for {missing[0]}"
        if missing
        else f"{name} contains {shown((unknown or [''])[0])}, which is not a parameter of the symmetries",
        argument=name,
        value=list(map(str, value)),
        remedy="give one number for each path of a parameter of the symmetries",
    )
    for path in paths:
        require_kind(_KINDS[name], **{name: value[path]})
    return tuple((path, float(value[path])) for path in paths)


def _all_equal(values: Sequence[float]) -> bool:
    return all(math.isclose(each, values[0], rel_tol=_EQUAL, abs_tol=0.0) for each in values)


def _numbers(values: np.ndarray, dtype: Any) -> Any:
    """Return one number if all are equal, to avoid large constants in compiled programs; otherwise an array."""
    return float(values.flat[0]) if (values == values.flat[0]).all() else jnp.asarray(values, dtype)
