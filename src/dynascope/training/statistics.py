"""Statistics over training steps: sums, maxima, latest values, samples and recursions."""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dynascope.flows.save_times import recorded_steps
from dynascope.training.step import Step
from dynascope.validation import require

__all__ = [
    "Largest",
    "Latest",
    "Recursion",
    "Sampled",
    "StepStatistic",
    "Total",
    "made_once",
]


class StepStatistic(abc.ABC):
    """A quantity that is updated at every step, in constant memory.

    Attributes:
        dimensions: Names of the axes of the recorded value.
    """

    dimensions: Sequence[str]

    def __post_init__(self):
        # Compiled programs are cached by their static arguments, which must be hashable.
        object.__setattr__(self, "dimensions", tuple(self.dimensions))

    @abc.abstractmethod
    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """Return the state before the first step.

        Args:
            weights: θ(0).
            trial: Function that returns the shape and type of the value of a function of a `Step`.
        """

    @abc.abstractmethod
    def advance(self, state: Any, step: Step) -> Any:
        """Return the state after a step."""

    def value(self, state: Any) -> Any:
        """Return the recorded value of a state."""
        return state

    @property
    def rule(self) -> Any:
        """Identifies the recursion of the state: statistics with equal rules share one state."""
        return self


@dataclasses.dataclass(frozen=True)
class Total(StepStatistic):
    """Sum over steps, Σ_{s<t} function(step s), at every recorded step t.

    The summation compensates rounding errors.

    Attributes:
        function: A JAX function of a `Step`.
        dimensions: Names of the axes of its value.

    References:
        A. Neumaier, Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen, ZAMM 54 (1974).

    Example:
        >>> from dynascope.training import Descent, descend
        >>> from dynascope.networks import DeepLinear
        >>> from dynascope.tasks import Task
        >>> from dynascope.training import squared_norms
        >>> moved = {"moved": Total(lambda step: squared_norms(step.update).sum())}
        >>> task, network = Task(np.eye(2), np.eye(2)), DeepLinear((2, 2))
        >>> run = descend(task, network, Descent(learning_rate=0.1, steps=4, save=[0, 4], statistics=moved))
        >>> bool(run["moved"][0] == 0), bool(run["moved"][1] > 0)
        (True, True)
    """

    function: Callable[[Step], Any]
    dimensions: Sequence[str] = ()

    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """Return a sum of zero, without rounding error."""
        shape = trial(self.function)
        dtype = jnp.int32 if shape.dtype == bool else shape.dtype
        return jnp.zeros(shape.shape, dtype), jnp.zeros(shape.shape, dtype)

    def advance(self, state: Any, step: Step) -> Any:
        """Return the updated sum and its accumulated rounding error."""
        sums, lost = state
        value = jnp.asarray(self.function(step), sums.dtype)
        new = sums + value
        rest = jnp.where(jnp.abs(sums) >= jnp.abs(value), (sums - new) + value, (value - new) + sums)
        return new, lost + rest

    def value(self, state: Any) -> Any:
        """Return the sum, corrected for its rounding error."""
        return state[0] + state[1]


@dataclasses.dataclass(frozen=True)
class Largest(StepStatistic):
    """Entrywise maximum over steps, max_{s<t} function(step s), at every recorded step t.

    The value before the first step is −∞.

    Attributes:
        function: A JAX function of a `Step`.
        dimensions: Names of the axes of its value.

    Example:
        >>> from dynascope.training import Descent, descend
        >>> from dynascope.networks import DeepLinear
        >>> from dynascope.tasks import Task
        >>> kept = {"largest_loss": Largest(lambda step: step.loss)}
        >>> method = Descent(learning_rate=0.1, steps=4, save=[0, 4], statistics=kept)
        >>> run = descend(Task(np.eye(2), np.eye(2)), DeepLinear((2, 2)), method)
        >>> bool(run["largest_loss"][1] == run["loss"][0])
        True
    """

    function: Callable[[Step], Any]
    dimensions: Sequence[str] = ()

    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """Return −∞."""
        return _filled((), trial(self.function), -jnp.inf)

    def advance(self, state: Any, step: Step) -> Any:
        """Return the maximum of the state and the value of the step."""
        return jnp.maximum(state, self.function(step))


@dataclasses.dataclass(frozen=True)
class Latest(StepStatistic):
    """Value of the latest step, function(step t − 1), at every recorded step t.

    The value before the first step is NaN.

    Attributes:
        function: A JAX function of a `Step`.
        dimensions: Names of the axes of its value.

    Example:
        >>> from dynascope.training import Descent, descend
        >>> from dynascope.networks import DeepLinear
        >>> from dynascope.tasks import Task
        >>> kept = {"rate": Latest(lambda step: step.learning_rate)}
        >>> method = Descent(learning_rate=0.1, steps=4, save=[0, 4], statistics=kept)
        >>> run = descend(Task(np.eye(2), np.eye(2)), DeepLinear((2, 2)), method)
        >>> run["rate"].values.round(2).tolist()
        [nan, 0.1]
    """

    function: Callable[[Step], Any]
    dimensions: Sequence[str] = ()

    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """Return NaN."""
        return _filled((), trial(self.function), jnp.nan)

    def advance(self, state: Any, step: Step) -> Any:
        """Return the value of the step."""
        return jnp.asarray(self.function(step), state.dtype)


