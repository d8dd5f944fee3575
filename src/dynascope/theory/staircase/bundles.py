"""Bundles of linear neurons of very different sizes, propagated without loss of precision.

While the residual M of a two-layer linear network is frozen, every neuron θ = (input weights, output weights) obeys the
same linear equation θ' = F θ with F = [[0, Mᵀ], [M, 0]]. A rotation of the neurons among themselves changes neither the
function nor the flow. The neurons can therefore be rotated into bundles such that the j-th bundle has no component
along the j − 1 fastest directions. Each bundle stores its log-norm, so a bundle of size 1e-300 keeps full precision
next to a bundle of size 1.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from jaxtyping import Float

__all__ = ["Bundles", "OrderedBundles"]

# If the log-norms differ by less, an ordinary orthogonal factorisation loses at most two digits.
_COMPARABLE = 5.0


@dataclasses.dataclass(frozen=True)
class Bundles:
    """Unit directions (columns) with their log-norms.

    Attributes:
        directions: Unit columns, shape (d + c, H).
        log_norms: Log-norm of each bundle, shape (H,).
    """

    directions: Float[np.ndarray, "parameters bundle"]
    log_norms: Float[np.ndarray, " bundle"]

    @classmethod
    def from_neurons(cls, neurons: Float[np.ndarray, "parameters bundle"], log_scale: float) -> Bundles:
        """Make one bundle from each nonzero neuron, multiplied by exp(log_scale)."""
        norms = np.linalg.norm(neurons, axis=0)
        alive = norms > 0
        return cls(neurons[:, alive] / norms[alive], np.log(norms[alive]) + log_scale)

    def ordered(self, residual: Float[np.ndarray, "c d"], count: int) -> OrderedBundles:
        """Rotate the bundles so that the j-th has no component along the j − 1 fastest directions.

        Only the first `count` bundles are kept; the others have no component along growing directions.
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
    """Bundles in the eigenbasis of a frozen residual, in which the matrix of their components is lower triangular.

    Attributes:
        columns: Components of the bundles along the eigendirections, fastest first, shape (d + c, H).
        log_norms: Log-norm of each bundle, shape (H,).
        rates: Growth rates in decreasing order, shape (d + c,).
        basis: Eigendirections as columns.
    """

    columns: Float[np.ndarray, "parameters bundle"]
    log_norms: Float[np.ndarray, " bundle"]
    rates: Float[np.ndarray, " parameters"]
    basis: Float[np.ndarray, "parameters parameters"]

    @property
    def first_log_amplitude(self) -> float:
        """Log of the absolute component of the first bundle along the fastest direction."""
        with np.errstate(divide="ignore"):
            return float(self.log_norms[0] + np.log(np.abs(self.columns[0, 0])))

    def others_after(self, duration: float) -> Bundles:
        """Return all bundles except the first, after growth under the frozen residual for the given duration."""
        count = min(self.columns.shape[1], len(self.rates))
        own = self.rates[1:count] * duration
        # Entries below the diagonal grow more slowly than the diagonal entry, so the exponent is never positive.
        relative = np.exp(np.minimum(self.rates[:, None] * duration - own, 0.0))
        columns = self.columns[:, 1:count] * relative
        norms = np.linalg.norm(columns, axis=0)
        alive = norms > 0
        log_norms = self.log_norms[1:count][alive] + own[alive] + np.log(norms[alive])
        return Bundles(self.basis @ (columns[:, alive] / norms[alive]), log_norms)


def _lower_triangular(columns: np.ndarray, log_norms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rotate columns of very different sizes by Givens rotations so that entry (i, j) vanishes for j > i.

    For columns a and e^δ b with δ ≤ 0, the rotation that clears the entry of the small column has sine e^δ s. The new
    direction of the small column depends only on s, so nothing underflows.
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
