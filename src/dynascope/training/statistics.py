"""A step of training, and statistics over steps: sums, maxima, latest values, samples, and recursions."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dynascope.flows.save_times import recorded_steps
from dynascope.validation import require

__all__ = [
    "Largest",
    "Latest",
    "Recursion",
    "Sampled",
    "Step",
    "StepStatistic",
    "Total",
    "made_once",
    "squared_norms",
]


class Step:
    """One step θ(t + 1) = θ(t) + Δ(t) of training, as a statistic sees it.

    Weights, gradients and updates are networks with None in the place of all that is no weight, so that they can be
    read by name, as in `step.gradient.weights[0]`.

    Attributes:
        index: t, from 0.
        weights: θ(t), before the step.
        gradient: ∇ of the loss of the batch at θ(t).
        update: Δ(t), what is added to the weights.
        optimizer_state: State of the optimiser after the step.
        loss: Loss of the batch at θ(t).
        learning_rate: η of the step; of layers with rates of their own, a tree like the weights.
        batch: The samples of the step, `inputs` and `targets`; None for an expectation.
        initial_weights: θ(0).
        unseen_update: What no entry of the update of other weights exceeds, as far as these are trained but not seen.
    """

    def __init__(
        self,
        *,
        index: Any,
        weights: Any,
        gradient: Any,
        update: Any,
        optimizer_state: Any,
        loss: Any,
        learning_rate: Any,
        batch: Any,
        network: Callable[[], Any],
        full_gradient: Callable[[], Any],
        initial_weights: Any,
        unseen_update: Any = 0.0,
    ):
        self.index, self.weights, self.gradient, self.update = index, weights, gradient, update
        self.optimizer_state, self.loss, self.learning_rate = optimizer_state, loss, learning_rate
        self.batch, self.initial_weights, self.unseen_update = batch, initial_weights, unseen_update
        self._network, self._full_gradient = network, full_gradient

    @property
    def network(self) -> Any:
        """The whole network before the step."""
        return self._network()

    @functools.cached_property
    def full_gradient(self) -> Any:
        """∇ of the loss of all data at θ(t), in training mode, computed only if a statistic uses it."""
        return self._full_gradient()

    @property
    def displacement(self) -> Any:
        """θ(t + 1) − θ(0)."""
        trees = self.weights, self.update, self.initial_weights
        return jax.tree.map(lambda now, move, start: now + move - start, *trees)


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


def squared_norms(tree: Any, groups: Mapping[str, str] | None = None) -> Any:
    """‖·‖² of every weight array, in the order of the network; or, added up, of named groups of them.

    Args:
        tree: Weights, a gradient, an update or a displacement.
        groups: Name of each group → a weight array or a part of the network, as learning rates name them.

    Raises:
        InputError: A group names no weights.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> squared_norms(TwoLayer(2, 3, 1), {"all": "first"}).shape, squared_norms(TwoLayer(2, 3, 1)).shape
        ((1,), (2,))
    """
    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(tree, eqx.is_inexact_array))
    norms = {jax.tree_util.keystr(path, simple=True, separator="."): jnp.sum(leaf**2) for path, leaf in leaves}
    if groups is None:
        return jnp.stack(list(norms.values()))
    sums = []
    for name, part in groups.items():
        own = [norm for weight, norm in norms.items() if weight == part or weight.startswith(f"{part}.")]
        require(
            len(own) > 0,
            f"the group {name!r} is {part!r}",
            argument="groups",
            value=part,
            remedy=f"name weights of the network: {', '.join(norms)}",
        )
        sums.append(sum(own))
    return jnp.stack(sums)


def _filled(front: tuple[int, ...], value: jax.ShapeDtypeStruct, number: float) -> Array:
    """Values that are still to come, as numbers that need not be finite: whole ones become floating-point numbers."""
    dtype = value.dtype if jnp.issubdtype(value.dtype, jnp.inexact) else jnp.result_type(float)
    return jnp.full((*front, *value.shape), number, dtype)
