"""How fast noise draws weights into an invariant set at least, or keeps them away, in whatever direction."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.optimize

from dynascope.results.named_tuples import short_repr
from dynascope.theory.noise.stochastic_collapse import covers_near_set
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["GrowthBounds", "normal_growth_bounds"]


class GrowthBounds(NamedTuple):
    """Between which rates the distance from an invariant set grows, whatever its direction.

    Attributes:
        least: Above zero, noise repels.
        most: Below zero, noise attracts.
    """

    least: float
    most: float

    __repr__ = short_repr


@covers_near_set(gives="bounds on the rate near an invariant set with several normal directions", exact=False)
def normal_growth_bounds(hessian: FiniteNumbers, noise: FiniteNumbers) -> GrowthBounds:
    """The bounds on d/dt E log‖n‖ of dn = −H n dt + Σ_k S_k n dW_k, which hold of every direction of n.

    In the direction n the rate is −nᵀHn + ½ Σ_k ‖S_k n‖² − Σ_k (nᵀS_k n)². As (nᵀS_k n)² ≥ 2 c_k nᵀS_k n − c_k² for
    any c, it is at most the largest eigenvalue of −H + Σ_k (½ S_k² − 2 c_k S_k) plus Σ_k c_k², of which the least over
    c is taken; and as (nᵀS_k n)² ≤ ‖S_k n‖² it is at least the smallest one of −H − ½ Σ_k S_k². Where zero lies
    between, `random_product_exponent` decides.

    Args:
        hessian: H, shape (k, k), symmetric.
        noise: S_k of the independent sources of noise, shape (sources, k, k), symmetric; √η times those of a batch.

    Raises:
        InputError: Values that are not finite, or matrices that are not symmetric or do not fit.

    References:
        Own derivation; the subject is that of Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> bounds = normal_growth_bounds([[-1.0, 0.0], [0.0, -0.5]], [[[2.0, 0.0], [0.0, 2.0]]])
        >>> print(round(bounds.least, 6), round(bounds.most, 6))
        -1.5 -1.0
    """
    h = require_array("hessian", hessian, (None, None))
    h = _symmetric("hessian", require_array("hessian", h, (len(h),) * 2))
    sources = _symmetric("noise", require_array("noise", noise, (None, *h.shape)))
    with np.errstate(all="ignore"):
        squared = -h + np.sum(sources @ sources, axis=0) / 2
        least = float(np.linalg.eigvalsh(-h - np.sum(sources @ sources, axis=0) / 2)[0])

    def bound(c: np.ndarray) -> tuple[float, np.ndarray]:
        values, vectors = np.linalg.eigh(squared - 2 * np.tensordot(c, sources, 1))
        top = vectors[:, -1]
        return float(values[-1] + c @ c), 2 * c - 2 * np.einsum("i,kij,j->k", top, sources, top)

    start = np.trace(sources, axis1=1, axis2=2) / len(h)
    size = float(np.abs(sources).max(initial=0.0))
    if size == 0:
        return GrowthBounds(least, float(np.linalg.eigvalsh(-h)[-1]))
    # Every c gives a bound, so that nothing depends on how near to the least one the search ends.
    found = scipy.optimize.minimize(lambda c: bound(size * c)[0] / size**2, start / size, method="Powell")
    return GrowthBounds(least, min(bound(c)[0] for c in (start, size * np.atleast_1d(found.x), np.zeros(len(start)))))


def _symmetric(name: str, matrices: np.ndarray) -> np.ndarray:
    asymmetry = float(np.abs(matrices - np.swapaxes(matrices, -1, -2)).max(initial=0.0))
    require(
        asymmetry <= 1e-9 * np.abs(matrices).max(initial=0.0),
        f"{name} is not symmetric",
        argument=name,
        value=asymmetry,
        remedy="give symmetric matrices",
    )
    return (matrices + np.swapaxes(matrices, -1, -2)) / 2
