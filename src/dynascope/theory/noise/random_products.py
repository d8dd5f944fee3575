"""The growth of random products of matrices, of steps near an invariant set, and bounds on it in any direction."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
import scipy.optimize
from annotated_types import Ge
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.noise.stochastic_collapse import covers_near_set
from dynascope.theory.sgd import SGD, Momentum
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteFloat, FiniteNumbers, NonNegativeFloat, PositiveFloat, Seed

__all__ = [
    "GrowthBounds",
    "LyapunovExponent",
    "heavy_ball_collapse_exponent",
    "normal_growth_bounds",
    "random_product_exponent",
    "step_matrices",
]

_WALKERS, _FORGOTTEN = 64, 0.1  # products at a time, and the share of their factors after which the start is forgotten
_EXCURSIONS = 0.1  # of the curvature, over what momentum damps, up to which those through zero are rare


class LyapunovExponent(NamedTuple):
    """How fast random products of matrices grow.

    Attributes:
        exponent: Mean growth of the logarithm of the norm for each factor.
        standard_error: Of the mean over independent products.
    """

    exponent: float
    standard_error: float

    __repr__ = short_repr


@covers_near_set(
    gives="the exponent near an invariant set from Hessians of batches, with momentum and any number of directions",
    infinite=True,
)
def random_product_exponent(
    matrices: FiniteNumbers, *, factors: Annotated[int, Ge(10)] = 2000, seed: Seed = 0
) -> LyapunovExponent:
    """λ = lim 1/n E log ‖M_n … M₁ x‖ of factors that are drawn again and again, all as likely.

    Of `step_matrices` it is the exponent, for each step, at which descent approaches an invariant set (λ < 0) or leaves
    it (λ > 0): the sharp criterion with several normal directions or with momentum. It is the mean over 64 products, of
    each of which the first tenth is left out, and of which as many vectors are followed, with the error that tells.

    Cost: 64 · factors products of a matrix and a vector.

    Args:
        matrices: M of the batches, shape (batches, k, k).
        factors: Factors of each product, at least 10.
        seed: Seed of the draw, from zero.

    Returns:
        The exponent, −∞ where a product is zero, and its standard error.

    Raises:
        InputError: Matrices that are not square or not finite, or too few factors.

    References:
        Furstenberg, Kesten, Ann. Math. Statist. 31 (1960); near invariant sets: Chen, Kunin, Yamamura, Ganguli,
        arXiv:2306.04251.

    Example:
        >>> found = random_product_exponent([[[2.0, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 0.5]]], factors=4000)
        >>> bool(abs(found.exponent - np.log(2) / 2) < 4 * found.standard_error)
        True
    """
    given = require_array("matrices", matrices, (None, None, None))
    given = require_array("matrices", given, (None, given.shape[1], given.shape[1]))
    require(given.size > 0, "matrices is empty", argument="matrices", value=0, remedy="give that of one batch or more")
    draw = np.random.default_rng(seed)
    size = float(np.abs(given).max())
    if size == 0:
        return LyapunovExponent(-np.inf, 0.0)
    # Products of numbers of ordinary size neither overflow nor vanish.
    chosen, first = given / size, int(_FORGOTTEN * factors)
    vectors = draw.normal(size=(_WALKERS, given.shape[1]))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    grown = np.zeros(_WALKERS)
    for step in range(factors):
        vectors = np.einsum("wij,wj->wi", chosen[draw.integers(len(chosen), size=_WALKERS)], vectors)
        norms = np.sqrt(np.einsum("wi,wi->w", vectors, vectors))
        if not norms.all():
            return LyapunovExponent(-np.inf, 0.0)
        vectors /= norms[:, None]
        if step >= first:
            grown += np.log(norms)
    means = grown / (factors - first) + np.log(size)
    return LyapunovExponent(float(means.mean()), float(means.std(ddof=1) / np.sqrt(_WALKERS)))


@covers_near_set(gives="how a step moves what is normal to an invariant set")
def step_matrices(hessians: FiniteNumbers, sgd: SGD) -> Float[np.ndarray, "batches m m"]:
    """What steps multiply the distance n from an invariant set by: I − η(H_B + λ) of plain descent.

    With momentum, of the pair of n and the displacement d: ((I − ηH, βI), (−ηH, βI)) with H = H_B + λ.

    Args:
        hessians: H_B of the loss of each batch in the k directions normal to the set, shape (batches, k, k).
        sgd: η, β and λ.

    Returns:
        Matrices, shape (batches, k, k), or (batches, 2k, 2k) with momentum.

    Raises:
        InputError: A number out of range, a batch size, or Hessians that are not square or not finite.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> step_matrices([[[2.0]]], SGD(0.1, momentum=0.5)).round(12).tolist()
        [[[0.8, 0.5], [-0.2, 0.5]]]
    """
    sgd.require_without_batches()
    h = require_array("hessians", hessians, (None, None, None))
    h = require_array("hessians", h, (None, h.shape[1], h.shape[1]))
    one = np.eye(h.shape[1])
    with np.errstate(all="ignore"):
        pulled = sgd.learning_rate * (h + sgd.weight_decay * one)
    if sgd.momentum == 0:
        return one - pulled
    carried = np.broadcast_to(sgd.momentum * one, h.shape)
    return np.block([[one - pulled, carried], [-pulled, carried]])


@covers_near_set(gives="the exponent near an invariant set under momentum, to leading order", exact=False)
def heavy_ball_collapse_exponent(
    curvature: FiniteFloat,
    curvature_deviation: NonNegativeFloat,
    *,
    learning_rate: PositiveFloat,
    momentum: Momentum,
) -> float:
    """Λ ≈ −ηh/(1 − β) − η² Var(h_B)/(2(1 − β)²) for each step, to leading order in η, with one normal direction.

    The noise term is right to about 5 percent where η s/√(1 − β²) is below a tenth of 1 − β, with s the deviation of
    h_B; beyond, rare excursions carry the weights through zero, which momentum allows, and it is refused.

    Args:
        curvature: h, the mean of the curvatures of batches.
        curvature_deviation: s ≥ 0, their standard deviation.
        learning_rate: η > 0.
        momentum: β ≥ 0, below one.

    Raises:
        InputError: A number out of range, or noise for which the order is not enough.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251; the order in momentum is our own.

    Example:
        >>> print(round(heavy_ball_collapse_exponent(-0.01, 1.0, learning_rate=0.01, momentum=0.8), 6))
        -0.00075
    """
    damped = 1 - momentum
    excursion = np.float64(learning_rate) * curvature_deviation / np.sqrt(1 - momentum**2) / damped
    require(
        excursion <= _EXCURSIONS,
        f"curvature_deviation is {curvature_deviation:g}, at which steps pass through zero",
        argument="curvature_deviation",
        value=curvature_deviation,
        remedy="take random_product_exponent of step_matrices",
    )
    mean = np.float64(learning_rate) * curvature / damped
    return float(-mean - (np.float64(learning_rate) * curvature_deviation / damped) ** 2 / 2)


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
