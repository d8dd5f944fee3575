"""The cost phase of alternating gradient flow: active neurons descend the loss by themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jax import Array
from jaxtyping import Float

from dynascope.compilation import filter_jit, without_callbacks
from dynascope.flows.exact.neuron_curvature import in_closed_form, loss_curvature, slopes_of_curvature
from dynascope.flows.solvers.rosenbrock import rosenbrock_step
from dynascope.flows.solvers.stabilised import RungeKuttaLegendre
from dynascope.protocols import Average, SumOfNeurons

__all__ = ["Manner", "Settled", "settle"]

Manner = Literal["close", "kinked", "coarse"]

# Steps and relative tolerance of the explicit solver, which follows the transient, and of what takes over if the rest
# is stiff: implicit steps, or across kinks the stabilised solver, which does it all where a coarse path is enough.
_EXPLICIT, _IMPLICIT = (500, 1e-9), (500, 1e-5)
_STABILISED, _COARSE = (1_000, 1e-5), (1_000, 3e-3)
_FIRST_MOTION = 0.01  # of the weights, in the first implicit step
_SHORTEST = 1e-13  # of the time that is left
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
    slowest: Array,
    shrunk: Array,
    bend: Array,
    longest: Array,
    manner: Manner,
    normalised: bool,
) -> Settled:
    """Follow gradient flow from the given weights until the loss falls more slowly than asked.

    Args:
        network: Gives the neurons their function.
        average: What the loss averages over.
        rows: Θ at the start; rows of zeros stay zero, and serve to keep the shape.
        slowest: Stop when −dL/dt is below.
        shrunk: Stop also when the norm of a neuron falls below this share of the largest.
        bend: Stop also, if one, when the descent speeds up, if minus one, when it slows down; unless followed coarsely.
        longest: Gradient-flow time after which to stop.
        manner: How to follow the flow: "close", for smooth neurons; "kinked", for those whose velocity jumps; "coarse",
            for many weights, or to get across kinks at which the neurons come to rest.
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

    def jacobian(vector: Array) -> Array:
        if normalised:
            return jax.jacfwd(lambda y: velocity(0.0, y, None))(vector)
        return -loss_curvature(network, average, vector.reshape(shape))

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

    stops = [flat, lost] if manner == "coarse" else [flat, lost, bent]

    def run(
        begin: Array, start: Array, end: Array, solver: Any, limits: tuple[int, float]
    ) -> tuple[Array, Array, Array, Array]:
        steps, tolerance = limits

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
                saveat=diffrax.SaveAt(t1=True, solver_state=True),
                event=diffrax.Event(stops),
                adjoint=diffrax.ForwardMode(),
                max_steps=steps,
                throw=False,
            )

        solution = solve(begin, start, end)
        assert solution.ts is not None
        assert solution.ys is not None
        time, steps = solution.ts[-1], solution.stats["num_steps"]
        taken = solution.solver_state[2] if isinstance(solver, RungeKuttaLegendre) else _STAGES * steps
        ended = (solution.result == diffrax.RESULTS.event_occurred) | (time >= longest)
        return time, solution.ys[-1], ended, taken + _STOPS * steps

    start = jnp.zeros_like(longest), rows.ravel()
    if manner == "coarse":
        time, vector, stopped, slopes = run(*start, longest, RungeKuttaLegendre(), _COARSE)
    else:
        # What slows down already is stiff before long.
        quick = manner == "close" and not normalised and in_closed_form(network, average)
        begun = jnp.where(bend < 0, longest, 0.0) if quick else longest
        time, vector, stopped, slopes = run(*start, begun, diffrax.Tsit5(), _EXPLICIT)
        # No time is left to those that have stopped.
        left = jnp.where(stopped, time, longest)
        if manner == "close":
            time, vector, later, steps = _stiffly(velocity, jacobian, stops, time, vector, left)
            curvature = float(rows.size) if normalised else slopes_of_curvature(network, average, rows)
            more = steps * (curvature + _STAGES + _STOPS)
        else:
            time, vector, later, more = run(time, vector, left, RungeKuttaLegendre(), _STABILISED)
        stopped, slopes = stopped | later | (time >= longest), slopes + more
    finished = flat(0, vector, None) | (time >= longest)
    return Settled(vector.reshape(shape), loss(vector), descent(vector), finished, stopped, slopes)


def _stiffly(
    velocity: Callable[..., Array],
    jacobian: Callable[[Array], Array],
    stops: list[Callable[..., Array]],
    time: Array,
    vector: Array,
    end: Array,
) -> tuple[Array, Array, Array, Array]:
    """Go on until a time or a stop by implicit steps, of which few get across any span of time scales."""
    most, tolerance = _IMPLICIT

    def size(change: Array) -> Array:
        return jnp.sqrt(jnp.mean(change**2))

    def tried(carry: Any) -> Any:
        time, step, vector, _, count = carry
        step = jnp.minimum(step, end - time)
        steepness = jacobian(vector)

        def inverse(shift: Array) -> Callable[[Array], Array]:
            factors = jax.scipy.linalg.lu_factor(shift * jnp.eye(len(vector)) - steepness)
            return lambda right: jax.scipy.linalg.lu_solve(factors, right)

        after, wrong = rosenbrock_step(lambda y: velocity(time, y, None), inverse, vector, step)
        error = size(wrong) / (tolerance * size(vector))
        error = jnp.where(jnp.isfinite(error), error, jnp.inf)
        fine = error <= 1
        vector = jnp.where(fine, after, vector)
        # Rounding must not leave a last step too small to be taken.
        reached = jnp.where(end - time - step <= _SHORTEST * end, end, time + step)
        stopped = fine & jnp.any(jnp.stack([stop(reached, vector, None) for stop in stops]))
        factor = jnp.clip(0.8 * jnp.maximum(error, 1e-6) ** (-1 / 4), 0.2, 5.0)
        return jnp.where(fine, reached, time), step * factor, vector, stopped, count + 1

    def unfinished(carry: Any) -> Array:
        time, _, _, stopped, count = carry
        return (time < end) & ~stopped & (count < most)

    speed = size(velocity(time, vector, None))
    first = jnp.where(speed > 0, _FIRST_MOTION * size(vector) / jnp.where(speed > 0, speed, 1), end)
    start = (time, first, vector, jnp.zeros((), bool), jnp.zeros((), int))
    time, _, vector, stopped, count = jax.lax.while_loop(unfinished, tried, start)
    return time, vector, stopped, count
