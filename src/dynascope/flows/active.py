"""The cost phase of alternating gradient flow: active neurons descend the loss by themselves."""

from __future__ import annotations

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

# The transient is followed closely; what remains after this many steps is stiff, and slaved to the slow directions.
_EXPLICIT_STEPS = 2_000
_CLOSE, _COARSE = 1e-9, 1e-4


class Settled(NamedTuple):
    """Active neurons at the end of a cost phase.

    Attributes:
        rows: Θ, shape (neurons, weights).
        loss: L.
        descent: −dL/dt.
        flat: Whether the descent became as slow as asked.
        stopped: Whether that or another stop was reached, rather than the last step.
    """

    rows: Array
    loss: Array
    descent: Array
    flat: Array
    stopped: Array


@eqx.filter_jit
def settle(
    network: Any,
    average: Any,
    rows: Float[Array, "neurons weights"],
    slowest: Array,
    shrunk: Array,
    bend: Array,
    normalised: bool,
    max_steps: int,
) -> Settled:
    """Follow gradient flow from the given weights until the loss falls more slowly than asked.

    Args:
        network: Gives the neurons their function.
        average: What the loss averages over.
        rows: Θ at the start; rows of zeros stay zero, and serve to keep the shape.
        slowest: Stop when −dL/dt is below.
        shrunk: Stop also when the norm of a neuron falls below this share of the largest.
        bend: Stop also, if one, when the descent speeds up, if minus one, when it slows down.
        normalised: Whether each neuron has the rate ‖θ‖^(2−κ).
        max_steps: Steps of the stabilised solver after which to give up.
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

    def run(start: Array, solver: Any, tolerance: float, steps: int) -> Any:
        return diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            solver,
            0.0,
            jnp.finfo(start.dtype).max,
            None,
            start,
            stepsize_controller=diffrax.PIDController(
                rtol=tolerance, atol=tolerance * jnp.sqrt(jnp.mean(start**2)), dtmax=jnp.finfo(start.dtype).max
            ),
            event=diffrax.Event([flat, lost, bent]),
            adjoint=diffrax.ForwardMode(),
            max_steps=steps,
            throw=False,
        )

    def stopped(vector: Array) -> Array:
        return flat(0, vector, None) | lost(0, vector, None) | bent(0, vector, None)

    def stiff_tail(vector: Array) -> Array:
        return run(vector, RungeKuttaLegendre(), _COARSE, max_steps).ys[-1]

    vector = run(rows.ravel(), diffrax.Tsit5(), _CLOSE, _EXPLICIT_STEPS).ys[-1]
    vector = jax.lax.cond(stopped(vector), lambda end: end, stiff_tail, vector)
    return Settled(vector.reshape(shape), loss(vector), descent(vector), flat(0, vector, None), stopped(vector))


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
    size = np.linalg.norm(rows)
    loss, slope, values, vectors, root = _spectrum(network, average, rows, normalised)
    for _ in range(_NEWTON_STEPS):
        curved = values > _CURVED * np.abs(values).max(initial=0.0)
        step = root * (vectors[:, curved] @ ((vectors[:, curved].T @ (root * slope)) / values[curved]))
        length = np.linalg.norm(step)
        if not _PRECISE * size < length < _SHORT * size:
            break
        trial = rows - step.reshape(rows.shape)
        found = _spectrum(network, average, trial, normalised)
        if not np.linalg.norm(root * found[1]) < np.linalg.norm(root * slope):
            break
        rows, (loss, slope, values, vectors, root) = trial, found
    unstable = values < -_CURVED * np.abs(values).max(initial=0.0)
    values, vectors = values[unstable], vectors[:, unstable]
    deviations = vectors * ((vectors.T @ (root * slope)) / values)
    return rows, loss, -values, (root[:, None] * deviations).T.reshape(-1, *rows.shape)


# Curvatures smaller than this, relative to the largest, are not told from zero.
_CURVED = 1e-6
# Newton steps are taken while they are shorter than the first share of the weights, and longer than the second.
_SHORT, _PRECISE, _NEWTON_STEPS = 0.1, 1e-13, 8


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
