"""The cost phase of alternating gradient flow, in which active neurons descend the loss."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from dynascope.compilation import filter_jit
from dynascope.flows.exact.neuron_curvature import in_closed_form, loss_curvature, slopes_of_curvature
from dynascope.flows.solvers.integrate_until import FlowState, integrate_until, tsitouras
from dynascope.flows.solvers.rosenbrock import rosenbrock_step
from dynascope.flows.solvers.runge_kutta_legendre import legendre_step
from dynascope.protocols import Average, SumOfNeurons

__all__ = ["Settled", "settle"]

# Largest number of steps and relative tolerance of each solver. The explicit solver integrates the transient. If the
# rest is stiff, implicit steps take over, or the stabilised solver across kinks. The stabilised solver also integrates
# all of a coarse trajectory.
_EXPLICIT, _IMPLICIT, _STABILISED = (500, 2e-9), (500, 1e-5), (1_000, 1e-5)
_COARSE = 6e-3
_STAGES, _STOPS = 6, 4  # gradients per step of the other solvers, and per evaluation of the stopping criterion


class Settled(NamedTuple):
    """Active neurons at the end of a cost phase.

    Attributes:
        rows: Weights Θ, shape (neurons, weights).
        loss: Loss L.
        descent: −dL/dt.
        finished: Whether the descent became slow enough, or the time limit was reached.
        stopped: Whether the phase ended by a stopping criterion rather than by the limit on steps.
        slopes: Approximate number of gradient evaluations.
    """

    rows: Array
    loss: Array
    descent: Array
    finished: Array
    stopped: Array
    slopes: Array


@filter_jit
def settle(
    network: SumOfNeurons,
    average: Average,
    rows: Float[Array, "neurons weights"],
    slowest: Float[Array, ""],
    shrunk: Float[Array, ""],
    bend: Float[Array, ""],
    longest: Float[Array, ""],
    coarse: Bool[Array, ""],
    implicit: bool,
    normalised: bool,
) -> Settled:
    """Integrate gradient flow from the given weights until −dL/dt falls below a threshold.

    Args:
        network: Network that defines the function of a neuron.
        average: Samples or expectation that defines the loss.
        rows: Initial weights Θ; rows of zeros stay zero and have no effect, so they can be used as padding.
        slowest: Stop when −dL/dt is below this value.
        shrunk: Also stop when the norm of a neuron falls below this fraction of the largest norm.
        bend: Also stop when the descent accelerates (if 1) or slows down (if −1); ignored if `coarse`.
        longest: Gradient-flow time after which to stop.
        coarse: Whether a rough trajectory suffices, for example with many weights, or at kinks where neurons become
            stationary.
        implicit: Whether to use implicit steps if the flow is stiff; requires few weights and a continuous velocity.
        normalised: Whether the rate of each neuron is ‖θ‖^(2−κ).
    """
    shape = rows.shape
    present = jnp.any(rows != 0, axis=1)

    def loss(vector: Array) -> Array:
        return average.loss(network.with_neurons(vector.reshape(shape)))

    def paces(vector: Array) -> Array:
        if not normalised:
            return jnp.ones(())
        squares = jnp.where(present, jnp.sum(vector.reshape(shape) ** 2, axis=1), 1)
        return jnp.repeat(squares ** (1 - network.degree / 2), shape[1])

    def velocity(vector: Array) -> Array:
        return -paces(vector) * jax.grad(loss)(vector)

    def descent(here: FlowState) -> Array:
        return jnp.sum(here.slope**2 / paces(here.state))

    def stop(here: FlowState) -> Array:
        norms = jnp.linalg.norm(here.state.reshape(shape), axis=1)
        lost = jnp.any(present & (norms < shrunk * jnp.max(norms)))
        turned: Array = jax.lax.cond(coarse, lambda: False, lambda: bent(here))
        return (descent(here) < slowest) | lost | turned

    def bent(here: FlowState) -> Array:
        product = jax.jvp(jax.grad(loss), (here.state,), (here.slope,))[1]
        return bend * jnp.sum(here.slope * product) < 0

    def implicitly(here: FlowState, step: Array, memory: Any) -> tuple[Array, Array, Array, Any]:
        if normalised:
            steepness = jax.jacfwd(velocity)(here.state)
        else:
            steepness = -loss_curvature(network, average, here.state.reshape(shape))

        def inverse(shift: Array) -> Any:
            factors = jax.scipy.linalg.lu_factor(shift * jnp.eye(rows.size) - steepness)
            return lambda right: jax.scipy.linalg.lu_solve(factors, right)

        end, wrong = rosenbrock_step(velocity, inverse, here.state, step)
        return end, velocity(end), wrong, memory

    def stabilised(here: FlowState, step: Array, memory: Any) -> tuple[Array, Array, Array, Any]:
        direction, taken = memory
        end, slope, wrong, direction, slopes = legendre_step(velocity, here.state, here.slope, direction, step)
        return end, slope, wrong, (direction, taken + slopes)

    start = FlowState(jnp.zeros_like(longest), rows.ravel(), velocity(rows.ravel()))
    # A descent that already slows down soon becomes stiff, and at kinks short steps make no progress.
    quick = not implicit or (not normalised and in_closed_form(network, average))
    skipped = coarse | ((bend >= 0) & quick)
    most, tolerance = _EXPLICIT
    here, stopped, steps, _ = integrate_until(
        start,
        jnp.where(skipped, 0.0, longest),
        tsitouras(velocity),
        stop,
        order=5,
        tolerance=tolerance,
        most=most,
    )
    slopes = steps * float(_STAGES + _STOPS)
    # Runs that have stopped get no further time.
    left = jnp.where(stopped, here.time, longest)
    if implicit:
        most, tolerance = _IMPLICIT
        here, later, steps, _ = integrate_until(here, left, implicitly, stop, order=4, tolerance=tolerance, most=most)
        curvature = float(rows.size) if normalised else slopes_of_curvature(network, average, rows)
        slopes += steps * (curvature + _STAGES + _STOPS)
    else:
        most, tolerance = _STABILISED
        tolerance = jnp.where(coarse, _COARSE, tolerance)
        memory = here.slope / jnp.linalg.norm(here.slope), jnp.zeros_like(longest)
        here, later, steps, (_, taken) = integrate_until(
            here, left, stabilised, stop, order=3, tolerance=tolerance, most=most, memory=memory
        )
        slopes += taken + steps * _STOPS
    over = here.time >= longest
    finished = (descent(here) < slowest) | over
    stopped = stopped | later | over
    return Settled(here.state.reshape(shape), loss(here.state), descent(here), finished, stopped, slopes)
