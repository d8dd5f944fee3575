"""Statistics that record the charges of symmetries (conserved by gradient flow), with predictions and bounds."""

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
    """Return statistics that record charges, the predictions of their laws, and bounds on rounding errors.

    Gradient flow conserves the charge r = θᵀGθ of a symmetry. Discrete steps do not conserve the charge but change it
    according to an exact law. With c = θᵀGv and the update d, a heavy-ball step is

        c ← β c + λ r,  r ← r − 2η c + dᵀGd,  c ← c − dᵀGd/η,

    for any data, batches and learning-rate schedule. Similar laws hold for Nesterov momentum and for decoupled weight
    decay (see `theory.symmetry.scheduled_charge`). The statistics evaluate the law at every training step, in memory
    that does not grow with the number of steps.

    A residual above the bound proves that training differs from the declared settings. Examples are gradients clipped
    by value or by tensor, a different weight decay in one layer, an ε that breaks the symmetry, and a wrong backward
    pass. Clipping by the global norm preserves every law, but with Nesterov momentum only if the optimiser stores its
    buffer as optax does. Without this buffer, the law assumes that the optimiser used the recorded, unclipped gradient.

    Args:
        symmetries: The result of `symmetry.find_symmetries` for a function of
            `eqx.filter(network, eqx.is_inexact_array)`.
        optimizer: The update rule. "heavy_ball" adds weight decay to the gradient; with momentum zero, this rule is
            gradient descent. "nesterov" also adds weight decay to the gradient. "decoupled" multiplies the weights by
            1 − ηλ in a separate operation.
        momentum: β, 0 ≤ β < 1: one number, or one for each parameter path, as in `Charge.paths`. All parameters of a
            symmetry must have the same β.
        weight_decay: λ ≥ 0: one number, or one for each parameter path. If λ differs between the parameters of a
            symmetry, the law also depends on the recorded weights.
        rates: ρ > 0: one number, or one for each parameter path. The learning rate of a parameter is ρη, where η is the
            rate or the schedule of `Descent`, or the rate of layers with ρ = 1. The recorded charges are Σ θ_AᵀGθ_A/ρ_A
            over the parameters A of a symmetry.
        gradient_roundings: Number of terms in the longest sum of the backward pass, which enters the bound. Increase
            this number if gradients are dominated by cancellation errors.
        causes: Whether to record the statistics from which `symmetry.audit` diagnoses violations. The statistics are
            seven numbers for each part of a charge and 19 for each parameter. For a small network, recording these
            numbers can double the duration of a step.

    Returns:
        The `statistics` of a `Descent`, which record `measured_charge`, `predicted_charge`, `charge_bound` and
        `charge_warning` over (step, charge), in the order of `symmetry.charges`. Rounding errors cannot exceed the
        bound. Independent rounding errors rarely exceed the warning level, but errors that repeat at every step can
        exceed it, for example if the weights hardly move. The bound and the warning level are those of
        `theory.symmetry.rounding_level`. For a charge that is a sum of n weights, the gradient terms may cancel, so
        that only rounding errors remain. The step size in the bound is therefore Σ|d| + n max |d|, with the maximum
        over all weights.

    Raises:
        InputError: If a number is out of range, if a parameter has no number, if `symmetries` contains no symmetries,
            or if the momentum (or ρλ for decoupled decay) differs between the parameters of a symmetry, whose charge
            then obeys no law. The run raises this error if layers have different learning rates that were not declared.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, for the laws in continuous time.

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
    require_symmetries(symmetries, remedy="give at least one symmetry from symmetry.find_symmetries")
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


# Bound methods are equal only if they belong to the same object, so equal declarations share one law.
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
    """State of the charge law and of the rounding levels; each field has shape (charge,)."""

    charge: Array  # r; for translations, the sum of weights
    lost: Array  # rounding error of the charge
    crossed: Array  # c = θᵀGv; for translations, the sum of the buffers
    first: Array  # R = θᵀ|G|θ of the initial weights
    size: Array  # R of the current weights
    moved: Array  # √S of the latest step, S = dᵀ|G|d; for sums of weights S itself
    weights: Array  # number of weights in a sum of weights
    steps: Array  # Σ S for charges that are sums of squares
    largest: Array  # sum of the bounds on rounding errors
    squares: Array  # sum of the squares of these bounds


@dataclasses.dataclass(frozen=True)
class _Law:
    """The charge law of the declared update rule."""

    declared: Declaration

    @property
    def symmetries(self) -> tuple[Charge, ...]:
        return self.declared.weighted

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
        """Return the change in the charge, and θᵀGv after the step."""
        declared, linear, kind = self.declared, self.declared.linear, state.charge.dtype
        beta, decay = declared.momenta(kind), declared.shrinkage(kind)
        now = state.charge + state.lost
        # At learning rate zero the weights do not move, and η vᵀGv is zero.
        safe = jnp.where(rate == 0, 1, rate)
        if declared.optimizer == "decoupled":
            left = 1 - rate * decay
            buffers = declared.without_decay(step.update, step.weights, rate)
            some = not isinstance(decay, float) or decay > 0
            pushed = self._form(self.symmetries, buffers, buffers) if some else pushed
            before = beta * state.crossed
            shrunk = jnp.where(linear, rate * decay, rate * decay * (1 + left)) * now
            change = pushed - shrunk - jnp.where(linear, rate, 2 * rate * left) * before
            return change, jnp.where(linear, before, left * before - pushed / safe)
        pull = decay * now
        if not declared.uniform_decay.all():
            recorded = jnp.asarray(charges(step.weights, declared.decay_weighted))
            pull = jnp.where(declared.uniform_decay, pull, recorded)
        crossed = beta * state.crossed + pull
        if declared.optimizer == "heavy_ball":
            return pushed - jnp.where(linear, 1, 2) * rate * crossed, crossed - pushed / safe
        along = pull + beta * crossed
        both = pushed / safe**2
        held, unweighted = momentum_buffer(step), declared.symmetries
        if held is not None:
            both = -self._form(unweighted, step.update, held) / safe
        elif not isinstance(beta, float) or beta > 0:
            slope = self._form(unweighted, step.update, step.gradient)
            slope += self._form(declared.decay_weighted, step.update, step.weights)
            some = jnp.asarray(beta) > 0
            both = jnp.where(some, (both + slope / safe) / jnp.where(some, beta, 1), both)
        change = pushed - jnp.where(linear, 1, 2) * rate * along
        return change, crossed - jnp.where(linear, 0, rate * both)

    def _rounded(self, state: _State, step: Step, square: Array, rate: Array) -> _State:
        """Update the sums of `theory.symmetry.rounding_level`.

        For sums of weights, the step size is Σ|d| + n max |d|.
        """
        declared, linear = self.declared, self.declared.linear
        unit = float(jnp.finfo(state.charge.dtype).eps) / 2
        size = jnp.concatenate(in_turn(self.symmetries, _size_after, step.weights, step.update))
        # The gradient of a bias followed by a normalisation consists of rounding errors, because its terms cancel. The
        # terms are as large as the gradients of other weights, so the maximum is over all weights.
        rescaled, beta = declared.at_one_rate(step.update), declared.momenta(state.charge.dtype)
        largest = [jnp.max(jnp.abs(d)) for d in jax.tree.leaves(rescaled)]
        cancelled = state.weights * jnp.max(jnp.stack([*largest, jnp.asarray(step.unseen_update, square.dtype)]))
        moved = jnp.where(linear, square + cancelled.astype(square.dtype), jnp.sqrt(square))
        stored = jnp.where(linear, 1, 2) * (3 if declared.optimizer == "decoupled" else 1) * unit * size
        if not declared.uniform_decay.all():
            # The law computes the effect of decay from the weights, with rounding errors at every step.
            pulled = SUMMED * unit * rate * self._sizes(declared.decay_weighted, step.weights) / (1 - beta)
            stored = stored + jnp.where(declared.uniform_decay, 0, jnp.where(linear, 1, 2) * pulled)
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
        """Return the rounding errors of the recorded charges and of the law itself."""
        unit = float(jnp.finfo(state.charge.dtype).eps) / 2
        beta = self.declared.momenta(state.charge.dtype)
        repeated = (1 + beta) / (1 - beta)
        return SUMMED * unit * (state.first + state.size + repeated * state.steps)

    def _sizes(self, symmetries: tuple[Charge, ...], tree: Any) -> Array:
        """Return θᵀ|G|θ of each charge, or Σ|θ| for sums of weights."""
        return jnp.concatenate(in_turn(symmetries, lambda each, theta: each.size_form(theta), tree))

    def _moved(self, update: Any) -> tuple[Array, Array]:
        """Return dᵀGd, which is zero for sums of weights, and dᵀ|G|d."""
        forms, squares = zip(*in_turn(self.symmetries, Charge.form_and_size, update), strict=True)
        return jnp.where(self.declared.linear, 0, jnp.concatenate(forms)), jnp.concatenate(squares)

    def _form(self, symmetries: tuple[Charge, ...], left: Any, right: Any) -> Array:
        """Return θᵀGv, which is zero for sums of weights, because gradients do not change these sums."""
        values = [jnp.zeros(each.size) if each.kind == "translation" else each.form(left, right) for each in symmetries]
        return jnp.concatenate(values)


def _predicted(state: _State) -> Array:
    return state.charge + state.lost


def _size_after(symmetry: Charge, weights: Any, update: Any) -> Array:
    return symmetry.size_form(jax.tree.map(jnp.add, weights, update))
