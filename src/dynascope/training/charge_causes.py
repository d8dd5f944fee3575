"""What each part of a symmetry does in a step: the numbers that tell apart why a law is broken."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from dynascope.symmetry import Charge
from dynascope.symmetry.step_rules import Rule
from dynascope.theory.symmetry.rounding import SUMMED
from dynascope.training.charge_groups import ChargeGroups
from dynascope.training.statistics import Latest, Recursion, Step, StepStatistic
from dynascope.training.update_causes import update_statistics

__all__ = ["are_sums", "by_part", "cause_statistics", "momentum_buffer"]


def cause_statistics(groups: ChargeGroups, optimizer: Rule, gradient_roundings: int) -> dict[str, StepStatistic]:
    """What `symmetry.audit` reads of the step that led to each recorded one, for each part A of each charge.

    A part is what the symmetry does to one parameter. With the gradient g of the loss, as it was before anything
    changed it, `part_charge` is θ_AᵀGθ_A and `part_slope` θ_AᵀGg, which sum to the charge and to zero. `part_absolute`
    is θ_AᵀG sign θ_A, the slope of an L1 penalty, and `part_stale` the slope of the gradient of the step before.
    `part_pull` is θ_AᵀGg′ with the gradient g′ from which the optimiser that was declared makes the update d that was
    made: of heavy ball g′ = −d/η − β v − λ θ, where θᵀGv is carried from step to step. Sums of weights have g in place
    of θᵀGg. Slopes and pulls stand beside what rounding can do. `update_statistics` are those of each parameter.

    Cost: seven numbers for each part of each charge and 19 for each parameter, a pass over weights, gradient and update
    for each part, a copy of the gradient, one of the parameters, and three more of those that have momentum.

    Args:
        groups: What is followed, and what is declared of each parameter.
        optimizer: As of `charge_statistics`.
        gradient_roundings: Roundings of a gradient.
    """
    own = _Parts(groups, optimizer, gradient_roundings)
    part = ("charge", "part")
    return {
        "part_charge": Latest(own.charge, part),
        "part_absolute": Latest(own.absolute, part),
        "part_slope": Latest(own.slope, part),
        "part_stale": Recursion(own.without_gradient, own.with_gradient, _stale, part),
        "part_slope_rounding": Latest(own.slope_rounding, part),
        "part_pull": Recursion(own.start, own.following, _pull, part),
        "part_pull_rounding": Recursion(own.start, own.following, _rounding, part),
        **update_statistics(groups, optimizer),
    }


def momentum_buffer(step: Step) -> Any:
    """The buffer v after a step, where the state of the optimiser holds one that optax calls a trace, and else None."""
    traces = [value for _, value in optax.tree_utils.tree_get_all_with_path(step.optimizer_state, "trace")]
    known = len(traces) == 1 and jax.tree.structure(traces[0]) == jax.tree.structure(step.weights)
    return traces[0] if known else None


def are_sums(symmetries: Sequence[Charge]) -> np.ndarray:
    """Which charges are sums of weights (charge,)."""
    return np.concatenate([np.full(each.size, each.kind == "translation") for each in symmetries])


def by_part(symmetries: Sequence[Charge], function: Callable[[Charge], Array]) -> Array:
    """A number for each part of each charge (charge, part), and zeros behind the last part."""
    most = max(len(each.parts) for each in symmetries)
    found = []
    for each in symmetries:
        values = [function(dataclasses.replace(each, parts=(part,))) for part in each.parts]
        values += [jnp.zeros_like(values[0])] * (most - len(values))
        found.append(jnp.stack(values, axis=-1))
    return jnp.concatenate(found)


class _State(NamedTuple):
    """Each of the shape (charge, part)."""

    crossed: Array  # θᵀGv, or the sum of buffers
    moved: Array  # √(vᵀ|G|v), or Σ|v|
    pull: Array  # θᵀGg′ of the latest step
    rounding: Array  # of the pull


class _Gradient(NamedTuple):
    """The gradient of the latest step, and the slopes of the one before at its weights, (charge, part)."""

    latest: Any
    stale: Array


@dataclasses.dataclass(frozen=True)
class _Parts:
    """The parts of symmetries, and the rule by which they are said to move. Equal ones find their program."""

    groups: ChargeGroups
    optimizer: Rule
    gradient_roundings: int

    @property
    def symmetries(self) -> tuple[Charge, ...]:
        return self.groups.symmetries

    def charge(self, step: Step) -> Array:
        return self._along(step.weights, step.weights)

    def slope(self, step: Step) -> Array:
        return self._along(step.weights, step.gradient)

    def absolute(self, step: Step) -> Array:
        return self._along(step.weights, jax.tree.map(jnp.sign, step.weights))

    def without_gradient(self, weights: Any) -> _Gradient:
        none = jax.tree.map(jnp.zeros_like, weights)
        return _Gradient(none, self._along(weights, none))

    def with_gradient(self, state: _Gradient, step: Step) -> _Gradient:
        return _Gradient(step.gradient, self._along(step.weights, state.latest))

    def slope_rounding(self, step: Step) -> Array:
        lever, length = self._lever(step.weights), self._length(step.gradient)
        # A sum of gradients that cancel is rounded as their terms are, which are of the size of other gradients.
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(each), initial=0) for each in jax.tree.leaves(step.gradient)]))
        counts = self._length(jax.tree.map(jnp.ones_like, step.weights))
        length = jnp.where(are_sums(self.symmetries)[:, None], length + counts * largest, length)
        return self.gradient_roundings * self._unit(step) * lever * length

    def start(self, weights: Any) -> _State:
        zero = jnp.zeros_like(self._along(weights, weights))
        unknown = jnp.full_like(zero, jnp.nan)
        return _State(zero, zero, unknown, unknown)

    def following(self, state: _State, step: Step) -> _State:
        """The state after a step; one at rate zero says nothing of its gradient, which is believed."""
        theta, update, kind = step.weights, step.update, state.crossed.dtype
        beta, decay = self.groups.of_parts("momentum", kind), self.groups.of_parts("weight_decay", kind)
        rate = jnp.asarray(self.groups.common_rate(step.learning_rate), kind) * self.groups.of_parts("rates", kind)
        still, safe = rate == 0, jnp.where(rate == 0, 1, rate)
        linear = are_sums(self.symmetries)[:, None]
        slope, charge = self.slope(step), self.charge(step)
        along = -self._along(theta, update) / safe
        both = jnp.where(linear, 0, self._along(update, update)) / safe
        if self.optimizer == "nesterov":
            pushed = (along - beta**2 * state.crossed) / (1 + beta)
            buffer = beta * state.crossed + pushed
            held = momentum_buffer(step)
            if held is not None:
                across = -self._along(update, held)
            else:
                slopes, some = self._along(update, step.gradient), jnp.asarray(beta) > 0
                slopes += jnp.where(linear, 0, decay * self._along(theta, update))
                across = jnp.where(some, (both + slopes) / jnp.where(some, beta, 1), both)
            after = buffer - jnp.where(linear, 0, across)
            pull = pushed - decay * charge
        elif self.optimizer == "decoupled":
            buffer = along - decay * charge
            pull = buffer - beta * state.crossed
            after = buffer - both - jnp.where(linear, 0, decay * self._along(theta, update))
        else:
            pull = along - beta * state.crossed - decay * charge
            after = along - both
        resting = beta * state.crossed + slope + (0 if self.optimizer == "decoupled" else decay) * charge
        lever, moved = self._lever(theta), self._length(update) / safe
        # Of each sum; an update is rounded less often than that.
        summands = moved + beta * state.moved + self._length(step.gradient) + decay * self._length(theta)
        rounded = 2 * SUMMED * self._unit(step) * (lever * summands + beta * rate * state.moved**2)
        return _State(
            crossed=jnp.where(still, resting, after),
            moved=jnp.where(still, beta * state.moved + self._length(step.gradient), moved),
            pull=jnp.where(still, slope, pull),
            rounding=rounded,
        )

    def _unit(self, step: Step) -> float:
        return float(jnp.finfo(jnp.asarray(step.loss).dtype).eps) / 2

    def _along(self, theta: Any, tree: Any) -> Array:
        """θᵀGv, and the sum of v over a unit of translations."""

        def value(single: Charge) -> Array:
            return single.form(tree if single.kind == "translation" else theta, tree)

        return by_part(self.symmetries, value)

    def _length(self, tree: Any) -> Array:
        """√(vᵀ|G|v), and Σ|v|."""

        def value(single: Charge) -> Array:
            size = single.size_form(tree)
            return size if single.kind == "translation" else jnp.sqrt(size)

        return by_part(self.symmetries, value)

    def _lever(self, theta: Any) -> Array:
        """What the error of a vector is multiplied by at most: √(θᵀ|G|θ), and one."""
        return jnp.where(are_sums(self.symmetries)[:, None], 1, self._length(theta))


def _stale(state: _Gradient) -> Array:
    return state.stale


def _pull(state: _State) -> Array:
    return state.pull


def _rounding(state: _State) -> Array:
    return state.rounding
