"""Growth rates of random matrix products, and their bounds, for gradient descent near an invariant set."""

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

_WALKERS, _BURN_IN = 64, 0.1  # number of independent products, and the fraction of the factors that is discarded
_EXCURSIONS = 0.1  # relative noise up to which excursions through zero are rare


class LyapunovExponent(NamedTuple):
    """Growth rate of random matrix products.

    Attributes:
        exponent: Mean growth of the log norm per factor.
        standard_error: Standard error of the mean over independent products.
    """

    exponent: float
    standard_error: float

    __repr__ = short_repr


@covers_near_set(
    gives="the Lyapunov exponent near an invariant set from batch Hessians, with momentum and several directions",
    infinite=True,
)
def random_product_exponent(
    matrices: FiniteNumbers, *, factors: Annotated[int, Ge(10)] = 2000, seed: Seed = 0
) -> LyapunovExponent:
    """Lyapunov exponent of products of matrices drawn uniformly with replacement, estimated by simulation.

        λ = lim 1/n E log ‖M_n … M₁ x‖

    For `step_matrices`, λ is the rate per step at which gradient descent approaches (λ < 0) or leaves (λ > 0) an
    invariant set. The sign of λ is an exact criterion for any number of normal directions, with or without momentum.
    The estimate is the mean over 64 products, each applied to a random vector; the first tenth of the factors is
    discarded. The standard error is computed from the scatter of the products.

    Cost: 64 · factors matrix-vector products.

    Args:
        matrices: M of each batch, shape (batches, k, k).
        factors: Number of factors in each product, at least 10.
        seed: Random seed, an integer ≥ 0.

    Returns:
        The exponent, −∞ if a product is zero, and its standard error.

    Raises:
        InputError: If the matrices are not square or not finite, or there are too few factors.

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
    require(given.size > 0, "matrices is empty", argument="matrices", value=0, remedy="give at least one matrix")
    draw = np.random.default_rng(seed)
    size = float(np.abs(given).max())
    if size == 0:
        return LyapunovExponent(-np.inf, 0.0)
    # Rescaled so that products neither overflow nor underflow.
    chosen, first = given / size, int(_BURN_IN * factors)
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


@covers_near_set(gives="the matrices that multiply the displacement from an invariant set")
def step_matrices(hessians: FiniteNumbers, sgd: SGD) -> Float[np.ndarray, "batches m m"]:
    """Matrices that multiply the displacement n from an invariant set in one step, one matrix per batch.

        I − η(H_B + λ)   without momentum;   ((I − ηH, βI), (−ηH, βI)), H = H_B + λ, for (n, d) with momentum

    Here, n is the displacement from the set, and d is the change of n in the last step.

    Args:
        hessians: H_B, the Hessian of each batch's loss in the k directions normal to the set, shape (batches, k, k).
        sgd: η, β and λ.

    Returns:
        Matrices, shape (batches, k, k), or (batches, 2k, 2k) with momentum.

    Raises:
        InputError: If a number is out of range, a batch size is given, or the Hessians are not square or not finite.

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


@covers_near_set(gives="the Lyapunov exponent near an invariant set with momentum, to leading order", exact=False)
def heavy_ball_collapse_exponent(
    curvature: FiniteFloat,
    curvature_deviation: NonNegativeFloat,
    *,
    learning_rate: PositiveFloat,
    momentum: Momentum,
) -> float:
    """Leading-order Lyapunov exponent per step of SGD with momentum near an invariant set with one normal direction.

        Λ ≈ −ηh/(1 − β) − η² Var(h_B)/(2(1 − β)²)

    The noise term is accurate to about 5 % if η s/√(1 − β²) is below (1 − β)/10, where s is the standard deviation of
    h_B. For stronger noise, rare fluctuations carry the weights through zero, and the function raises an error.

    Args:
        curvature: h, the mean curvature over batches.
        curvature_deviation: s ≥ 0, the standard deviation of the curvature over batches.
        learning_rate: η > 0.
        momentum: β ≥ 0, below one.

    Raises:
        InputError: If a number is out of range, or the noise is too strong for the leading order.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251; the dependence on momentum is derived here.

    Example:
        >>> print(round(heavy_ball_collapse_exponent(-0.01, 1.0, learning_rate=0.01, momentum=0.8), 6))
        -0.00075
    """
    damped = 1 - momentum
    excursion = np.float64(learning_rate) * curvature_deviation / np.sqrt(1 - momentum**2) / damped
    require(
        excursion <= _EXCURSIONS,
        f"curvature_deviation is {curvature_deviation:g}, which is so large that the weights pass through zero",
        argument="curvature_deviation",
        value=curvature_deviation,
        remedy="use random_product_exponent with step_matrices",
    )
    mean = np.float64(learning_rate) * curvature / damped
    return float(-mean - (np.float64(learning_rate) * curvature_deviation / damped) ** 2 / 2)


class GrowthBounds(NamedTuple):
    """Bounds on the growth rate of the distance from an invariant set, valid in every normal direction.

    Attributes:
        least: Lower bound; if it is positive, noise drives the weights away from the set.
        most: Upper bound; if it is negative, noise attracts the weights to the set.
    """

    least: float
    most: float

    __repr__ = short_repr


@covers_near_set(gives="bounds on the growth rate near an invariant set with several normal directions", exact=False)
def normal_growth_bounds(hessian: FiniteNumbers, noise: FiniteNumbers) -> GrowthBounds:
    """Bounds on the growth rate of the distance from an invariant set, valid for every direction n.

        d/dt E log‖n‖ = −nᵀHn + ½ Σ_k ‖S_k n‖² − Σ_k (nᵀS_k n)²   for ‖n‖ = 1 and dn = −H n dt + Σ_k S_k n dW_k

    Upper bound: since (nᵀS_k n)² ≥ 2 c_k nᵀS_k n − c_k², the rate is at most the largest eigenvalue of −H + Σ_k (½
    S_k² − 2 c_k S_k) plus Σ_k c_k², for any c; the function minimises over c. Lower bound: since (nᵀS_k n)² ≤ ‖S_k n‖²,
    the rate is at least the smallest eigenvalue of −H − ½ Σ_k S_k². If zero lies between the bounds, use
    `random_product_exponent` to find the sign.

    Args:
        hessian: H, shape (k, k), symmetric.
        noise: S_k of the independent noise sources, shape (sources, k, k), symmetric; for batches drawn with
            probability p_B, √(η p_B) times the deviation of the batch Hessian from H.

    Raises:
        InputError: If a value is not finite, or the matrices are not symmetric or do not match.

    References:
        Derived here, for the problem of Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

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
    # Every c gives a valid bound, so the search need not converge.
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
