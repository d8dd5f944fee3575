"""Statistics of steps that explain violated charge laws: slopes along symmetries, and gradients implied by updates."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dynascope.symmetry import Charge
from dynascope.symmetry.parameters import arrays_by_path
from dynascope.symmetry.step_rules import DEPARTURES, RULES
from dynascope.symmetry.symmetry_arguments import parameter_paths
from dynascope.theory.symmetry.rounding import SUMMED
from dynascope.training.charge_declaration import Declaration, implied_gradient, intended_step, momentum_buffer
from dynascope.training.statistics import Latest, Recursion, StepStatistic
from dynascope.training.step import Step

__all__ = ["cause_statistics"]

_LAST_BITS = 4  # roundings of an update, and of the weights whose difference it is
_BITS = 11, 8  # significant bits of float16 and bfloat16, the formats of autocast


def cause_statistics(declared: Declaration) -> dict[str, StepStatistic]:
    """Return the statistics from which `symmetry.audit` diagnoses violated charge laws.

    The statistics describe the last step before each recorded step. Let g be the gradient of the loss, before clipping
    or other changes, and d the update. Let g′ be the gradient for which the declared rule would make the update d; for
    heavy ball, g′ = −d/η − β v − λ θ. A part A of a charge is the contribution of one parameter. For each part:

    - `part_charge` and `part_slope`: θ_AᵀGθ_A and θ_AᵀGg. Over all parts, the first sums to the charge and the second
      to zero.
    - `part_absolute`: θ_AᵀG sign θ_A, the slope of an L1 penalty.
    - `part_stale`: the slope of the gradient of the previous step.
    - `part_pull`: θ_AᵀGg′, computed from a recursion for θᵀGv.
    - `part_slope_rounding` and `part_pull_rounding`: bounds on the rounding errors of `part_slope` and `part_pull`.

    For a charge that is a sum of weights, the sum of g replaces θᵀGg. For each parameter, along `layer` in the order of
    the parts:

    - `gradient_norm`, `gradient_largest` and `update_norm`: ‖g‖, max |g| and ‖d‖.
    - `gradient_bits`: the smallest number of significant bits that represents every entry of g exactly: 8 (bfloat16),
      11 (float16), or all bits of the type of g.
    - `change`: max |g′ − g|, relative to max |g|.
    - `change_by_rule`: `change` under the rules heavy ball, Nesterov momentum and decoupled decay.
    - `clipping`: max |g′ − clip(g, ±max |g′|)|, relative to max |g′|.
    - `departure_factor` and `departure_rest`: for each of `DEPARTURES`, the factor c of a least-squares fit to the
      step, and the largest residual of the fit relative to max |g|. Let d* be the update that the declared rule makes
      from all gradients so far. The fitted departures are: a different decay, g′ − g = c θ, or d − d* = −η c θ for
      decoupled decay; a different rate, d = c d*; a rescaled gradient, g′ = c g; an L1 decay, g′ − g = c sign θ; a
      different momentum, g′ − g = c v with the buffer v.

    Cost: seven numbers per part of each charge and 19 per parameter, and one pass over weights, gradient and update per
    part. Memory: one copy of the gradient and one of the parameters, plus three copies of the parameters if there is
    momentum.
    """
    parts, updates, part, layer = _Parts(declared), _Updates(declared), ("charge", "part"), ("layer",)

    def of_parts(name: str) -> Recursion:
        return Recursion(parts.start, parts.following, attrgetter(name), part)

    def of_updates(name: str, *axes: str) -> Recursion:
        return Recursion(updates.at_rest, updates.following, attrgetter(name), (*layer, *axes))

    return {
        "part_charge": Latest(parts.charge, part),
        "part_absolute": Latest(parts.absolute, part),
        "part_slope": Latest(parts.slope, part),
        "part_stale": Recursion(parts.without_gradient, parts.with_gradient, attrgetter("stale"), part),
        "part_slope_rounding": Latest(parts.slope_rounding, part),
        "part_pull": of_parts("pull"),
        "part_pull_rounding": of_parts("rounding"),
        "gradient_norm": Latest(updates.gradient_norm, layer),
        "gradient_largest": Latest(updates.gradient_largest, layer),
        "gradient_bits": Latest(updates.gradient_bits, layer),
        "update_norm": Latest(updates.update_norm, layer),
        "clipping": of_updates("clipping"),
        "change": of_updates("change"),
        "change_by_rule": of_updates("change_by_rule", "hypothesis"),
        "departure_factor": of_updates("departure_factor", "departure"),
        "departure_rest": of_updates("departure_rest", "departure"),
    }


class _PartState(NamedTuple):
    """State of the recursion for `part_pull`; each field has shape (charge, part)."""

    crossed: Array  # θᵀGv; for translations, the sum of the buffers
    moved: Array  # √(vᵀ|G|v); for translations, Σ|v|
    pull: Array  # θᵀGg′ of the latest step
    rounding: Array  # bound on the rounding error of the pull


class _Gradient(NamedTuple):
    """The latest gradient, and the slopes of the previous gradient at the latest weights, shape (charge, part)."""

    latest: Any
    stale: Array


@dataclasses.dataclass(frozen=True)
class _Parts:
    """Computes `part_charge`, `part_slope` and `part_pull` for the parts of all symmetries."""

    declared: Declaration

    @property
    def linear(self) -> np.ndarray:
        return self.declared.linear[:, None]

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
        # The rounding error of a sum that cancels has the size of its terms, which is that of other gradients.
        largest = jnp.max(jnp.stack([jnp.max(jnp.abs(each), initial=0) for each in jax.tree.leaves(step.gradient)]))
        counts = self._length(jax.tree.map(jnp.ones_like, step.weights))
        length = jnp.where(self.linear, length + counts * largest, length)
        return self.declared.gradient_roundings * self._unit(step) * lever * length

    def start(self, weights: Any) -> _PartState:
        zero = jnp.zeros_like(self._along(weights, weights))
        unknown = jnp.full_like(zero, jnp.nan)
        return _PartState(zero, zero, unknown, unknown)

    def following(self, state: _PartState, step: Step) -> _PartState:
        """Return the state after a step.

        If the learning rate is zero, an update contains no information about the gradient, so the declared rule is
        assumed.
        """
        declared, linear, rule = self.declared, self.linear, self.declared.optimizer
        theta, update, kind = step.weights, step.update, state.crossed.dtype
        beta, decay = declared.of_parts("momentum", kind), declared.of_parts("weight_decay", kind)
        rate = jnp.asarray(declared.common_rate(step.learning_rate), kind) * declared.of_parts("rates", kind)
        still, safe = rate == 0, jnp.where(rate == 0, 1, rate)
        slope, charge = self.slope(step), self.charge(step)
        along = -self._along(theta, update) / safe
        both = jnp.where(linear, 0, self._along(update, update)) / safe
        after, pull = implied_gradient(rule, along, state.crossed, beta, decay * charge)
        if rule == "nesterov":
            held = momentum_buffer(step)
            if held is not None:
                across = -self._along(update, held)
            else:
                slopes, some = self._along(update, step.gradient), jnp.asarray(beta) > 0
                slopes += jnp.where(linear, 0, decay * self._along(theta, update))
                across = jnp.where(some, (both + slopes) / jnp.where(some, beta, 1), both)
            after = after - jnp.where(linear, 0, across)
        else:
            after = after - both
            if rule == "decoupled":
                after = after - jnp.where(linear, 0, decay * self._along(theta, update))
        resting = beta * state.crossed + slope + (0 if rule == "decoupled" else decay) * charge
        lever, moved = self._lever(theta), self._length(update) / safe
        # Size of the terms of each sum. The rounding errors of an update are smaller.
        summands = moved + beta * state.moved + self._length(step.gradient) + decay * self._length(theta)
        return _PartState(
            crossed=jnp.where(still, resting, after),
            moved=jnp.where(still, beta * state.moved + self._length(step.gradient), moved),
            pull=jnp.where(still, slope, pull),
            rounding=2 * SUMMED * self._unit(step) * (lever * summands + beta * rate * state.moved**2),
        )

    def _unit(self, step: Step) -> float:
        return float(jnp.finfo(jnp.asarray(step.loss).dtype).eps) / 2

    def _along(self, theta: Any, tree: Any) -> Array:
        """Return θᵀGv, or the sum of v over a unit for translations."""

        def value(single: Charge) -> Array:
            return single.form(tree if single.kind == "translation" else theta, tree)

        return self.declared.by_part(value)

    def _length(self, tree: Any) -> Array:
        """Return √(vᵀ|G|v), or Σ|v| for translations."""

        def value(single: Charge) -> Array:
            size = single.size_form(tree)
            return size if single.kind == "translation" else jnp.sqrt(size)

        return self.declared.by_part(value)

    def _lever(self, theta: Any) -> Array:
        """Return a bound on the amplification of errors: √(θᵀ|G|θ), or one for translations."""
        return jnp.where(self.linear, 1, self._length(theta))


class _UpdateState(NamedTuple):
    """Momentum buffers, and deviations from the declared rule, with one entry per parameter."""

    buffers: tuple[tuple[Array, ...], ...]  # momentum under each rule, inferred from updates; zero without momentum
    intended: tuple[Array, ...]  # momentum under the declared rule, computed from gradients
    clipping: Array
    change: Array
    change_by_rule: Array
    departure_factor: Array
    departure_rest: Array


@dataclasses.dataclass(frozen=True)
class _Updates:
    """Gradients and updates of each parameter."""

    declared: Declaration

    @property
    def paths(self) -> tuple[str, ...]:
        return parameter_paths(self.declared.symmetries)

    def gradient_norm(self, step: Step) -> Array:
        return self._each(step.gradient, _norm)

    def gradient_largest(self, step: Step) -> Array:
        return self._each(step.gradient, lambda leaf: jnp.max(jnp.abs(leaf), initial=0))

    def gradient_bits(self, step: Step) -> Array:
        return self._each(step.gradient, _bits)

    def update_norm(self, step: Step) -> Array:
        return self._each(step.update, _norm)

    def at_rest(self, weights: Any) -> _UpdateState:
        arrays, momenta = arrays_by_path(weights), dict(self.declared.momentum)
        leaves = [arrays[path] for path in self.paths]
        empty = tuple(
            jnp.zeros_like(leaf) if momenta[path] else jnp.zeros((), leaf.dtype)
            for path, leaf in zip(self.paths, leaves, strict=True)
        )
        zero = jnp.zeros(len(leaves), leaves[0].dtype)
        rules, departures = (jnp.zeros((len(leaves), len(each)), zero.dtype) for each in (RULES, DEPARTURES))
        # The declared rule needs its buffers even without momentum, to detect momentum that was not declared.
        buffers = tuple(
            tuple(jnp.zeros_like(leaf) if rule == self.declared.optimizer else each for rule in RULES)
            for leaf, each in zip(leaves, empty, strict=True)
        )
        return _UpdateState(buffers, empty, zero, zero, rules, departures, departures)

    def following(self, state: _UpdateState, step: Step) -> _UpdateState:
        """Return the state after a step.

        If the learning rate is zero, an update contains no information about the gradient, so the declared rule is
        assumed.
        """
        declared = self.declared
        common = jnp.asarray(declared.common_rate(step.learning_rate), state.change.dtype)
        rates, decays, momenta = dict(declared.rates), dict(declared.weight_decay), dict(declared.momentum)
        arrays = [arrays_by_path(tree) for tree in (step.weights, step.gradient, step.update)]
        unit = float(jnp.finfo(common.dtype).eps) / 2
        buffers, intended, clipping, changes, factors, rests = [], [], [], [], [], []
        for path, held, before in zip(self.paths, state.buffers, state.intended, strict=True):
            theta, gradient, update = (each[path] for each in arrays)
            beta, decay, still = momenta[path], decays[path], common == 0
            ahead = jnp.where(still, 1, common) * rates[path]
            along, decayed = -update / ahead, decay * theta
            # Updates that are differences of weights contain the rounding errors of the weights.
            last = (jnp.abs(theta) + jnp.abs(update)) / ahead
            largest, new, by_rule = jnp.max(jnp.abs(gradient), initial=0), [], []
            buffer, made = intended_step(declared.optimizer, gradient, before, beta, decayed)
            intended.append(buffer if beta else before)
            for rule, own in zip(RULES, held, strict=True):
                buffer, used = implied_gradient(rule, along, own, beta, decayed)
                resting = beta * own + gradient + (0 if rule == "decoupled" else decayed)
                new.append(jnp.where(still, resting, buffer) if beta or rule == declared.optimizer else own)
                used = jnp.where(still, gradient, used)
                rounding = _LAST_BITS * unit * (last + (jnp.abs(own) if beta else 0))
                by_rule.append(_apart(used, gradient, rounding, largest))
                if rule == declared.optimizer:
                    size = jnp.max(jnp.abs(used), initial=0)
                    clipping.append(_apart(used, jnp.clip(gradient, -size, size), rounding, size))
                    fits: dict[str, tuple[Array, Array]] = {
                        "decay": (along - made if rule == "decoupled" else used - gradient, theta),
                        "rate": (jnp.where(still, made, along), made),
                        "gradient": (used, gradient),
                        "sign": (used - gradient, jnp.sign(theta)),
                        "momentum": (used - gradient, own),
                    }
                    rounding += _LAST_BITS * unit * (jnp.abs(before) + jnp.abs(gradient))
                    fitted = [_fitted(*fits[name], rounding, largest) for name in DEPARTURES]
                    factors.append(jnp.stack([factor for factor, _ in fitted]))
                    rests.append(jnp.stack([rest for _, rest in fitted]))
            buffers.append(tuple(new))
            changes.append(jnp.stack(by_rule))
        change_by_rule = jnp.stack(changes)
        return _UpdateState(
            buffers=tuple(buffers),
            intended=tuple(intended),
            clipping=jnp.stack(clipping),
            change=change_by_rule[:, RULES.index(declared.optimizer)],
            change_by_rule=change_by_rule,
            departure_factor=jnp.stack(factors),
            departure_rest=jnp.stack(rests),
        )

    def _each(self, tree: Any, function: Callable[[Any], Array]) -> Array:
        arrays = arrays_by_path(tree)
        return jnp.stack([function(arrays[path]) for path in self.paths])


def _fitted(one: Array, other: Array, rounding: Array, size: Array) -> tuple[Array, Array]:
    """Return the factor c of the least-squares fit one = c · other, and the largest residual."""
    squares = jnp.sum(other**2)
    factor = jnp.sum(one * other) / jnp.where(squares == 0, 1, squares)
    return factor, _apart(one, factor * other, rounding, size)


def _apart(one: Array, other: Array, rounding: Array, size: Array) -> Array:
    """Return the largest difference that exceeds rounding errors, relative to a size."""
    off = jnp.maximum(jnp.abs(one - other) - rounding, 0)
    return jnp.max(off, initial=0) / jnp.where(size == 0, 1, size)


def _norm(array: Array) -> Array:
    return jnp.sqrt(jnp.sum(array**2))


def _bits(array: Array) -> Array:
    """Return the number of significant bits in the narrowest format that represents all entries exactly."""
    bits = jnp.asarray(jnp.finfo(array.dtype).nmant + 1, array.dtype)
    for narrow in _BITS:
        fits = jnp.any(array != 0) & jnp.all(jax.lax.reduce_precision(array, 8, narrow - 1) == array)
        bits = jnp.where(fits, narrow, bits)
    return bits
