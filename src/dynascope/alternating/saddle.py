"""Saddles at which active neurons come to rest, and the motion that leaves them."""

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

_FILLED = 500  # weights up to which a Hessian may be larger than needed, so that few programs are compiled
_LINEAR = 0.1  # share of the active weights up to which a deviation from a saddle grows as in the linear flow


class Departure(NamedTuple):
    """Deviations of the active neurons from a saddle, each of which grows exponentially.

    Attributes:
        rates: μ > 0, shape (k,).
        deviations: Present size and direction, shape (k, neurons, weights).
    """

    rates: np.ndarray
    deviations: np.ndarray

    def growth(self, elapsed: float) -> np.ndarray:
        """What the deviations gain in that time, shape (neurons, weights)."""
        return np.tensordot(np.expm1(self.rates * elapsed), self.deviations, 1)

    def time(self, size: float) -> float:
        """When the deviation is no longer small beside weights of that size; infinite if none is above rounding."""
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
        Θ at rest, its loss, and the motions that leave it, none at a minimum.
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
    return rows, loss, Departure(-values, (root[:, None] * deviations).T.reshape(-1, *rows.shape))


_CURVED = 1e-6
# Newton steps are taken while they are shorter than the first share of the weights, and longer than the second.
_SHORT, _PRECISE, _NEWTON_STEPS = 0.1, 1e-13, 8


def _floor(values: np.ndarray, slope: np.ndarray, size: float) -> float:
    """Curvatures below are not told from zero: where the loss has a symmetry, its slope bends what is flat at rest."""
    return max(_CURVED * float(np.abs(values).max(initial=0.0)), float(np.linalg.norm(slope)) / size)


def _spectrum(network: Any, average: Any, rows: np.ndarray, normalised: bool) -> tuple[Any, ...]:
    """Loss, gradient, and the eigenvalues and eigenvectors of R H R, where R² are the rates of the weights."""
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
