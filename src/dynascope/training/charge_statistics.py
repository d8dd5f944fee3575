"""Charges of symmetries along a run, beside what the law of the optimiser says of them and what rounding can do."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from dynascope.symmetry import Charge, charges
from dynascope.symmetry.map_symmetries import in_turn
from dynascope.symmetry.step_rules import Rule
from dynascope.symmetry.symmetry_arguments import require_symmetries
from dynascope.theory.sgd import Momentum
from dynascope.theory.symmetry.rounding import DEVIATIONS, SUMMED
from dynascope.training.charge_causes import cause_statistics
from dynascope.training.charge_declaration import Declaration, momentum_buffer
from dynascope.training.statistics import Recursion
from dynascope.training.step import Step
from dynascope.validation.bounded_scalars import NonNegativeFloat, PositiveFloat, PositiveInt

__all__ = ["charge_statistics"]


def charge_statistics(
    symmetries: Sequence[Charge],
    *,
    optimizer: Rule = "heavy_ball",
    momentum: Momentum | Mapping[str, Momentum] = 0.0,
    weight_decay: NonNegativeFloat | Mapping[str, NonNegativeFloat] = 0.0,
    rates: PositiveFloat | Mapping[str, PositiveFloat] = 1.0,
    gradient_roundings: PositiveInt = 128,
    causes: bool = False,
) -> dict[str, Any]:
    """Statistics that put every charge beside its law, in memory that does not grow with the steps.

    Gradient flow conserves r = θᵀGθ of a symmetry. Steps do not: with c = θᵀGv and the update d, a step of heavy ball
    c ← β c + λ r, r ← r − 2η c + dᵀGd, c ← c − dᵀGd/η is exact for any data, batches and schedule of the rate, and so
    are the laws of Nesterov's steps and of decoupled decay (see `theory.symmetry.scheduled_charge`). They are followed
    beside the training, step by step. A residual above the bound proves that training is not what was declared:
    gradients that are clipped by value or by tensor, another decay of one layer, an ε that breaks the symmetry, a wrong
    backward pass. Clipping by the global norm keeps every law; of Nesterov's steps if the optimiser holds its buffer as
    optax does, for otherwise the gradient is taken to be the one that was followed.

    Args:
        symmetries: Those of `symmetry.find_symmetries` of a function of `eqx.filter(network, eqx.is_inexact_array)`.
        optimizer: How the weights move: "heavy_ball", which without momentum is plain descent, with decay that is added
            to the gradient; "nesterov", likewise; or "decoupled", with weights that shrink by ηλ beside the step.
        momentum: β ≥ 0, below one; or one for each parameter by its path, as `Charge.paths` has it, equal within
            each symmetry.
        weight_decay: λ ≥ 0, likewise one or by path; where it differs within a symmetry, the law asks the weights.
        rates: ρ > 0, likewise, where the learning rate of a parameter is ρη: η is that of `Descent` or its schedule,
            or of layers with rates of their own what these are at ρ = 1. The law is then of Σ θ_AᵀGθ_A/ρ_A over the
            parameters A of a symmetry, which is what is recorded.
        gradient_roundings: How many terms the longest sum of the backward pass has, for the bound; more where
            gradients are nothing but what cancellation leaves.
        causes: Whether to record what `symmetry.audit` tests causes by, too: seven numbers for each part of a charge
            and 19 for each parameter, with which a step of a small network takes up to twice as long.

    Returns:
        The `statistics` of a `Descent`. They record over (step, charge), in the order of
        `symmetry.charges`, `measured_charge`, `predicted_charge`, `charge_bound`, which rounding cannot exceed, and
        `charge_warning`, which it exceeds only where its errors repeat, as of weights at rest. These are the levels of
        `theory.symmetry.rounding_level`; of a sum of n weights, the gradient of which may be nothing but what rounding
        leaves of terms that cancel, with Σ|d| + n max |d| for the size of a step, max being over all weights.

    Raises:
        InputError: A number out of range, a parameter without one, or something else than symmetries; a momentum, or of
            decoupled decay ρλ, that differs within a symmetry, for which there is no law. When the run starts: layers
            with rates of their own that were not declared.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, of which this is the discrete form.

    Example:
        >>> import equinox as eqx
        >>> import numpy as np
        >>> from dynascope.training import Descent, descend
        >>> from dynascope.networks import TwoLayer
        >>> from dynascope.symmetry import find_symmetries
        >>> from dynascope.tasks import Task
        >>> network, task = TwoLayer(2, 3, 1, activation="relu"), Task(np.eye(2), [[1.0], [-2.0]])
        >>> weights, rest = eqx.partition(network, eqx.is_inexact_array)
        >>> found = find_symmetries(lambda theta, x: eqx.combine(theta, rest)(x), weights, task.inputs)
        >>> method = Descent(steps=50, learning_rate=0.1, statistics=charge_statistics(found.symmetries))
        >>> run = descend(task, network, method)
        >>> residual = abs(run["measured_charge"] - run["predicted_charge"])
        >>> run["measured_charge"].dims, bool((residual <= run["charge_bound"]).all())
        (('step', 'charge'), True)
    """
    require_symmetries(symmetries, remedy="give those that symmetry.find_symmetries finds, at least one")
    declared = Declaration.checked(
        symmetries,
        optimizer=optimizer,
        momentum=momentum,
        weight_decay=weight_decay,
        rates=rates,
        gradient_roundings=gradient_roundings,
    )
    found = _statistics(declared, causes)
    return dict(found)


# Methods are equal only if they are of the same object, so equal declarations have to share their laws.
@functools.lru_cache(maxsize=32)
def _statistics(declared: Declaration, causes: bool) -> dict[str, Any]:
    law = _Law(declared)
    return {
        "measured_charge": (law.measured, ("charge",)),
        "predicted_charge": Recursion(law.start, law.following, _predicted, ["charge"]),
        "charge_bound": Recursion(law.start, law.following, law.bound, ["charge"]),
        "charge_warning": Recursion(law.start, law.following, law.warning, ["charge"]),
        **(cause_statistics(declared) if causes else {}),
    }


class _State(NamedTuple):
    """The law so far, and the sums of which the levels of rounding are made; each of the shape (charge,)."""

    charge: Array  # r, or the sum of weights
    lost: Array  # what rounding lost of that
    crossed: Array  # c = θᵀGv, or the sum of buffers
    first: Array  # R = θᵀ|G|θ of the start
    size: Array  # R now
    moved: Array  # √S of the latest step, S = dᵀ|G|d; of sums of weights S itself
    weights: Array  # number of weights that a sum of weights has
    steps: Array  # Σ S, of squares
    largest: Array  # Σ of what rounding does at most
    squares: Array  # Σ of its squares


@dataclasses.dataclass(frozen=True)
class _Law:
    """The law of the declared rule."""

    declared: Declaration

    @property
    def symmetries(self) -> tuple[Charge, ...]:
        return self.declared.weighed

    def measured(self, network: Any) -> Array:
        return jnp.asarray(charges(network, self.symmetries))

    def start(self, weights: Any) -> _State:
        charge, size = jnp.asarray(charges(weights, self.symmetries)), self._sizes(self.symmetries, weights)
        zero = jnp.zeros_like(charge)
        count = self._sizes(self.declared.symmetries, jax.tree.map(jnp.ones_like, weights))
        return _State(charge, zero, zero, size, size, zero, count, zero, zero, zero)

    def following(self, state: _State, step: Step) -> _State:
        rate = jnp.asarray(self.declared.common_rate(step.learning_rate), state.charge.dtype)
        pushed, square = self._moved(step.update)
        change, crossed = self._law(state, step, rate, pushed)
        total = state.charge + change
        kept = jnp.abs(state.charge) >= jnp.abs(change)
        lost = jnp.where(kept, (state.charge - total) + change, (change - total) + state.charge)
        return self._rounded(state, step, square, rate)._replace(charge=total, lost=state.lost + lost, crossed=crossed)

    def _law(self, state: _State, step: Step, rate: Array, pushed: Array) -> tuple[Array, Array]:
        """By how much the charge changes, and the crossed charge after the step."""
        declared, linear, kind = self.declared, self.declared.linear, state.charge.dtype
        beta, decay = declared.momenta(kind), declared.shrinking(kind)
        now = state.charge + state.lost
        # A step at rate zero moves nothing, and η vᵀGv is zero.
        safe = jnp.where(rate == 0, 1, rate)
        if declared.optimizer == "decoupled":
            left = 1 - rate * decay
            buffers = declared.decayed(step.update, step.weights, rate)
            some = not isinstance(decay, float) or decay > 0
            pushed = self._form(self.symmetries, buffers, buffers) if some else pushed
            before = beta * state.crossed
            shrunk = jnp.where(linear, rate * decay, rate * decay * (1 + left)) * now
            change = pushed - shrunk - jnp.where(linear, rate, 2 * rate * left) * before
            return change, jnp.where(linear, before, left * before - pushed / safe)
        pull = decay * now
        if not declared.shrinks_alike.all():
            recorded = jnp.asarray(charges(step.weights, declared.pulled))
            pull = jnp.where(declared.shrinks_alike, pull, recorded)
        crossed = beta * state.crossed + pull
        if declared.optimizer == "heavy_ball":
            return pushed - jnp.where(linear, 1, 2) * rate * crossed, crossed - pushed / safe
        along = pull + beta * crossed
        both = pushed / safe**2
        held, unweighed = momentum_buffer(step), declared.symmetries
        if held is not None:
            both = -self._form(unweighed, step.update, held) / safe
        elif not isinstance(beta, float) or beta > 0:
            slope = self._form(unweighed, step.update, step.gradient)
            slope += self._form(declared.pulled, step.update, step.weights)
            some = jnp.asarray(beta) > 0
            both = jnp.where(some, (both + slope / safe) / jnp.where(some, beta, 1), both)
        change = pushed - jnp.where(linear, 1, 2) * rate * along
        return change, crossed - jnp.where(linear, 0, rate * both)

    def _rounded(self, state: _State, step: Step, square: Array, rate: Array) -> _State:
        """The state with the sums of `theory.symmetry.rounding_level`; of sums of weights S is Σ|d| + n max |d|."""
        declared, linear = self.declared, self.declared.linear
        unit = float(jnp.finfo(state.charge.dtype).eps) / 2
        size = jnp.concatenate(in_turn(self.symmetries, _size_after, step.weights, step.update))
        # A bias before a normalisation has a gradient of nothing but rounding: that of the terms that cancel in it,
        # which are of the size of what other weights get. So max is over the steps of all weights.
        evened, beta = declared.at_one_rate(step.update), declared.momenta(state.charge.dtype)
        largest = [jnp.max(jnp.abs(d)) for d in jax.tree.leaves(evened)]
        cancelled = state.weights * jnp.max(jnp.stack([*largest, jnp.asarray(step.unseen_update, square.dtype)]))
        moved = jnp.where(linear, square + cancelled.astype(square.dtype), jnp.sqrt(square))
        stored = jnp.where(linear, 1, 2) * (3 if declared.optimizer == "decoupled" else 1) * unit * size
        if not declared.shrinks_alike.all():
            # The law takes what decay pulls from weights, and rounds it each time.
            pulled = SUMMED * unit * rate * self._sizes(declared.pulled, step.weights) / (1 - beta)
            stored = stored + jnp.where(declared.shrinks_alike, 0, jnp.where(linear, 1, 2) * pulled)
        computed = unit * (moved + beta * state.moved) / (1 - beta)
        computed = computed * jnp.where(linear, 1, 2 * jnp.sqrt(state.size))
        return state._replace(
            size=size,
            moved=moved,
            steps=state.steps + jnp.where(linear, 0, square),
            largest=state.largest + stored + declared.gradient_roundings * computed,
            squares=state.squares + stored**2 + declared.gradient_roundings * computed**2,
        )

    def bound(self, state: _State) -> Array:
        return state.largest + self._evaluated(state)

    def warning(self, state: _State) -> Array:
        rule = DEVIATIONS * jnp.sqrt(state.squares)
        return jnp.minimum(rule, state.largest) + self._evaluated(state)

    def _evaluated(self, state: _State) -> Array:
        """Rounding of the recorded charges and of the law itself."""
        unit = float(jnp.finfo(state.charge.dtype).eps) / 2
        beta = self.declared.momenta(state.charge.dtype)
        repeated = (1 + beta) / (1 - beta)
        return SUMMED * unit * (state.first + state.size + repeated * state.steps)

    def _sizes(self, symmetries: tuple[Charge, ...], tree: Any) -> Array:
        """θᵀ|G|θ of each charge, and of sums of weights Σ|θ|."""
        return jnp.concatenate(in_turn(symmetries, Charge.size_form, tree))

    def _moved(self, update: Any) -> tuple[Array, Array]:
        """dᵀGd, which sums of weights do not have, and dᵀ|G|d."""
        forms, squares = zip(*in_turn(self.symmetries, Charge.form_and_size, update), strict=True)
        return jnp.where(self.declared.linear, 0, jnp.concatenate(forms)), jnp.concatenate(squares)

    def _form(self, symmetries: tuple[Charge, ...], left: Any, right: Any) -> Array:
        """θᵀGv, and zero of sums of weights, which gradients do not change."""
        values = [jnp.zeros(each.size) if each.kind == "translation" else each.form(left, right) for each in symmetries]
        return jnp.concatenate(values)


def _predicted(state: _State) -> Array:
    return state.charge + state.lost


def _size_after(symmetry: Charge, weights: Any, update: Any) -> Array:
    return symmetry.size_form(jax.tree.map(jnp.add, weights, update))
