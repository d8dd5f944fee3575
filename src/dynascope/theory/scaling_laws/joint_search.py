"""Least-squares fit of the joint law in parameters and data to losses, with initial values from variable projection."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float
from numpy.typing import ArrayLike
from scipy.ndimage import minimum_filter

from dynascope.theory.scaling_laws.descent import descend
from dynascope.validation import require

__all__ = ["HUBER", "LOWER", "UPPER", "Scaled", "checked_runs", "joint_residuals", "joint_starts", "nearest_joint_law"]

_FEWEST = 8
HUBER = 1.345  # threshold of the Huber loss in standard deviations; 95 % efficient for normal residuals
LOWER = np.array([0.0, -60.0, -60.0, 0.0, 0.0])  # bounds of E, ln A, ln B, a, b in units of the geometric means
UPPER = np.array([np.inf, 60.0, 60.0, 20.0, 20.0])

_EXPONENTS = np.geomspace(0.02, 3.0, 14)
_STARTS = 12
_EXACT = 1e-10  # scatter that is due to rounding alone
_ROUNDS = 4  # alternations between estimating the scatter and fitting the law
_ALIKE = 1e-10  # ridge that regularises nearly collinear terms, relative to the square of a term
_ABSENT = 1e-4  # initial size of a term that the grid search finds absent, relative to the loss


def checked_runs(
    parameters: ArrayLike, data: ArrayLike, losses: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Validate N, D and L and return them as three one-dimensional arrays with one entry per run."""
    n, d, values = np.asarray(parameters), np.asarray(data), np.asarray(losses)
    if values.ndim == 2 and n.ndim == d.ndim == 1 and values.shape == (n.size, d.size):
        n = n[:, None]
    for name, each in (("parameters", n), ("data", d)):
        fits = each.ndim <= values.ndim and all(
            have in (1, want) for have, want in zip(each.shape[::-1], values.shape[::-1], strict=False)
        )
        require(
            fits,
            f"{name} has shape {each.shape}, but losses has shape {values.shape}",
            argument=name,
            value=each.shape,
            remedy="give one value per loss, or a table of losses with one N per row and one D per column",
        )
    n, d, values = (each.ravel() for each in np.broadcast_arrays(n, d, values))
    require(
        values.size >= _FEWEST,
        f"the number of losses is only {values.size}",
        argument="losses",
        value=values.size,
        remedy=f"give at least {_FEWEST} losses, because the law has five parameters",
    )
    for name, each in (("parameters", n), ("data", d)):
        different = len(np.unique(each))
        require(
            different >= 3,
            f"{name} has too few distinct values ({different})",
            argument=name,
            value=different,
            remedy="give at least three distinct values, or fit the other resource alone with fit",
        )
    return n, d, values


class Scaled(NamedTuple):
    """Logarithms of losses and resources, centred at their means.

    Attributes:
        n: ln N minus its mean.
        d: ln D minus its mean.
        y: ln L minus its mean.
        centres: The means of ln N, ln D and ln L.
    """

    n: Float[np.ndarray, " points"]
    d: Float[np.ndarray, " points"]
    y: Float[np.ndarray, " points"]
    centres: tuple[float, float, float]

    @classmethod
    def of(cls, parameters: np.ndarray, data: np.ndarray, losses: np.ndarray) -> Scaled:
        """Take the logarithm of positive numbers and centre the result."""
        logs = [np.log(each) for each in (parameters, data, losses)]
        n, d, y = (float(each.mean()) for each in logs)
        return cls(logs[0] - n, logs[1] - d, logs[2] - y, (n, d, y))

    def take(self, rows: Bool[np.ndarray, " points"]) -> Scaled:
        """Select runs; the centres are unchanged."""
        return Scaled(self.n[rows], self.d[rows], self.y[rows], self.centres)


def joint_residuals(
    laws: Float[np.ndarray, "laws 5"], n: np.ndarray, d: np.ndarray, y: np.ndarray | float
) -> tuple[Float[np.ndarray, "laws points"], Float[np.ndarray, "laws points 5"]]:
    """Return ln(E + A N^−a + B D^−b) − ln L and its derivatives with respect to E, ln A, ln B, a and b."""
    floor, level_n, level_d, a, b = laws.T[..., None]
    of_n, of_d = np.exp(level_n - a * n), np.exp(level_d - b * d)
    loss = floor + of_n + of_d
    slopes = np.stack([np.ones_like(loss), of_n, of_d, -n * of_n, -d * of_d], axis=-1) / loss[..., None]
    return np.log(loss) - y, slopes


def nearest_joint_law(data: Scaled) -> tuple[Float[np.ndarray, " 5"], float]:
    """Fit E, ln A, ln B, a and b; return them and the threshold of the Huber loss.

    For given exponents, the law is linear in E, A and B, so the function solves a grid of exponents at once by least
    squares of (law − L)/L. From each local minimum of the grid, the function then fits all five coefficients to ln L.
    The Huber threshold is proportional to the median absolute residual, which is robust to outliers.
    """
    laws = joint_starts(data)

    def residuals(now: np.ndarray, _: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return joint_residuals(now, data.n, data.d, data.y)

    laws, sums = descend(residuals, laws, LOWER, UPPER, precision=1e-8)
    threshold = np.inf
    for _ in range(_ROUNDS):
        left = residuals(laws[np.argmin(sums)][None], np.zeros(1, int))[0]
        scatter = 1.4826 * float(np.median(np.abs(left))) * np.sqrt(left.size / max(left.size - 5, 1))
        threshold = HUBER * max(scatter, _EXACT)
        laws, sums = descend(residuals, laws, LOWER, UPPER, threshold=threshold, precision=1e-8)
    best = laws[[np.argmin(sums)]]
    return descend(residuals, best, LOWER, UPPER, threshold=threshold)[0][0], threshold


def joint_starts(data: Scaled) -> Float[np.ndarray, "starts 5"]:
    """Return the local minima on a grid of exponents, with the best non-negative E, A and B."""
    a, b = (each.ravel() for each in np.meshgrid(_EXPONENTS, _EXPONENTS, indexing="ij"))
    inverse = np.exp(-data.y)
    terms = [np.ones((len(a), 1)), np.exp(-a[:, None] * data.n), np.exp(-b[:, None] * data.d)]
    columns = np.stack([term * inverse for term in terms], axis=-1)
    sizes = np.linalg.norm(columns, axis=1)
    columns /= sizes[:, None]
    products, sides = np.einsum("gpk,gpl->gkl", columns, columns), columns.sum(axis=1)
    best, numbers = np.full(len(a), np.inf), np.zeros((len(a), 3))
    for kept in (list(each) for size in (1, 2, 3) for each in itertools.combinations(range(3), size)):
        part = products[:, kept][:, :, kept] + _ALIKE * np.eye(len(kept))
        found = np.linalg.solve(part, sides[:, kept][..., None])[..., 0]
        # The minimum of the sum of squares of c·x − 1.
        squares = inverse.size - np.sum(found * sides[:, kept], axis=1)
        better = np.all(found >= 0, axis=1) & (squares < best)
        best[better], numbers[better] = squares[better], 0.0
        numbers[np.ix_(better, kept)] = found[better]
    height = best.reshape(len(_EXPONENTS), -1)
    low = (height == minimum_filter(height, 3, mode="nearest")).ravel()
    chosen = np.argsort(np.where(low, best - best.max() - 1, best))[:_STARTS]
    floor, *levels = (numbers / sizes)[chosen].T
    return np.column_stack([floor, *np.log(np.maximum(levels, _ABSENT)), a[chosen], b[chosen]])
