"""Statistics over steps of training: sums, maxima, latest values, samples, and recursions."""

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
    """A quantity that is carried from step to step, in memory that does not depend on their number.

    Attributes:
        dimensions: Names of the axes of what is recorded.
    """

    dimensions: Sequence[str]

    def __post_init__(self):
        # Programs are found by what they were compiled for, which has to be hashable.
        object.__setattr__(self, "dimensions", tuple(self.dimensions))

    @abc.abstractmethod
    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """The state before the first step, given θ(0) and the shapes of what a function of a step gives."""

    @abc.abstractmethod
    def advance(self, state: Any, step: Step) -> Any:
        """The state after a step."""

    def value(self, state: Any) -> Any:
        """What is recorded of a state."""
        return state

    @property
    def rule(self) -> Any:
        """What its state follows from: statistics of one rule are carried as one."""
        return self


@dataclasses.dataclass(frozen=True)
class Total(StepStatistic):
    """Σ_{s<t} function(step s), as of every recorded step t; what the sum rounds off is kept and added at the end.

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
        """Nothing."""
        shape = trial(self.function)
        dtype = jnp.int32 if shape.dtype == bool else shape.dtype
        return jnp.zeros(shape.shape, dtype), jnp.zeros(shape.shape, dtype)

    def advance(self, state: Any, step: Step) -> Any:
        """The sum, and what was lost of it by rounding."""
        sums, lost = state
        value = jnp.asarray(self.function(step), sums.dtype)
        new = sums + value
        rest = jnp.where(jnp.abs(sums) >= jnp.abs(value), (sums - new) + value, (value - new) + sums)
        return new, lost + rest

    def value(self, state: Any) -> Any:
        """The sum."""
        return state[0] + state[1]


@dataclasses.dataclass(frozen=True)
class Largest(StepStatistic):
    """max_{s<t} function(step s), entry by entry, as of every recorded step t; −∞ before the first.

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
        """−∞."""
        return _filled((), trial(self.function), -jnp.inf)

    def advance(self, state: Any, step: Step) -> Any:
        """The larger of the state and the value of the step."""
        return jnp.maximum(state, self.function(step))


@dataclasses.dataclass(frozen=True)
class Latest(StepStatistic):
    """function(step t − 1), of the step that led to the recorded step t; NaN before the first.

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
        """NaN."""
        return _filled((), trial(self.function), jnp.nan)

    def advance(self, state: Any, step: Step) -> Any:
        """The value of the step."""
        return jnp.asarray(self.function(step), state.dtype)


@dataclasses.dataclass(frozen=True)
class Sampled(StepStatistic):
    """function(step s) of each of the given steps s, thinned or spaced logarithmically, along `sampled_step`.

    Attributes:
        function: A JAX function of a `Step`.
        steps: Whole numbers that increase from 0 or more.
        dimensions: Names of the axes of its value.

    Raises:
        InputError: The steps do not increase.

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
        """NaN for each of the steps, and the number of those that were met."""
        return _filled((len(self.steps),), trial(self.function), jnp.nan), jnp.zeros((), jnp.int32)

    def advance(self, state: Any, step: Step) -> Any:
        """The values with that of the step, if it is the next of the chosen."""
        values, met = state
        chosen = jnp.asarray(self.steps)
        place = jnp.minimum(met, len(self.steps) - 1)
        own = (met < len(self.steps)) & (chosen[place] == step.index)
        return values.at[place].set(jnp.where(own, self.function(step), values[place])), met + own

    def value(self, state: Any) -> Any:
        """The values."""
        return state[0]


@dataclasses.dataclass(frozen=True)
class Recursion(StepStatistic):
    """A quantity with a state of its own: state(t + 1) = following(state(t), step t).

    Several of the same two functions, which record something else of the state each, are computed once.

    Attributes:
        start: State before the first step, a function of θ(0): arrays of the shapes and types that it keeps.
        following: The state after a step, a JAX function of a state and a `Step`.
        recorded: What is recorded of a state; None for the state itself.
        dimensions: Names of the axes of what is recorded.
    """

    start: Callable[[Any], Any]
    following: Callable[[Any, Step], Any]
    recorded: Callable[[Any], Any] | None = None
    dimensions: Sequence[str] = ()

    def initial(self, weights: Any, trial: Callable[[Callable[[Step], Any]], Any]) -> Any:
        """The start."""
        state = jax.tree.map(jnp.asarray, self.start(weights))
        before, after = jax.eval_shape(lambda: state), trial(lambda step: self.following(state, step))
        kept = jax.tree.structure(before) == jax.tree.structure(after) and all(
            (one.shape, one.dtype) == (other.shape, other.dtype)
            for one, other in zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True)
        )
        require(
            kept,
            f"a Recursion starts as {before} and goes on as {after}",
            argument="statistics",
            value=str(after),
            remedy="let following keep the structure, the shapes and the types of start",
        )
        return state

    def advance(self, state: Any, step: Step) -> Any:
        """The state after the step."""
        return self.following(state, step)

    def value(self, state: Any) -> Any:
        """What is recorded."""
        return state if self.recorded is None else self.recorded(state)

    @property
    def rule(self) -> Any:
        """The start, and what follows."""
        return self.start, self.following


def made_once(
    statistics: Sequence[tuple[str, StepStatistic]],
    states: Sequence[Any],
    make: Callable[[str, StepStatistic, Any], Any],
) -> tuple[Any, ...]:
    """What a function of name, statistic and state returns for each statistic, computed once for each rule."""
    made: dict[Any, Any] = {}
    for (name, statistic), state in zip(statistics, states, strict=True):
        if statistic.rule not in made:
            made[statistic.rule] = make(name, statistic, state)
    return tuple(made[statistic.rule] for _, statistic in statistics)


def _filled(front: tuple[int, ...], value: jax.ShapeDtypeStruct, number: float) -> Array:
    """Values that are still to come, as numbers that need not be finite: whole ones become floating-point numbers."""
    dtype = value.dtype if jnp.issubdtype(value.dtype, jnp.inexact) else jnp.result_type(float)
    return jnp.full((*front, *value.shape), number, dtype)
