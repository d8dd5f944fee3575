"""The utility phase of alternating gradient flow: dormant neurons align and grow while the residual is frozen."""

from __future__ import annotations

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float

from dynascope.alternating.quadratic_neurons import error_moments, quadratic_slopes, slopes_by_moments
from dynascope.compilation import filter_jit
from dynascope.flows.objective import Samples
from dynascope.protocols import Average, SumOfNeurons

__all__ = ["Dormant", "Residual", "grow", "steepest"]

# Largest rotation of a direction in a step, unless this requires less than the shortest step: a neuron that slides
# along a kink of its activation oscillates indefinitely.
_ANGLE = 0.1
# The shortest and the longest step, in units of 1 / (largest gradient of the utility on the sphere). The longest step
# is shorter for high degrees, whose growth accelerates.
_SHORTEST, _LONGEST = 0.03, 0.5
# Iterations of ascent along the gradient of the utility, to estimate its largest size.
_ASCENT = 20
_ROUND_OFF = 1e-14
_TINY = 1e-300
# Distance to the threshold, in e-folds, from which growth is extrapolated to it.
_NEAR = 3.0
# Nodes and weights of the classical Runge–Kutta method.
_SHARES, _WEIGHTS = np.array([1, 1, 2, 2]) / 2, np.array([1, 2, 2, 1]) / 6
# Fraction of the longest time below which no time remains.
_AT_END = 1e-9


class Dormant(NamedTuple):
    """Dormant neurons in polar coordinates, which keep full precision at any norm.

    Attributes:
        directions: u = θ/‖θ‖, shape (neurons, weights).
        log_norms: ℓ = log ‖θ‖, shape (neurons,).
        spent: Direction that each neuron shares with the active neurons that have the same function, shape (neurons,
            weights); zeros if there are none. A neuron has no utility along this direction, so its size is measured
            orthogonal to it.
    """

    directions: Any
    log_norms: Any
    spent: Any

    def fresh(self) -> Any:
        """Return the component of u orthogonal to the spent direction."""
        return self.directions - (self.directions * self.spent).sum(axis=1, keepdims=True) * self.spent

    def log_sizes(self) -> Array:
        """Return the log-norm of the component of θ orthogonal to the spent direction."""
        return self.log_norms + jnp.log(jnp.maximum(jnp.linalg.norm(self.fresh(), axis=1), _TINY))


class Residual(eqx.Module):
    """Frozen residual of the active neurons, which defines the utility of dormant neurons.

    The utility is minus the first-order change in the loss when the outputs of dormant neurons are added.

    Attributes:
        network: Network that defines the function of a neuron.
        average: Samples or expectation that defines the loss.
        active: Weights Θ of the active neurons, with zeros in all other rows.
        error: y − f(x) of the active neurons if the average is over samples, else None.
        moments: E[r x xᵀ] for each output, if the utility depends on the samples only through these moments and
            computing with them is faster; else None.
    """

    network: SumOfNeurons
    average: Any  # Average; Samples if there is an error
    active: Float[Array, "neurons weights"]
    error: Any
    moments: Any

    def __init__(self, network: SumOfNeurons, average: Average, active: Float[Array, "neurons weights"]):
        self.network = network
        self.average = average
        self.active = active
        self.error = self.moments = None
        if isinstance(average, Samples):
            self.error = average.residual(network.with_neurons(active))
            if slopes_by_moments(network, average) < 1:
                self.moments = error_moments(average.inputs, self.error)

    def utility(self, rows: Float[Array, "neurons weights"], counted: Bool[Array, " neurons"]) -> Float[Array, ""]:
        """Compute Σ U(θ_i) = Σ E⟨f(x; θ_i), r(x)⟩ over the counted neurons i, which must be dormant."""
        counts = counted.astype(rows.dtype)
        if self.error is not None:
            outputs = self.network.with_neurons(rows).weighted(counts)(self.average.inputs)
            return jnp.sum(outputs * self.error) / len(self.error)
        # The outputs of dormant neurons have coefficient zero in the loss; U is minus the derivative in it.
        present = jnp.where(counted[:, None], rows, self.active)

        def loss(coefficients: Array) -> Array:
            return self.average.loss(self.network.with_neurons(present).weighted(coefficients))

        return -jax.jvp(loss, (1 - counts,), (counts,))[1]

    def slopes(self, rows: Float[Array, "neurons weights"], counted: Bool[Array, " neurons"]) -> Array:
        """Compute ∇U(θ_i) for each counted neuron, and zero for the others; shape (neurons, weights)."""
        if self.moments is not None:
            return jnp.where(counted[:, None], quadratic_slopes(self.network, self.moments, rows), 0)
        return jnp.where(counted[:, None], jax.grad(self.utility)(rows, counted), 0)


