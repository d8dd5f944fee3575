"""Saddles at which active neurons become stationary, and the unstable modes along which they leave."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import numpy as np
import scipy
from jax import Array

from dynascope.alternating.neurons import padded
from dynascope.compilation import filter_jit
from dynascope.flows.exact.neuron_curvature import loss_curvature
from dynascope.protocols import Average, SumOfNeurons

__all__ = ["Departure", "rest"]

_FILLED = 500  # number of weights up to which Hessians are padded, so that few programs are compiled
_LINEAR = 0.1  # largest deviation from a saddle, relative to the active weights, for which the flow is linear


class Departure(NamedTuple):
    """Exponentially growing deviations of the active neurons from a saddle.

    Attributes:
        rates: Growth rates μ > 0, shape (k,).
        deviations: Current deviations, shape (k, neurons, weights).
    """

    rates: np.ndarray
    deviations: np.ndarray

    def growth(self, elapsed: float) -> np.ndarray:
        """Return the change in the weights over the elapsed time, shape (neurons, weights)."""
        return np.tensordot(np.expm1(self.rates * elapsed), self.deviations, 1)

    def time(self, size: float) -> float:
        """Return the time at which the deviation is no longer small relative to weights of norm `size`.

        The time is infinite if all deviations are rounding errors.
        """
        sizes = np.linalg.norm(self.deviations, axis=(1, 2))
        seen = sizes > 1e-13 * size
        if not seen.any():
            return np.inf
        rates, sizes, goal = self.rates[seen], sizes[seen], _LINEAR * size

        def excess(time: float) -> float:
            return float(np.logaddexp.reduce(2 * (rates * time + np.log(sizes))) / 2 - np.log(goal))

        latest = float(np.min((np.log(goal) - np.log(sizes)) / rates))
        return 0.0 if excess(0.0) >= 0 else scipy.optimize.root_scalar(excess, bracket=(0.0, latest * (1 + 1e-9))).root


def rest(
    network: SumOfNeurons, average: Average, rows: np.ndarray, normalised: bool
) -> tuple[np.ndarray, float, Departure]:
    """Find the stationary point near the active neurons, and its unstable modes.

    Newton steps in the directions of positive curvature complete the gradient flow. Without Newton steps, the remaining
    gradient would influence the dormant neurons over the whole plateau. Near a saddle θ*, the flow is linear: the
    deviation along an eigenvector v of the Hessian with eigenvalue −μ < 0 grows as exp(μ t). The gradient determines
    the current deviation, ⟨v, ∇L⟩ = −μ ⟨v, θ − θ*⟩.

    Args:
        network: Network that defines the function of a neuron.
        average: Samples or expectation that defines the loss.
        rows: Weights Θ, shape (neurons, weights); rows of zeros stay zero.
        normalised: Whether each neuron has the rate ‖θ‖^(2−κ).

    Returns:
        Θ at the stationary point, its loss, and the unstable modes; there are none at a minimum.
    """
    size = float(np.linalg.norm(rows))
    loss, slope, values, vectors, root = _spectrum(network, average, rows, normalised)
    for _ in range(_NEWTON_STEPS):
        curved = values > _floor(values, root * slope, size)
        shares = (vectors[:, curved].T @ (root * slope)) / values[curved]
        # Long steps along soft directions would leave the stationary point to which the flow converges.
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
    return rows, loss, Departure(-values, (root[:, None] * deviations).T.reshape(-1, *rows.shape))


_CURVED = 1e-6
# Newton steps are taken if their length relative to the weights is below the first and above the second number.
_SHORT, _PRECISE, _NEWTON_STEPS = 0.1, 1e-13, 8


def _floor(values: np.ndarray, slope: np.ndarray, size: float) -> float:
    """Return the curvature below which a direction counts as flat, given the error due to the remaining gradient."""
    return max(_CURVED * float(np.abs(values).max(initial=0.0)), float(np.linalg.norm(slope)) / size)


def _spectrum(network: Any, average: Any, rows: np.ndarray, normalised: bool) -> tuple[Any, ...]:
    """Return the loss, its gradient, the eigenvalues and eigenvectors of R H R, and the diagonal of R.

    H is the Hessian of the loss, and R contains the square roots of the rates of the weights.
    """
    present = slice(rows.size)
    filled = padded(rows, len(network.neurons))
    derivatives = _derivatives(network, average, filled if filled.size <= _FILLED else rows)
    loss, slope, curvature = (np.asarray(each) for each in derivatives)
    slope, curvature = slope[present], curvature[present, present]
    norms = np.linalg.norm(rows, axis=1)
    pace = np.where(norms > 0, np.where(norms > 0, norms, 1) ** (2 - network.degree if normalised else 0), 0)
    root = np.repeat(np.sqrt(pace), rows.shape[1])
    values, vectors = np.linalg.eigh(root[:, None] * curvature * root)
    return float(loss), slope, values, vectors, root


@filter_jit
def _derivatives(network: Any, average: Any, rows: Any) -> tuple[Array, Array, Array]:
    def loss(vector: Array) -> Array:
        return average.loss(network.with_neurons(vector.reshape(rows.shape)))

    vector = rows.ravel()
    return *jax.value_and_grad(loss)(vector), loss_curvature(network, average, rows)
