"""Charge laws of training loops other than `descend`, evaluated after each step."""

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

__all__ = ["ChargeLaw"]


class ChargeLaw:
    """The statistics of `training.charge_statistics`, computed from the weights before and after each step.

    Attributes:
        symmetries: The symmetries whose charges are tracked.
        declared: The declared settings, in the form in which records store them.
        dimensions: Names of the axes of each variable.
        needs_gradient: Whether the laws need the gradient of each step.
        largest_momentum: The largest β.
        steps: Number of steps so far.

    Args:
        symmetries: The symmetries whose charges are tracked.
        declared: The arguments of `training.charge_statistics`.
        weights: θ(0), a tree of NumPy arrays of one type.

    Raises:
        InputError: If `training.charge_statistics` does not accept an argument.
    """

    def __init__(self, symmetries: Sequence[Charge], declared: Mapping[str, Any], weights: Any):
        following = charge_statistics(symmetries, **declared)
        measured, _ = following.pop("measured_charge")
        self.symmetries = tuple(symmetries)
        self.declared = {name: _as_recorded(value) for name, value in declared.items()}
        self._dtype = jax.tree.leaves(weights)[0].dtype
        rule = Declaration.checked(symmetries, **{name: each for name, each in declared.items() if name != "causes"})
        self._static = _Static(rule, self.declared["causes"], measured, tuple(following.items()))
        self.largest_momentum = max(beta for _, beta in rule.momentum)
        self.dimensions = {
            "measured_charge": ("charge",),
            **{name: each.dimensions for name, each in following.items()},
        }
        self.needs_gradient = self.declared["causes"] or declared["optimizer"] == "nesterov"
        self.steps = 0
        with self._precision():
            self._states, self._values = jax.block_until_ready(_started(self._static, weights))

    def values(self) -> dict[str, np.ndarray]:
        """Return the recorded values after the latest step."""
        return {name: np.asarray(value) for name, value in self._values.items()}

    def advance(
        self, before: Any, after: Any, *, gradient: Any, buffers: Any, learning_rate: float, unseen: float
    ) -> None:
        """Update the statistics by one step.

        Args:
            before: Weights before the step.
            after: Weights after the step.
            gradient: Gradient of the loss; None if no statistic needs it.
            buffers: Momentum buffers after the step; None if there are none.
            learning_rate: η.
            unseen: Upper bound on the absolute entries of the updates of all weights outside the symmetries.
        """
        rate, other = (np.asarray(each, self._dtype) for each in (learning_rate, unseen))
        arrays = before, after, gradient, buffers, rate, np.asarray(self.steps), other
        with self._precision():
            # Wait, because the arrays may share memory with tensors that the next step changes in place.
            self._states, self._values = jax.block_until_ready(_advanced(self._static, self._states, *arrays))
        self.steps += 1

    def _precision(self) -> Any:
        return jax.enable_x64(self._dtype == np.float64)


@dataclasses.dataclass(frozen=True)
class _Static:
    """Static argument of the compiled programs; equal for equal symmetries and settings."""

    rule: Declaration
    causes: bool
    measured: Callable[[Any], Any] = dataclasses.field(compare=False)
    statistics: tuple[tuple[str, StepStatistic], ...] = dataclasses.field(compare=False)


@functools.partial(jit, static_argnums=0)
def _started(static: _Static, weights: Any) -> tuple[Any, dict[str, Any]]:
    zero = jax.tree.map(jnp.zeros_like, weights)
    step = _step(weights, zero, zero, None, jnp.ones((), jax.tree.leaves(weights)[0].dtype), jnp.asarray(0), 0.0)

    def trial(function: Callable[[Step], Any]) -> Any:
        return jax.eval_shape(lambda: function(step))

    none = [None] * len(static.statistics)
    states = made_once(static.statistics, none, lambda _, statistic, __: statistic.initial(weights, trial))
    return states, _recorded_values(static, states, weights)


@functools.partial(jit, static_argnums=0)
def _advanced(
    static: _Static,
    states: Any,
    before: Any,
    after: Any,
    gradient: Any,
    buffers: Any,
    rate: Any,
    index: Any,
    unseen: Any,
) -> tuple[Any, dict[str, Any]]:
    update = jax.tree.map(jnp.subtract, after, before)
    step = _step(before, update, gradient, buffers, rate, index, unseen)
    states = made_once(static.statistics, states, lambda _, statistic, state: statistic.advance(state, step))
    values = _recorded_values(static, states, after)
    if "part_pull_rounding" in values:
        values["part_pull_rounding"] += (1 + static.rule.of_parts("momentum", rate.dtype)) * _storage_rounding(
            static, after, rate
        )
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


def _recorded_values(static: _Static, states: Any, weights: Any) -> dict[str, Any]:
    pairs = zip(static.statistics, states, strict=True)
    return {
        "measured_charge": static.measured(weights),
        **{name: jnp.asarray(statistic.value(state)) for (name, statistic), state in pairs},
    }


def _storage_rounding(static: _Static, weights: Any, rate: Any) -> Any:
    """Return the rounding errors of θᵀGd/η, where the updates d are differences of rounded weights."""
    sizes = static.rule.by_part(lambda single: single.size_form(weights))
    unit = float(jnp.finfo(rate.dtype).eps) / 2
    safe = jnp.where(rate == 0, 1, rate) * static.rule.of_parts("rates", rate.dtype)
    return jnp.where(rate == 0, 0, unit * sizes / safe)


def _as_recorded(value: Any) -> Any:
    """Convert a value to the form in which records store it."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {float(number):g}" for name, number in value.items())
    return value if isinstance(value, bool | str | int) else float(value)
