"""How the updates of each parameter depart from its gradients: the departures that have a known cause, fitted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dynascope.symmetry.parameters import arrays_by_path
from dynascope.symmetry.step_rules import DEPARTURES, RULES, Rule
from dynascope.symmetry.tracked import parameter_paths
from dynascope.training.charge_groups import ChargeGroups
from dynascope.training.statistics import Latest, Recursion, Step, StepStatistic

__all__ = ["update_statistics"]

_LAST_BITS = 4  # roundings of an update, and of the weights that it is read from
_BITS = {"bfloat16": 8, "float16": 11}  # significant bits of the formats of autocast


def update_statistics(groups: ChargeGroups, optimizer: Rule) -> dict[str, StepStatistic]:
    """Statistics of each parameter, along `layer` in the order of the parts, for `symmetry.audit`.

    With the gradient g of the loss and the gradient g′ from which the declared rule makes the update d that was made:

    - `gradient_norm`, `gradient_largest` and `update_norm`: ‖g‖, max |g| and ‖d‖.
    - `gradient_bits`: the significant bits that hold every entry of g, 8 of bfloat16, 11 of float16, or all.
    - `change`: max |g′ − g|, and `change_by_rule`: the change if the rule were heavy ball, Nesterov's or decoupled
      decay. Both are relative to max |g|.
    - `clipping`: max |g′ − g cut off at max |g′||, relative to max |g′|.
    - `departure_factor` and `departure_rest`, for each of `DEPARTURES`: the factor c that fits the step best, and the
      largest entry that the fit leaves, relative to max |g|. With the update d* that the declared rule makes of all
      gradients up to now they are another decay, g′ − g = c θ, where decay is decoupled d − d* = −η c θ; another rate,
      d = c d*; another factor of the gradient, g′ = c g; an L1 decay, g′ − g = c sign θ; and another momentum,
      g′ − g = c v, with the buffer v.

    Args:
        groups: The parameters, and what is declared of each.
        optimizer: The declared rule.
    """
    own, layer = _Updates(groups, optimizer), ("layer",)
    hypotheses, departures = (*layer, "hypothesis"), (*layer, "departure")
    return {
        "gradient_norm": Latest(own.gradient_norm, layer),
        "gradient_largest": Latest(own.gradient_largest, layer),
        "gradient_bits": Latest(own.gradient_bits, layer),
        "update_norm": Latest(own.update_norm, layer),
        "clipping": Recursion(own.at_rest, own.following, _clipping, layer),
        "change": Recursion(own.at_rest, own.following, _change, layer),
        "change_by_rule": Recursion(own.at_rest, own.following, _change_by_rule, hypotheses),
        "departure_factor": Recursion(own.at_rest, own.following, _departure_factor, departures),
        "departure_rest": Recursion(own.at_rest, own.following, _departure_rest, departures),
    }


class _State(NamedTuple):
    """What the steps up to now imply, for each parameter."""

    buffers: tuple[tuple[Array, ...], ...]  # of momentum by each rule, read from updates; a zero without momentum
    intended: tuple[Array, ...]  # of momentum by the declared rule, made of gradients
    clipping: Array
    change: Array
    change_by_rule: Array
    departure_factor: Array
    departure_rest: Array


@dataclasses.dataclass(frozen=True)
class _Updates:
    """The parameters and the declared rule. Equal objects find the same compiled program."""

    groups: ChargeGroups
    optimizer: Rule

    @property
    def paths(self) -> tuple[str, ...]:
        return parameter_paths(self.groups.symmetries)

    def gradient_norm(self, step: Step) -> Array:
        return self._each(step.gradient, lambda leaf: jnp.sqrt(jnp.sum(leaf**2)))

    def gradient_largest(self, step: Step) -> Array:
        return self._each(step.gradient, lambda leaf: jnp.max(jnp.abs(leaf), initial=0))

    def gradient_bits(self, step: Step) -> Array:
        return self._each(step.gradient, _bits)

    def update_norm(self, step: Step) -> Array:
        return self._each(step.update, lambda leaf: jnp.sqrt(jnp.sum(leaf**2)))

    def at_rest(self, weights: Any) -> _State:
        arrays, momenta = arrays_by_path(weights), dict(self.groups.momentum)
        leaves = [arrays[path] for path in self.paths]
        empty = tuple(
            jnp.zeros_like(leaf) if momenta[path] else jnp.zeros((), leaf.dtype)
            for path, leaf in zip(self.paths, leaves, strict=True)
        )
        zero = jnp.zeros(len(leaves), leaves[0].dtype)
        rules, departures = (jnp.zeros((len(leaves), len(each)), zero.dtype) for each in (RULES, DEPARTURES))
        # Without declared momentum the last step is kept too: it shows momentum that was not declared.
        buffers = tuple(
            tuple(jnp.zeros_like(leaf) if rule == self.optimizer else each for rule in RULES)
            for leaf, each in zip(leaves, empty, strict=True)
        )
        return _State(buffers, empty, zero, zero, rules, departures, departures)

    def following(self, state: _State, step: Step) -> _State:
        """The state after a step; a step at rate zero shows nothing of its gradient, which is taken as declared."""
        common = jnp.asarray(self.groups.common_rate(step.learning_rate), state.change.dtype)
        rates, decays, momenta = (
            dict(each) for each in (self.groups.rates, self.groups.weight_decay, self.groups.momentum)
        )
        arrays = [arrays_by_path(tree) for tree in (step.weights, step.gradient, step.update)]
        unit = float(jnp.finfo(common.dtype).eps) / 2
        buffers, intended, clipping, changes, factors, rests = [], [], [], [], [], []
        for path, held, before in zip(self.paths, state.buffers, state.intended, strict=True):
            theta, gradient, update = (each[path] for each in arrays)
            beta, decay, still = momenta[path], decays[path], common == 0
            ahead = jnp.where(still, 1, common) * rates[path]
            along, decayed = -update / ahead, decay * theta
            # Where updates are seen as differences of weights, the last bits of these are in them.
            last = (jnp.abs(theta) + jnp.abs(update)) / ahead
            largest, new, by_rule = jnp.max(jnp.abs(gradient), initial=0), [], []
            buffer, made = _made(self.optimizer, gradient, before, beta, decayed)
            intended.append(buffer if beta else before)
            for rule, own in zip(RULES, held, strict=True):
                buffer, used = _used(rule, along, own, beta, decayed)
                resting = beta * own + gradient + (0 if rule == "decoupled" else decayed)
                new.append(jnp.where(still, resting, buffer) if beta or rule == self.optimizer else own)
                used = jnp.where(still, gradient, used)
                rounding = _LAST_BITS * unit * (last + (jnp.abs(own) if beta else 0))
                by_rule.append(_apart(used, gradient, rounding, largest))
                if rule == self.optimizer:
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
        return _State(
            buffers=tuple(buffers),
            intended=tuple(intended),
            clipping=jnp.stack(clipping),
            change=change_by_rule[:, RULES.index(self.optimizer)],
            change_by_rule=change_by_rule,
            departure_factor=jnp.stack(factors),
            departure_rest=jnp.stack(rests),
        )

    def _each(self, tree: Any, function: Callable[[Any], Array]) -> Array:
        arrays = arrays_by_path(tree)
        return jnp.stack([function(arrays[path]) for path in self.paths])


def _used(rule: str, along: Array, held: Array, beta: Any, decayed: Array) -> tuple[Array, Array]:
    """The buffer after a step, and the gradient that went into it, of −d/η, the buffer before, β and λθ."""
    if rule == "nesterov":
        pushed = (along - beta**2 * held) / (1 + beta)
        return beta * held + pushed, pushed - decayed
    if rule == "decoupled":
        return along - decayed, along - decayed - beta * held
    return along, along - beta * held - decayed


def _made(rule: str, gradient: Array, held: Array, beta: Any, decayed: Array) -> tuple[Array, Array]:
    """The buffer after a step, and −d/η, of the gradient, the buffer before, β and λθ."""
    if rule == "decoupled":
        buffer = beta * held + gradient
        return buffer, buffer + decayed
    pushed = gradient + decayed
    buffer = beta * held + pushed
    return buffer, pushed + beta * buffer if rule == "nesterov" else buffer


def _fitted(one: Array, other: Array, rounding: Array, size: Array) -> tuple[Array, Array]:
    """The factor c of the least squares fit one = c · other, and the largest entry that it leaves."""
    squares = jnp.sum(other**2)
    factor = jnp.sum(one * other) / jnp.where(squares == 0, 1, squares)
    return factor, _apart(one, factor * other, rounding, size)


def _apart(one: Array, other: Array, rounding: Array, size: Array) -> Array:
    """The largest difference beyond rounding, in units of a size."""
    off = jnp.maximum(jnp.abs(one - other) - rounding, 0)
    return jnp.max(off, initial=0) / jnp.where(size == 0, 1, size)


def _bits(array: Array) -> Array:
    """The significant bits of the narrowest format of `_BITS` that holds all entries, otherwise those of the array."""
    bits = jnp.asarray(jnp.finfo(array.dtype).nmant + 1, array.dtype)
    for narrow in sorted(_BITS.values(), reverse=True):
        fits = jnp.any(array != 0) & jnp.all(jax.lax.reduce_precision(array, 8, narrow - 1) == array)
        bits = jnp.where(fits, narrow, bits)
    return bits


def _clipping(state: _State) -> Array:
    return state.clipping


def _change(state: _State) -> Array:
    return state.change


def _change_by_rule(state: _State) -> Array:
    return state.change_by_rule


def _departure_factor(state: _State) -> Array:
    return state.departure_factor


def _departure_rest(state: _State) -> Array:
    return state.departure_rest
