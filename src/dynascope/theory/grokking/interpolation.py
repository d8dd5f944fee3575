"""Interpolants from minimum ℓ2 to minimum ℓ1 norm: the path of a diagonal network under weight decay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, PositiveNumbers

__all__ = ["Constraint", "InterpolantPath", "Point", "constraint", "interpolant_path", "solve", "trace_path"]

_NEGLIGIBLE = 1e-12  # times the larger dimension: relative singular values below it count as zero
_OUT_OF_RANGE = 1e-8  # relative residual of the targets allowed for dependent rows in rounded data
_SMALLEST = 1e-40  # smallest product, in units of the coefficients, for which the dual is solvable
_STRIDE = 0.3  # largest step in ln b along the path, for which the tangent is a good guess
_CONVERGED = 1e-13
_ATTEMPTS = 200


class InterpolantPath(NamedTuple):
    """Interpolants w(b) of the training samples, in the order of the given products b.

    Attributes:
        products: b, shape (m,).
        coefficients: w(b) with X w = y, shape (m, d).
        multipliers: μ(b) in w = 2b sinh(Xᵀμ), with minimum norm if the rows of X are linearly dependent, shape (m, n).
    """

    products: Float[np.ndarray, " m"]
    coefficients: Float[np.ndarray, "m d"]
    multipliers: Float[np.ndarray, "m n"]

    __repr__ = short_repr


@covers(
    network="diagonal linear, x·(u² − v²), with weight decay",
    data="any inputs, targets that a linear function fits exactly",
    start="equal for all weights",
    gives="the interpolating function as the products of the weights decay",
    reference="arXiv:2311.18817",
)
def interpolant_path(inputs: FiniteNumbers, targets: FiniteNumbers, products: PositiveNumbers) -> InterpolantPath:
    """Interpolants w(b) of a diagonal network under weight decay, for products b of its two weights per input.

        w(b) = argmin Σ_i [w_i arcsinh(w_i/2b) − √(w_i² + 4b²)] subject to X w = y

    The interpolant has the minimum ℓ2 norm for b → ∞ and the minimum ℓ1 norm for b → 0.

    The solution is w = 2b sinh(Xᵀμ), where μ minimises the convex dual 2b Σ_i cosh(Xᵀμ)_i − yᵀμ. The function solves
    the dual by damped Newton steps along decreasing b. A step that changes Xᵀμ by at most s is scaled by ln(1 + s)/s,
    which makes the iteration globally convergent. The tangent dμ/d ln b = −(X D Xᵀ)⁻¹ y, D = √(w² + 4b²), provides the
    initial guess. No term overflows for small b.

    Each interpolant takes about three linear solves with n equations. In addition to the given products, about eight
    intermediate interpolants are computed per decade of b.

    Args:
        inputs: X, one sample per row, shape (n, d); of any rank.
        targets: y, shape (n,), in the range of X. If the rows of X are linearly independent, the range of X contains
            every y.
        products: b > 0, the products u_i v_i of the weights, shape (m,), in any order; at least 1e-40 times the largest
            coefficient of the minimum-ℓ2-norm interpolant.

    Returns:
        `InterpolantPath`.

    Raises:
        InputError: If no linear function fits the targets, a product is out of range, a value is not finite, or the
            shapes do not match.

    References:
        Woodworth et al., arXiv:2002.09277, Theorem 1 (at fixed b); Lyu et al., arXiv:2311.18817, for weight decay.

    Example:
        >>> path = interpolant_path([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]], [2.0, 0.5], [0.1, 1e-4])
        >>> path.coefficients.round(6)
        array([[0.114778, 0.677044, 0.177044],
               [0.002681, 0.699464, 0.199464]])
    """
    system = constraint(inputs, targets)
    products = require_array("products", products, (None,))
    distinct, position = np.unique(products, return_inverse=True)
    _require_solvable(system, distinct)
    logarithms = np.log(distinct)
    found = [point for point in trace_path(system, logarithms) if point.log_product in logarithms][::-1]
    coefficients = np.array([point.coefficients for point in found]).reshape(len(distinct), -1)
    duals = np.array([point.dual for point in found]).reshape(len(distinct), -1)
    return InterpolantPath(products, coefficients[position], ((duals / system.strengths) @ system.samples.T)[position])


class Constraint(NamedTuple):
    """The constraint X w = y with orthonormal rows: A w = c, where X = U S A has rank r.

    Attributes:
        samples: U, shape (n, r).
        strengths: S > 0, shape (r,).
        rows: A, shape (r, d).
        values: c, shape (r,).
        size: Largest coefficient of the minimum-ℓ2-norm interpolant.
    """

    samples: Float[np.ndarray, "n r"]
    strengths: Float[np.ndarray, " r"]
    rows: Float[np.ndarray, "r d"]
    values: Float[np.ndarray, " r"]
    size: float


class Point(NamedTuple):
    """An interpolant on the path.

    Attributes:
        log_product: ln b.
        coefficients: w, shape (d,).
        spread: D = √(w² + 4b²), the derivative of w with respect to Aᵀν, shape (d,).
        dual: ν in w = 2b sinh(Aᵀν), shape (r,).
        tangent: dν/d ln b, shape (r,).
    """

    log_product: float
    coefficients: Float[np.ndarray, " d"]
    spread: Float[np.ndarray, " d"]
    dual: Float[np.ndarray, " r"]
    tangent: Float[np.ndarray, " r"]


def constraint(inputs: ArrayLike, targets: ArrayLike) -> Constraint:
    """Check the samples, and return their constraint on w without dependent rows."""
    x = require_array("inputs", inputs, (None, None))
    y = require_array("targets", targets, (len(x),))
    require(
        x.size > 0 and bool(np.any(x)),
        f"inputs of shape {x.shape} are all zero",
        argument="inputs",
        value=x.shape,
        remedy="give at least one sample that is not zero",
    )
    left, singular, right = np.linalg.svd(x, full_matrices=False)
    kept = singular > _NEGLIGIBLE * max(x.shape) * singular[0]
    left, singular, right = left[:, kept], singular[kept], right[kept]
    residual_norm, norm = float(np.linalg.norm(y - left @ (left.T @ y))), float(np.linalg.norm(y))
    require(
        residual_norm <= _OUT_OF_RANGE * norm,
        f"no linear function fits the targets (the relative residual is {residual_norm / (norm or 1.0):.2g})",
        argument="targets",
        value=residual_norm,
        remedy="use more inputs than samples, or targets without noise",
    )
    values = (left.T @ y) / singular
    return Constraint(left, singular, right, values, float(np.abs(values @ right).max()))


def trace_path(system: Constraint, log_products: Float[np.ndarray, " m"]) -> Iterator[Point]:
    """Yield interpolants in order of decreasing b, at the given ln b and at intermediate values in large gaps."""
    if not len(log_products):
        return
    # Start at b for which sinh is nearly linear; zero targets have no scale and need no path.
    top = max(log_products[-1], np.log(system.size)) if system.size > 0 else log_products[-1]
    steps = int(np.ceil((top - log_products[0]) / _STRIDE))
    ladder = np.linspace(top, log_products[0], steps + 1)[:-1]
    rows, values = system.rows, system.values
    point = None
    for log_product in np.unique(np.concatenate([ladder, log_products]))[::-1]:
        if point is None:
            guess = rows @ np.arcsinh((values @ rows) / (2 * np.exp(log_product)))
        else:
            guess = point.dual + (log_product - point.log_product) * point.tangent
        point = solve(system, log_product, guess)
        yield point


def solve(system: Constraint, log_product: float, guess: Float[np.ndarray, " r"]) -> Point:
    """Return the interpolant at one b, found by damped Newton steps from a guess of ν."""
    rows, values = system.rows, system.values
    dual, resolution = guess, _CONVERGED * np.abs(values).max()
    for _ in range(_ATTEMPTS):
        angle = dual @ rows
        # 2b sinh and 2b cosh, without overflow for small b and without cancellation for small angles.
        shrink, grown = np.exp(-2 * np.abs(angle)), np.exp(log_product + np.abs(angle))
        coefficients = np.sign(angle) * grown * -np.expm1(-2 * np.abs(angle))
        spread = grown * (1 + shrink)
        residual = values - rows @ coefficients
        step, tangent = np.linalg.solve((rows * spread) @ rows.T, np.stack([residual, -values], axis=1)).T
        length = float(np.abs(step @ rows).max())
        rounding = 4 * np.finfo(float).eps * (1 + np.abs(angle).max())
        if np.abs(residual).max() <= resolution or length <= rounding:
            return Point(float(log_product), coefficients, spread, dual, tangent)
        dual = dual + step * (np.log1p(length) / length)
    raise InputError(
        f"the Newton iteration did not converge at the product {np.exp(log_product):.3g}",
        argument="products",
        value=float(np.exp(log_product)),
        remedy="use larger products",
    )


def _require_solvable(system: Constraint, products: Float[np.ndarray, " m"]) -> None:
    require(
        products.size > 0,
        "products is empty",
        argument="products",
        value=0,
        remedy="give at least one product",
    )
    smallest = float(products.min())
    require(
        smallest >= _SMALLEST * system.size,
        f"the smallest product is {smallest:.3g}, which is too small for coefficients of size {system.size:.3g}",
        argument="products",
        value=smallest,
        remedy=f"use products of at least {_SMALLEST:g} times the largest coefficient",
    )
