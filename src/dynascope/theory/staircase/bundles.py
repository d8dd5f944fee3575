"""Bundles of linear neurons that grow at very different sizes without losing digits.

While the residual M of a two-layer linear network is frozen, every neuron θ = (input weights, output weights) obeys the
same linear equation θ' = F θ with F = [[0, Mᵀ], [M, 0]]. Rotating the neurons among themselves changes neither the
function nor the flow, so the neurons can be turned into bundles of which the j-th holds nothing of the j − 1 fastest
directions. A bundle of size 1e-300 beside one of size 1 keeps all its digits because each carries its own log-norm.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

__all__ = ["Bundles", "OrderedBundles"]

# Log-norms within this range lose at most two digits to an ordinary orthogonal factorisation.
_COMPARABLE = 5.0


@dataclasses.dataclass(frozen=True)
class Bundles:
    """Unit directions (columns) with their log-norms.

    Attributes:
        directions: Shape (d + c, H), unit columns.
        log_norms: Shape (H,).
    """

    directions: Float[np.ndarray, "parameters bundle"]
    log_norms: Float[np.ndarray, " bundle"]

    @classmethod
    def from_neurons(cls, neurons: Float[np.ndarray, "parameters bundle"], log_scale: float) -> Bundles:
        """Bundles of the neurons multiplied by exp(log_scale)."""
        norms = np.linalg.norm(neurons, axis=0)
        alive = norms > 0
        return cls(neurons[:, alive] / norms[alive], np.log(norms[alive]) + log_scale)

    def ordered(self, residual: Float[np.ndarray, "c d"], count: int) -> OrderedBundles:
        """The bundles, rotated so that the j-th has no part in the j − 1 fastest directions; the first `count` of them.

        The others hold nothing of the directions that grow.
        """
        outputs, inputs = residual.shape
        generator = np.zeros((inputs + outputs, inputs + outputs))
        generator[:inputs, inputs:], generator[inputs:, :inputs] = residual.T, residual
        rates, basis = np.linalg.eigh(generator)
        rates, basis = rates[::-1], basis[:, ::-1]
        columns, log_norms = _lower_triangular(basis.T @ self.directions, self.log_norms)
        return OrderedBundles(columns[:, :count], log_norms[:count], rates, basis)


@dataclasses.dataclass(frozen=True)
class OrderedBundles:
    """Bundles in the eigenbasis of a frozen residual, lower triangular there.

    Attributes:
        columns: Shape (d + c, H): components along the directions, fastest first.
        log_norms: Shape (H,).
        rates: Growth rates, decreasing, shape (d + c,).
        basis: The directions, as columns.
    """

    columns: Float[np.ndarray, "parameters bundle"]
    log_norms: Float[np.ndarray, " bundle"]
    rates: Float[np.ndarray, " parameters"]
    basis: Float[np.ndarray, "parameters parameters"]

    @property
    def first_log_amplitude(self) -> float:
        """Log of the size of the first bundle along the fastest direction."""
        with np.errstate(divide="ignore"):
            return float(self.log_norms[0] + np.log(np.abs(self.columns[0, 0])))

    def others_after(self, duration: float) -> Bundles:
        """All bundles but the first, after growing for a while under the frozen residual."""
        count = min(self.columns.shape[1], len(self.rates))
        own = self.rates[1:count] * duration
        # A column below the diagonal grows more slowly than the diagonal, so the exponent is never positive.
        relative = np.exp(np.minimum(self.rates[:, None] * duration - own, 0.0))
        columns = self.columns[:, 1:count] * relative
        norms = np.linalg.norm(columns, axis=0)
        alive = norms > 0
        log_norms = self.log_norms[1:count][alive] + own[alive] + np.log(norms[alive])
        return Bundles(self.basis @ (columns[:, alive] / norms[alive]), log_norms)


def _lower_triangular(columns: np.ndarray, log_norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotate columns of very different size so that entry (i, j) vanishes for j > i, by Givens rotations.

    With the small column e^δ b beside a, δ ≤ 0, the rotation that clears the small one's entry has sine e^δ s. Its
    effect on the direction of the small column involves only s, so nothing underflows.
    """
    largest = log_norms.max()
    if np.ptp(log_norms) < _COMPARABLE:
        lower = np.asarray(np.linalg.qr((columns * np.exp(log_norms - largest)).T, mode="r")).T
        norms = np.linalg.norm(lower, axis=0)
        lower, norms = lower[:, norms > 0], norms[norms > 0]
        return lower / norms, largest + np.log(norms)
    order = np.argsort(-log_norms, kind="stable")
    columns, log_norms = columns[:, order].copy(), log_norms[order].copy()
    rows, count = columns.shape
    for i in range(min(rows, count)):
        for j in range(count - 1, i, -1):
            if log_norms[j] > log_norms[i]:
                columns[:, [i, j]] = columns[:, [j, i]]
                log_norms[[i, j]] = log_norms[[j, i]]
            large, small = columns[i, i], columns[i, j]
            if small == 0:
                continue
            if large == 0:
                columns[:, [i, j]] = columns[:, [j, i]]
                log_norms[[i, j]] = log_norms[[j, i]]
                continue
            shrink = np.exp(log_norms[j] - log_norms[i])
            length = np.hypot(large, shrink * small)
            cosine, sine = large / length, small / length
            kept = cosine * columns[:, i] + shrink**2 * sine * columns[:, j]
            cleared = cosine * columns[:, j] - sine * columns[:, i]
            cleared[i] = 0.0
            for column, values in ((i, kept), (j, cleared)):
                norm = np.linalg.norm(values)
                columns[:, column] = values / norm if norm > 0 else 0.0
                log_norms[column] += np.log(norm) if norm > 0 else -np.inf
    return columns, log_norms
