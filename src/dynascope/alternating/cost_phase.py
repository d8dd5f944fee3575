"""The cost phase of alternating gradient flow: active neurons descend the loss by themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from dynascope.compilation import filter_jit, without_callbacks
from dynascope.flows.solvers.stabilised import RungeKuttaLegendre
from dynascope.protocols import Average, SumOfNeurons

__all__ = ["Settled", "settle"]

# Steps of the explicit solver, which follows the transient, and of the stabilised one, which takes over if the rest is
# stiff, or does it all where a coarse path is enough.
_EXPLICIT_STEPS, _STABILISED_STEPS = 500, 1_000
# Relative tolerances of the one and the other where conserved quantities matter, and of the coarse path.
_CLOSE, _COARSE = (1e-9, 1e-5), 3e-3


class Settled(NamedTuple):
    """Active neurons at the end of a cost phase.

    Attributes:
        rows: Θ, shape (neurons, weights).
        loss: L.
        descent: −dL/dt.
        finished: Whether the descent became as slow as asked, or the time was over.
        stopped: Whether that or another stop was reached, rather than the last step.
    """

    rows: Array
    loss: Array
    descent: Array
    finished: Array
    stopped: Array


@filter_jit
def settle(
    network: SumOfNeurons,
    average: Average,
    rows: Float[Array, "neurons weights"],
    slowest: Array,
    shrunk: Array,
    bend: Array,
    longest: Array,
    close: bool,
    normalised: bool,
) -> Settled:
    """Follow gradient flow from the given weights until the loss falls more slowly than asked.

    Args:
        network: Gives the neurons their function.
        average: What the loss averages over.
        rows: Θ at the start; rows of zeros stay zero, and serve to keep the shape.
        slowest: Stop when −dL/dt is below.
        shrunk: Stop also when the norm of a neuron falls below this share of the largest.
        bend: Stop also, if one, when the descent speeds up, if minus one, when it slows down; only if followed closely.
        longest: Gradient-flow time after which to stop.
        close: Whether to follow the flow closely, or, for many weights or kinks, at a fifth of the cost.
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

    def velocity(t: Any, vector: Array, arguments: Any) -> Array:
        return -paces(vector) * jax.grad(loss)(vector)

    def descent(vector: Array) -> Array:
        slope = jax.grad(loss)(vector)
        return jnp.sum(paces(vector) * slope**2)

    def flat(t: Any, y: Array, arguments: Any, **_: Any) -> Array:
        return descent(y) < slowest

    def lost(t: Any, y: Array, arguments: Any, **_: Any) -> Array:
        norms = jnp.linalg.norm(y.reshape(shape), axis=1)
        return jnp.any(present & (norms < shrunk * jnp.max(norms)))

    def bent(t: Any, y: Array, arguments: Any, **_: Any) -> Array:
        slope, product = jax.jvp(jax.grad(loss), (y,), (paces(y) * jax.grad(loss)(y),))
        return bend * jnp.sum(paces(y) * slope * product) < 0

    stops = [flat, lost, bent] if close else [flat, lost]

    def run(
        begin: Array, start: Array, end: Array, solver: Any, tolerance: float, steps: int
    ) -> tuple[Array, Array, Array]:
        @without_callbacks
        def solve(begin: Array, start: Array, end: Array) -> diffrax.Solution:
            return diffrax.diffeqsolve(
                diffrax.ODETerm(velocity),
                solver,
                begin,
                end,
                None,
                start,
                stepsize_controller=diffrax.PIDController(
                    rtol=tolerance, atol=tolerance * jnp.sqrt(jnp.mean(start**2))
                ),
                event=diffrax.Event(stops),
                adjoint=diffrax.ForwardMode(),
                max_steps=steps,
                throw=False,
            )

        solution = solve(begin, start, end)
        assert solution.ts is not None
        assert solution.ys is not None
        time = solution.ts[-1]
        return time, solution.ys[-1], (solution.result == diffrax.RESULTS.event_occurred) | (time >= longest)

    start = jnp.zeros_like(longest), rows.ravel()
    if close:
        time, vector, stopped = run(*start, longest, diffrax.Tsit5(), _CLOSE[0], _EXPLICIT_STEPS)
        # No time is left to those that have stopped.
        left = jnp.where(stopped, time, longest)
        time, vector, later = run(time, vector, left, RungeKuttaLegendre(), _CLOSE[1], _STABILISED_STEPS)
        stopped |= later
    else:
        time, vector, stopped = run(*start, longest, RungeKuttaLegendre(), _COARSE, _STABILISED_STEPS)
    finished = flat(0, vector, None) | (time >= longest)
    return Settled(vector.reshape(shape), loss(vector), descent(vector), finished, stopped)