@dataclasses.dataclass(frozen=True)
class Sampled(StepStatistic):
    """Values function(step s) at given steps s, along the dimension `sampled_step`.

    The sampled steps need not be recorded steps; they may be spaced logarithmically, for example.

    Attributes:
        function: A JAX function of a `Step`.
        steps: Increasing integers, ≥ 0.
        dimensions: Names of the axes of its value.

    Raises:
        InputError: If the steps do not increase.

    Example:
        >>> from dynascope.training import Descent, descend
        >>> from dynascope.networks import DeepLinear
        >>> from dynascope.tasks import Task
        >>> kept = {"batch_loss": Sampled(lambda step: step.loss, [0, 2])}
        >>> method = Descent(learning_rate=0.1, steps=4, save=[0, 4], statistics=kept)
        >>> run = descend(Task(np.eye(2), np.eye(2)), DeepLinear((2, 2)), method)
        >>> run["batch_loss"].dims, run["sampled_step"].values.tolist()
        (('sampled_step',), [0, 2])
    """

    function: Callable[[Step], Any]
    steps: Sequence[int] | np.ndarray
    dimensions: Sequence[str] = ()

    def __post_init__(self):
        super().__post_init__()
        chosen = recorded_steps("steps", self.steps, np.iinfo(np.int64).max)
        object.__setattr__(self, "steps", tuple(int(each) for each in chosen))

    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """Return NaN for every step, and zero for the number of steps sampled so far."""
        return _filled((len(self.steps),), trial(self.function), jnp.nan), jnp.zeros((), jnp.int32)

    def advance(self, state: Any, step: Step) -> Any:
        """Store the value of the step if it is the next step to sample."""
        values, met = state
        chosen = jnp.asarray(self.steps)
        place = jnp.minimum(met, len(self.steps) - 1)
        own = (met < len(self.steps)) & (chosen[place] == step.index)
        return values.at[place].set(jnp.where(own, self.function(step), values[place])), met + own

    def value(self, state: Any) -> Any:
        """Return the values."""
        return state[0]


@dataclasses.dataclass(frozen=True)
class Recursion(StepStatistic):
    """A quantity defined by a recursion, state(t + 1) = following(state(t), step t).

    Recursions with the same `start` and `following` share one state, of which each recursion may record a different
    function.

    Attributes:
        start: A function of θ(0) that returns the state before the first step. The state is a tree of arrays, whose
            shapes and types do not change.
        following: A JAX function of a state and a `Step` that returns the state after the step.
        recorded: A function of a state that returns the recorded value; None to record the state.
        dimensions: Names of the axes of the recorded value.
    """

    start: Callable[[Any], Any]
    following: Callable[[Any, Step], Any]
    recorded: Callable[[Any], Any] | None = None
    dimensions: Sequence[str] = ()

    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """Return the initial state, after checking that `following` preserves its structure."""
        state = jax.tree.map(jnp.asarray, self.start(weights))
        before, after = jax.eval_shape(lambda: state), trial(lambda step: self.following(state, step))
        kept = jax.tree.structure(before) == jax.tree.structure(after) and all(
            (one.shape, one.dtype) == (other.shape, other.dtype)
            for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
        )
        require(
            kept,
            f"the state of a Recursion changes from {before} to {after}",
            argument="statistics",
            value=str(after),
            remedy="return the same structure, shapes and types from following as from start",
        )
        return state

    def advance(self, state: Any, step: Step) -> Any:
        """Return the state after the step."""
        return self.following(state, step)

    def value(self, state: Any) -> Any:
        """Return the recorded value."""
        return state if self.recorded is None else self.recorded(state)

    @property
    def rule(self) -> Any:
        """The functions `start` and `following`."""
        return self.start, self.following


def made_once(
    statistics: Sequence[tuple[str, StepStatistic]],
    states: Sequence[Any],
    make: Callable[[str, StepStatistic, Any], Any],
) -> tuple[Any, ...]:
    """Apply a function of name, statistic and state to each statistic, once for each rule."""
    made: dict[Any, Any] = {}
    for (name, statistic), state in zip(statistics, states, strict=True):
        if statistic.rule not in made:
            made[statistic.rule] = make(name, statistic, state)
    return tuple(made[statistic.rule] for _, statistic in statistics)


def _filled(front: tuple[int, ...], value: jax.ShapeDtypeStruct, number: float) -> Array:
    """Return an array filled with a number, which may be infinite or NaN; integer types become floating-point types."""
    dtype = value.dtype if jnp.issubdtype(value.dtype, jnp.inexact) else jnp.result_type(float)
    return jnp.full((*front, *value.shape), number, dtype)
