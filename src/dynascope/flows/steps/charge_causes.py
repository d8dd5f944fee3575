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

from dynascope.flows.steps.charge_groups import ChargeGroups
from dynascope.flows.steps.step import Step
from dynascope.flows.steps.step_statistics import Latest, Recursion, StepStatistic
from dynascope.symmetry import Charge
from dynascope.symmetry.followed import parameter_paths
from dynascope.symmetry.parameters import arrays_by_path
from dynascope.symmetry.step_rules import RULES, Rule
from dynascope.theory.symmetry.rounding import SUMMED

__all__ = ["are_sums", "by_part", "cause_statistics", "momentum_buffer"]

_LAST_BITS = 4  # roundings of an update, and of the weights that it is read from


def cause_statistics(groups: ChargeGroups, optimizer: Rule, gradient_roundings: int) -> dict[str, StepStatistic]:
    """What `symmetry.audit` reads of the step that led to each recorded one, for each part A of each charge.

    A part is what the symmetry does to one parameter. With the gradient g of the loss, as it was before anything
    changed it, `part_charge` is θ_AᵀGθ_A and `part_slope` θ_AᵀGg, which sum to the charge and to zero. `part_pull` is
    θ_AᵀGg′ with the gradient g′ from which the optimiser that was declared makes the update d that was made: of heavy
    ball g′ = −d/η − β v − λ θ, where θᵀGv is carried from step to step. Sums of weights have g in place of θᵀGg. Each
    stands beside what rounding can do. Of the parameters of all symmetries, along `layer` in the order of the parts,
    are recorded `gradient_norm`, `gradient_largest`, `update_norm`, and how far g′ is from g, `change`, and from g cut
    off at the largest |g′|, `clipping`, each relative to its largest entry; `first_change` is that of the first step,
    and `change_by_rule` the change if the rule were heavy ball, Nesterov's or decoupled.

    Cost: six numbers for each part of each charge and nine for each parameter, a pass over weights, gradient and update
    for each part, and three copies of the parameters that have momentum.

    Args:
        groups: What is followed, and what is declared of each parameter.
        optimizer: As of `charge_statistics`.
        gradient_roundings: Roundings of a gradient.
    """
    own = _Parts(groups, optimizer, gradient_roundings)
    part, layer = ("charge", "part"), ("layer",)
    return {
        "part_charge": Latest(own.charge, part),
        "part_decay": Recursion(own.start, own.following, _decay, part),
        "part_slope": Latest(own.slope, part),
        "part_slope_rounding": Latest(own.slope_rounding, part),
        "part_pull": Recursion(own.start, own.following, _pull, part),
        "part_pull_rounding": Recursion(own.start, own.following, _rounding, part),
        "gradient_norm": Latest(own.gradient_norm, layer),
        "gradient_largest": Latest(own.gradient_largest, layer),
        "update_norm": Latest(own.update_norm, layer),
        "clipping": Recursion(own.at_rest, own.implied, _clipping, layer),
        "change": Recursion(own.at_rest, own.implied, _change, layer),
        "first_change": Recursion(own.at_rest, own.implied, _first_change, layer),
        "change_by_rule": Recursion(own.at_rest, own.implied, _change_by_rule, (*layer, "hypothesis")),
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
    overlap: Array  # θᵀGθ of the weights before and after the latest step, or the sum of those before
    pull: Array  # θᵀGg′ of the latest step
    decay: Array  # What another unit of decay would add to it
    rounding: Array  # of the pull


class _Implied(NamedTuple):
    """What steps imply, of each parameter: by the declared rule, and the change by each rule that there is."""

    buffers: tuple[tuple[Array, ...], ...]  # of momentum by each rule, a zero where there is none
    clipping: Array  # max |g′ − g cut off| / max |g′|
    change: Array  # max |g′ − g| / max |g|
    first_change: Array
    change_by_rule: Array


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

    def slope_rounding(self, step: Step) -> Array:
        return self.gradient_roundings * self._unit(step) * self._lever(step.weights) * self._length(step.gradient)

    def start(self, weights: Any) -> _State:
        zero = jnp.zeros_like(self._along(weights, weights))
        unknown = jnp.full_like(zero, jnp.nan)
        return _State(zero, zero, zero, unknown, unknown, unknown)

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
            overlap=jnp.where(linear, charge, charge + self._along(theta, update)),
            pull=jnp.where(still, slope, pull),
            # Decay that the buffer is thought to hold is not there the next time.
            decay=charge - (beta * state.overlap if self.optimizer == "decoupled" else 0),
            rounding=rounded,
        )

    def gradient_norm(self, step: Step) -> Array:
        return self._each(step.gradient, lambda leaf: jnp.sqrt(jnp.sum(leaf**2)))

    def gradient_largest(self, step: Step) -> Array:
        return self._each(step.gradient, lambda leaf: jnp.max(jnp.abs(leaf), initial=0))

    def update_norm(self, step: Step) -> Array:
        return self._each(step.update, lambda leaf: jnp.sqrt(jnp.sum(leaf**2)))

    def at_rest(self, weights: Any) -> _Implied:
        arrays, momenta = arrays_by_path(weights), dict(self.groups.momentum)
        leaves = [arrays[path] for path in parameter_paths(self.symmetries)]
        buffers = tuple(
            len(RULES) * (jnp.zeros_like(leaf) if momenta[path] else jnp.zeros((), leaf.dtype),)
            for path, leaf in zip(parameter_paths(self.symmetries), leaves, strict=True)
        )
        zero = jnp.zeros(len(leaves), leaves[0].dtype)
        return _Implied(buffers, zero, zero, zero, jnp.zeros((len(leaves), len(RULES)), zero.dtype))

    def implied(self, state: _Implied, step: Step) -> _Implied:
        """The state after a step; one at rate zero says nothing of its gradient, which is believed."""
        common = jnp.asarray(self.groups.common_rate(step.learning_rate), state.change.dtype)
        rates, decays, momenta = (
            dict(each) for each in (self.groups.rates, self.groups.weight_decay, self.groups.momentum)
        )
        arrays = [arrays_by_path(tree) for tree in (step.weights, step.gradient, step.update)]
        buffers, clipping, changes = [], [], []
        for path, held in zip(parameter_paths(self.symmetries), state.buffers, strict=True):
            theta, gradient, update = (each[path] for each in arrays)
            beta, decay, still = momenta[path], decays[path], common == 0
            ahead = jnp.where(still, 1, common) * rates[path]
            largest, new, by_rule = jnp.max(jnp.abs(gradient), initial=0), [], []
            for rule, own in zip(RULES, held, strict=True):
                buffer, used = _used(rule, -update / ahead, own, beta, decay * theta)
                resting = beta * own + gradient + (0 if rule == "decoupled" else decay) * theta
                new.append(jnp.where(still, resting, buffer) if beta else own)
                used = jnp.where(still, gradient, used)
                # Where updates are seen as differences of weights, the last bits of these are in them.
                last = (jnp.abs(theta) + jnp.abs(update)) / ahead + jnp.abs(own)
                rounding = _LAST_BITS * self._unit(step) * last
                by_rule.append(_apart(used, gradient, rounding, largest))
                if rule == self.optimizer:
                    size = jnp.max(jnp.abs(used), initial=0)
                    clipping.append(_apart(used, jnp.clip(gradient, -size, size), rounding, size))
            buffers.append(tuple(new))
            changes.append(jnp.stack(by_rule))
        change_by_rule = jnp.stack(changes)
        change = change_by_rule[:, RULES.index(self.optimizer)]
        first = jnp.where(step.index == 0, change, state.first_change)
        return _Implied(tuple(buffers), jnp.stack(clipping), change, first, change_by_rule)

    def _each(self, tree: Any, function: Callable[[Any], Array]) -> Array:
        arrays = arrays_by_path(tree)
        return jnp.stack([function(arrays[path]) for path in parameter_paths(self.symmetries)])

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


def _used(rule: str, along: Array, held: Array, beta: Any, decayed: Array) -> tuple[Array, Array]:
    """The buffer after a step, and the gradient that went into it, of −d/η, the buffer before, β and λθ."""
    if rule == "nesterov":
        pushed = (along - beta**2 * held) / (1 + beta)
        return beta * held + pushed, pushed - decayed
    if rule == "decoupled":
        return along - decayed, along - decayed - beta * held
    return along, along - beta * held - decayed


def _apart(one: Array, other: Array, rounding: Array, size: Array) -> Array:
    """The largest difference beyond rounding, in units of a size."""
    off = jnp.maximum(jnp.abs(one - other) - rounding, 0)
    return jnp.max(off, initial=0) / jnp.where(size == 0, 1, size)


def _clipping(state: _Implied) -> Array:
    return state.clipping


def _change(state: _Implied) -> Array:
    return state.change


def _first_change(state: _Implied) -> Array:
    return state.first_change


def _change_by_rule(state: _Implied) -> Array:
    return state.change_by_rule


def _pull(state: _State) -> Array:
    return state.pull


def _decay(state: _State) -> Array:
    return state.decay


def _rounding(state: _State) -> Array:
    return state.rounding
