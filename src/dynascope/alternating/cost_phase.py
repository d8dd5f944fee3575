"""The cost phase of alternating gradient flow: active neurons descend the loss by themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Bool, Float

from dynascope.compilation import filter_jit
from dynascope.flows.exact.neuron_curvature import in_closed_form, loss_curvature, slopes_of_curvature
from dynascope.flows.solvers.follow_until import Here, follow_until, tsitouras
from dynascope.flows.solvers.rosenbrock import rosenbrock_step
from dynascope.flows.solvers.runge_kutta_legendre import legendre_step
from dynascope.protocols import Average, SumOfNeurons

__all__ = ["Settled", "settle"]

# Steps and relative tolerance of the explicit solver, which follows the transient, and of what takes over if the rest
# is stiff: implicit steps, or across kinks the stabilised solver, which does it all where a coarse path is enough.
_EXPLICIT, _IMPLICIT, _STABILISED = (500, 2e-9), (500, 1e-5), (1_000, 1e-5)
_COARSE = 6e-3
_STAGES, _STOPS = 6, 4  # slopes of a step of other solvers, and what it costs to see whether to stop after one


class Settled(NamedTuple):
    """Active neurons at the end of a cost phase.

    Attributes:
        rows: Θ, shape (neurons, weights).
        loss: L.
        descent: −dL/dt.
        finished: Whether the descent became as slow as asked, or the time was over.
        stopped: Whether that or another stop was reached, rather than the last step.
        slopes: About how many slopes of the loss that took.
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
    """Follow gradient flow from the given weights until the loss falls more slowly than asked.

    Args:
        network: Gives the neurons their function.
        average: What the loss averages over.
        rows: Θ at the start; rows of zeros stay zero, change nothing, and serve to keep the shape.
        slowest: Stop when −dL/dt is below.
        shrunk: Stop also when the norm of a neuron falls below this share of the largest.
        bend: Stop also, if one, when the descent speeds up, if minus one, when it slows down; unless followed coarsely.
        longest: Gradient-flow time after which to stop.
        coarse: Whether a rough path is enough: of many weights, or to get across kinks at which the neurons come to
            rest.
        implicit: Whether what is stiff is followed by implicit steps, for a velocity without jumps and few weights.
        normalised: Whether each neuron has the rate ‖θ‖^(2−κ).
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

    def descent(here: Here) -> Array:
        return jnp.sum(here.slope**2 / paces(here.state))

    def stop(here: Here) -> Array:
        norms = jnp.linalg.norm(here.state.reshape(shape), axis=1)
        lost = jnp.any(present & (norms < shrunk * jnp.max(norms)))
        turned: Array = jax.lax.cond(coarse, lambda: False, lambda: bent(here))
        return (descent(here) < slowest) | lost | turned

    def bent(here: Here) -> Array:
        product = jax.jvp(jax.grad(loss), (here.state,), (here.slope,))[1]
        return bend * jnp.sum(here.slope * product) < 0

    def implicitly(here: Here, step: Array, memory: Any) -> tuple[Array, Array, Array, Any]:
        if normalised:
            steepness = jax.jacfwd(velocity)(here.state)
        else:
            steepness = -loss_curvature(network, average, here.state.reshape(shape))

        def inverse(shift: Array) -> Any:
            factors = jax.scipy.linalg.lu_factor(shift * jnp.eye(rows.size) - steepness)
            return lambda right: jax.scipy.linalg.lu_solve(factors, right)

        end, wrong = rosenbrock_step(velocity, inverse, here.state, step)
        return end, velocity(end), wrong, memory

    def stabilised(here: Here, step: Array, memory: Any) -> tuple[Array, Array, Array, Any]:
        direction, taken = memory
        end, slope, wrong, direction, slopes = legendre_step(velocity, here.state, here.slope, direction, step)
        return end, slope, wrong, (direction, taken + slopes)

    start = Here(jnp.zeros_like(longest), rows.ravel(), velocity(rows.ravel()))
    # What slows down already is stiff before long, and at kinks short steps lead nowhere.
    quick = not implicit or (not normalised and in_closed_form(network, average))
    skipped = coarse | ((bend >= 0) & quick)
    most, tolerance = _EXPLICIT
    here, stopped, steps, _ = follow_until(
        start,
        jnp.where(skipped, 0.0, longest),
        tsitouras(velocity),
        stop,
        order=5,
        tolerance=tolerance,
        most=most,
    )
    slopes = steps * float(_STAGES + _STOPS)
    # No time is left to those that have stopped.
    left = jnp.where(stopped, here.time, longest)
    if implicit:
        most, tolerance = _IMPLICIT
        here, later, steps, _ = follow_until(here, left, implicitly, stop, order=4, tolerance=tolerance, most=most)
        curvature = float(rows.size) if normalised else slopes_of_curvature(network, average, rows)
        slopes += steps * (curvature + _STAGES + _STOPS)
    else:
        most, tolerance = _STABILISED
        tolerance = jnp.where(coarse, _COARSE, tolerance)
        memory = here.slope / jnp.linalg.norm(here.slope), jnp.zeros_like(longest)
        here, later, steps, (_, taken) = follow_until(
            here, left, stabilised, stop, order=3, tolerance=tolerance, most=most, memory=memory
        )
        slopes += taken + steps * _STOPS
    over = here.time >= longest
    finished = (descent(here) < slowest) | over
    stopped = stopped | later | over
    return Settled(here.state.reshape(shape), loss(here.state), descent(here), finished, stopped, slopes)
