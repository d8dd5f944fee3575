"""The cost phase of alternating gradient flow: active neurons descend the loss by themselves."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from dynascope.flows.stabilised import RungeKuttaLegendre

__all__ = ["Settled", "rest", "settle"]

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


@eqx.filter_jit
def settle(
    network: Any,
    average: Any,
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

    def run(begin: Array, start: Array, solver: Any, tolerance: float, steps: int) -> tuple[Array, Array]:
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            solver,
            begin,
            longest,
            None,
            start,
            stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance * jnp.sqrt(jnp.mean(start**2))),
            event=diffrax.Event(stops),
            adjoint=diffrax.ForwardMode(),
            max_steps=steps,
            throw=False,
        )
        assert solution.ts is not None
        assert solution.ys is not None
        return solution.ts[-1], solution.ys[-1]

    def stopped(time: Array, vector: Array) -> Array:
        return functools.reduce(jnp.logical_or, [stop(0, vector, None) for stop in stops], time >= longest)

    end = jnp.zeros_like(longest), rows.ravel()
    if close:
        end = run(*end, diffrax.Tsit5(), _CLOSE[0], _EXPLICIT_STEPS)
        time, vector = jax.lax.cond(
            stopped(*end),
            lambda *end: end,
            lambda *end: run(*end, RungeKuttaLegendre(), _CLOSE[1], _STABILISED_STEPS),
            *end,
        )
    else:
        time, vector = run(*end, RungeKuttaLegendre(), _COARSE, _STABILISED_STEPS)
    finished = flat(0, vector, None) | (time >= longest)
    return Settled(vector.reshape(shape), loss(vector), descent(vector), finished, stopped(time, vector))


def rest(
    network: Any, average: Any, rows: np.ndarray, normalised: bool
) -> tuple[np.ndarray, float, np.ndarray, np.ndarray]:
    """The resting point near which active neurons are, and the motions that leave it if it is a saddle.

    Newton steps within the directions of positive curvature complete what the flow began: its last stretch, were it
    left out, would push the dormant neurons for the whole of the plateau. Near a saddle θ* the flow is linear: the
    deviation along an eigenvector of the Hessian with the eigenvalue −μ < 0 grows as exp(μ t), and its present size
    follows from the gradient, ⟨v, ∇L⟩ = −μ ⟨v, θ − θ*⟩.

    Args:
        network: Gives the neurons their function.
        average: What the loss averages over.
        rows: Θ, shape (neurons, weights); rows of zeros are kept at zero.
        normalised: Whether each neuron has the rate ‖θ‖^(2−κ).

    Returns:
        Θ at rest, its loss, the rates μ, shape (k,), and the present deviations, shape (k, neurons, weights).
    """
    size = float(np.linalg.norm(rows))
    loss, slope, values, vectors, root = _spectrum(network, average, rows, normalised)
    for _ in range(_NEWTON_STEPS):
        curved = values > _floor(values, root * slope, size)
        shares = (vectors[:, curved].T @ (root * slope)) / values[curved]
        # Along soft directions a long step would leave what the flow was heading for.
        step = root * (vectors[:, curved] @ np.where(np.abs(shares) < _SHORT * size, shares, 0.0))
        if np.linalg.norm(step) < _PRECISE * size:
            break
        trial = rows - step.reshape(rows.shape)
        found = _spectrum(network, average, trial, normalised)
        if not np.linalg.norm(root * found[1]) < np.linalg.norm(root * slope):
            break
        rows, (loss, slope, values, vectors, root) = trial, found
    unstable = values < -_floor(values, root * slope, size)
    values, vectors = values[unstable], vectors[:, unstable]
    deviations = vectors * ((vectors.T @ (root * slope)) / values)
    return rows, loss, -values, (root[:, None] * deviations).T.reshape(-1, *rows.shape)


_CURVED = 1e-6
# Newton steps are taken while they are shorter than the first share of the weights, and longer than the second.
_SHORT, _PRECISE, _NEWTON_STEPS = 0.1, 1e-13, 8


def _floor(values: np.ndarray, slope: np.ndarray, size: float) -> float:
    """Curvatures below are not told from zero: where the loss has a symmetry, its slope bends what is flat at rest."""
    return max(_CURVED * float(np.abs(values).max(initial=0.0)), float(np.linalg.norm(slope)) / size)


def _spectrum(network: Any, average: Any, rows: np.ndarray, normalised: bool) -> tuple[Any, ...]:
    """Loss, gradient, and the eigenvalues and eigenvectors of R H R, where R² are the rates of the weights."""
    loss, slope, curvature = (np.asarray(each) for each in _derivatives(network, average, jnp.asarray(rows)))
    norms = np.linalg.norm(rows, axis=1)
    pace = np.where(norms > 0, np.where(norms > 0, norms, 1) ** (2 - network.degree if normalised else 0), 0)
    root = np.repeat(np.sqrt(pace), rows.shape[1])
    values, vectors = np.linalg.eigh(root[:, None] * curvature * root)
    return float(loss), slope, values, vectors, root


@eqx.filter_jit
def _derivatives(network: Any, average: Any, rows: Array) -> tuple[Array, Array, Array]:
    def loss(vector: Array) -> Array:
        return average.loss(network.with_neurons(vector.reshape(rows.shape)))

    vector = rows.ravel()
    return *jax.value_and_grad(loss)(vector), jax.hessian(loss)(vector)
