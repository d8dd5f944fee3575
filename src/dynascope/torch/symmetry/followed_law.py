"""The laws of charges, one step after the other, where something else than `descend` makes the steps."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from dynascope.compilation import jit
from dynascope.symmetry import Charge
from dynascope.training import Step, StepStatistic, charge_statistics
from dynascope.training.charge_declaration import Declaration
from dynascope.training.statistics import made_once

__all__ = ["FollowedLaw"]


class FollowedLaw:
    """What `training.charge_statistics` records, of weights before and after each step.

    Attributes:
        symmetries: What is followed.
        declared: What it was called with.
        dimensions: Names of the axes of each of its variables.
        needs_gradient: Whether steps are to come with their gradient.
        largest_momentum: The largest β.
        steps: Number of steps up to now.

    Args:
        symmetries: Those.
        declared: The arguments of `training.charge_statistics`.
        weights: θ(0), a tree of NumPy arrays of one type.

    Raises:
        InputError: Arguments that it does not take.
    """

    def __init__(self, symmetries: Sequence[Charge], declared: Mapping[str, Any], weights: Any):
        following = charge_statistics(symmetries, **declared)
        measured, _ = following.pop("measured_charge")
        self.symmetries = tuple(symmetries)
        self.declared = {name: _written(value) for name, value in declared.items()}
        self._dtype = jax.tree.leaves(weights)[0].dtype
        rule = Declaration.checked(symmetries, **{name: each for name, each in declared.items() if name != "causes"})
        self._own = _Own(rule, self.declared["causes"], measured, tuple(following.items()))
        self.largest_momentum = max(beta for _, beta in rule.momentum)
        self.dimensions = {"measured_charge": ("charge",), **{name: own.dimensions for name, own in following.items()}}
        self.needs_gradient = self.declared["causes"] or declared["optimizer"] == "nesterov"
        self.steps = 0
        with self._precision():
            self._states, self._values = jax.block_until_ready(_started(self._own, weights))

    def values(self) -> dict[str, np.ndarray]:
        """What is recorded after the latest step."""
        return {name: np.asarray(value) for name, value in self._values.items()}

    def advance(
        self, before: Any, after: Any, *, gradient: Any, buffers: Any, learning_rate: float, unseen: float
    ) -> None:
        """Go on by a step.

        Args:
            before: Weights before it.
            after: Weights after it.
            gradient: Of the loss, None where no statistic needs it.
            buffers: Of momentum after the step, None where there are none.
            learning_rate: η.
            unseen: What no entry of the steps of other weights exceeds.
        """
        rate, other = (np.asarray(each, self._dtype) for each in (learning_rate, unseen))
        arrays = before, after, gradient, buffers, rate, np.asarray(self.steps), other
        with self._precision():
            # The arrays may be those of the tensors, which the next step changes in place.
            self._states, self._values = jax.block_until_ready(_advanced(self._own, self._states, *arrays))
        self.steps += 1

    def _precision(self) -> Any:
        return jax.enable_x64(self._dtype == np.float64)


@dataclasses.dataclass(frozen=True)
class _Own:
    """What a program is compiled for; that of the same symmetries and declaration is found again."""

    rule: Declaration
    causes: bool
    measured: Callable[[Any], Any] = dataclasses.field(compare=False)
    statistics: tuple[tuple[str, StepStatistic], ...] = dataclasses.field(compare=False)


@functools.partial(jit, static_argnums=0)
def _started(own: _Own, weights: Any) -> tuple[Any, dict[str, Any]]:
    zero = jax.tree.map(jnp.zeros_like, weights)
    step = _step(weights, zero, zero, None, jnp.ones((), jax.tree.leaves(weights)[0].dtype), jnp.asarray(0), 0.0)

    def trial(function: Callable[[Step], Any]) -> Any:
        return jax.eval_shape(lambda: function(step))

    none = [None] * len(own.statistics)
    states = made_once(own.statistics, none, lambda _, statistic, __: statistic.initial(weights, trial))
    return states, _told(own, states, weights)


@functools.partial(jit, static_argnums=0)
def _advanced(
    own: _Own, states: Any, before: Any, after: Any, gradient: Any, buffers: Any, rate: Any, index: Any, unseen: Any
) -> tuple[Any, dict[str, Any]]:
    update = jax.tree.map(jnp.subtract, after, before)
    step = _step(before, update, gradient, buffers, rate, index, unseen)
    states = made_once(own.statistics, states, lambda _, statistic, state: statistic.advance(state, step))
    values = _told(own, states, after)
    if "part_pull_rounding" in values:
        values["part_pull_rounding"] += (1 + own.rule.of_parts("momentum", rate.dtype)) * _stored(own, after, rate)
    return states, values


def _step(weights: Any, update: Any, gradient: Any, buffers: Any, rate: Any, index: Any, unseen: Any) -> Step:
    return Step(
        index=index,
        weights=weights,
        gradient=gradient,
        update=update,
        optimizer_state=optax.EmptyState() if buffers is None else optax.TraceState(trace=buffers),
        loss=jnp.zeros_like(rate),
        learning_rate=rate,
        batch=None,
        network=lambda: None,
        full_gradient=lambda: None,
        initial_weights=None,
        unseen_update=unseen,
    )


def _told(own: _Own, states: Any, weights: Any) -> dict[str, Any]:
    pairs = zip(own.statistics, states, strict=True)
    return {
        "measured_charge": own.measured(weights),
        **{name: jnp.asarray(statistic.value(state)) for (name, statistic), state in pairs},
    }


def _stored(own: _Own, weights: Any, rate: Any) -> Any:
    """What the last bits of stored weights do to θᵀGd/η: an update that is seen is rounded as the weights are."""
    sizes = own.rule.by_part(lambda single: single.size_form(weights))
    unit = float(jnp.finfo(rate.dtype).eps) / 2
    safe = jnp.where(rate == 0, 1, rate) * own.rule.of_parts("rates", rate.dtype)
    return jnp.where(rate == 0, 0, unit * sizes / safe)


def _written(value: Any) -> Any:
    """A value as records keep it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {float(number):g}" for name, number in value.items())
    return value if isinstance(value, bool | str | int) else float(value)