@filter_jit
def steepest(residual: Residual, rows: Float[Array, "neurons weights"], counted: Bool[Array, " neurons"]) -> Array:
    """Return the largest ‖∇U‖ that each counted neuron reaches while it ascends its utility on the sphere."""

    def ascend(_: Any, carry: tuple[Array, Array]) -> tuple[Array, Array]:
        directions, largest = carry
        slopes = residual.slopes(directions, counted)
        sizes = jnp.linalg.norm(slopes, axis=1)
        moving = sizes > 0
        ahead = slopes / jnp.where(moving, sizes, 1)[:, None]
        return jnp.where(moving[:, None], ahead, directions), jnp.maximum(largest, sizes)

    return jax.lax.fori_loop(0, _ASCENT, ascend, (rows, jnp.zeros(len(rows), rows.dtype)))[1]


@filter_jit
def grow(
    residual: Residual,
    dormant: Dormant,
    waiting: Bool[Array, " neurons"],
    start: Float[Array, "neurons weights"],
    numbers: dict[str, Array],
    power: Array,
) -> tuple[Dormant, dict[str, Array]]:
    """Integrate the waiting neurons until the first of them reaches the threshold.

    With u = θ/‖θ‖ and ℓ = log‖θ‖, each neuron obeys u' = ω (I − uuᵀ) ∇U(u) and ℓ' = ω ⟨∇U(u), u⟩ = ω κ U(u), where
    ω = ‖θ‖^(κ−2), or 1 in the normalised flow. The equations are integrated by the classical Runge–Kutta method in the
    rescaled time ds = ω_max dt of the largest neuron, in which a blow-up occurs only at s = ∞.

    Args:
        residual: The frozen residual.
        dormant: All neurons; those that are not waiting remain unchanged.
        waiting: Mask of the neurons to integrate.
        start: Directions from which the largest gradient is estimated.
        numbers: `threshold` (log c), `longest` (time after which to stop), `least` (growth rates below it count as
            zero), `max_steps`, and `sense` (1, or −1 to integrate backwards in time).
        power: κ − 2, or zero in the normalised flow.

    Returns:
        The neurons at the time when the first of them reaches the threshold, or when none can reach it; and a
        dictionary of `elapsed` (time), `reached` (whether a neuron reached the threshold), `log_sizes` at the end,
        `growth` (growth rates in the time of the largest neuron) and `steps`.
    """
    # A map compiles a single program for both.
    largest = jax.lax.map(lambda rows: steepest(residual, rows, waiting), jnp.stack([start, dormant.directions]))
    best = jnp.max(largest, initial=0.0)

    # Active neurons are stationary. Their remaining gradient is an error of the cost phase, largest at kinks. It would
    # drive away the dormant neurons with the same function over the whole plateau, and is therefore subtracted.
    follows = jnp.any(dormant.spent != 0, axis=1)
    unrest = residual.slopes(jnp.where(follows[:, None], dormant.spent, dormant.directions), waiting & follows)

    def rates(state: Dormant) -> tuple[Array, Array, Array]:
        along = jnp.sum(state.directions * state.spent, axis=1, keepdims=True)
        slopes = residual.slopes(state.directions, waiting) - along * unrest
        growth = jnp.sum(slopes * state.directions, axis=1)
        largest = jnp.max(jnp.where(waiting, state.log_norms, -jnp.inf))
        pace = numbers["sense"] * jnp.exp(power * jnp.where(waiting, state.log_norms - largest, 0))
        turning = slopes - growth[:, None] * state.directions
        return pace[:, None] * turning, pace * growth, jnp.exp(-power * largest)

    def moved(state: Dormant, by: Any, step: Array) -> Dormant:
        directions = state.directions + step * by[0]
        directions /= jnp.linalg.norm(directions, axis=1, keepdims=True)
        return Dormant(directions, state.log_norms + step * by[1], state.spent)

    def step(carry: Any) -> Any:
        state, first, elapsed, count, _ = carry
        turning, growth, _ = first
        scale = jnp.maximum(best, jnp.max(jnp.hypot(jnp.linalg.norm(turning, axis=1), growth)))
        turn = jnp.max(jnp.linalg.norm(turning, axis=1))
        size = jnp.clip(_ANGLE / turn, _SHORTEST / scale, _LONGEST / ((1 + power) * scale))
        swelling = growth + _spread(state, turning)
        missing = numbers["threshold"] - state.log_sizes()
        near = waiting & (swelling > 0) & (missing < _NEAR)
        size = jnp.minimum(size, jnp.min(jnp.where(near, missing / jnp.where(near, swelling, 1), jnp.inf)))
        # If all neurons are tiny, a step in the time of the largest neuron may exceed the remaining time.
        size = jnp.minimum(size, (numbers["longest"] - elapsed) / first[2])

        def stage(carry: Any, numbers: tuple[Array, Array, Array]) -> tuple[Any, None]:
            _, before, mean = carry
            share, weight, last = numbers
            # The last stage evaluates the rates at the end of the step.
            mean = jax.tree.map(lambda so_far, each: so_far + weight * each, mean, before)
            by = jax.tree.map(lambda each, all: jnp.where(last, all, share * each), before, mean)
            there = moved(state, by, size)
            return (there, rates(there), mean), None

        start = state, first, jax.tree.map(jnp.zeros_like, first)
        stages = jnp.asarray(_SHARES), jnp.asarray(_WEIGHTS), jnp.arange(4) == 3
        (there, ahead, mean), _ = jax.lax.scan(stage, start, stages)
        idle = (jnp.max(jnp.where(waiting, growth, -jnp.inf)) <= numbers["least"]) & (turn <= _ROUND_OFF * scale)
        later = elapsed + size * mean[2]
        # The conversion between the two times changes within a step, so the end would be approached but never reached.
        later = jnp.where(later > numbers["longest"] * (1 - _AT_END), jnp.maximum(later, numbers["longest"]), later)
        return there, ahead, later, count + 1, idle

    def unfinished(carry: Any) -> Array:
        state, _, elapsed, count, idle = carry
        return ~(reached(state) | idle) & (elapsed < numbers["longest"]) & (count < numbers["max_steps"])

    def reached(state: Dormant) -> Array:
        return jnp.max(jnp.where(waiting, state.log_sizes(), -jnp.inf)) >= numbers["threshold"] - 1e-9

    zero = jnp.zeros((), dormant.log_norms.dtype)
    carry = (dormant, rates(dormant), zero, jnp.zeros((), int), ~jnp.any(waiting) | (best <= numbers["least"]))
    state, (turning, growth, _), elapsed, count, _ = jax.lax.while_loop(unfinished, step, carry)
    end = {
        "elapsed": elapsed,
        "reached": reached(state),
        "log_sizes": state.log_sizes(),
        "growth": growth + _spread(state, turning),
        "steps": count,
    }
    return state, end


def _spread(state: Dormant, turning: Array) -> Array:
    """Return the rate at which rotation increases `log_sizes`: (log ‖fresh‖)'."""
    fresh = state.fresh()
    return jnp.sum(fresh * turning, axis=1) / jnp.maximum(jnp.sum(fresh**2, axis=1), _TINY)
