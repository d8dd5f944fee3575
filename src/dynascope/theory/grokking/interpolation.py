"""The interpolants between least ℓ2 and least ℓ1 norm, along which weight decay takes a diagonal network."""

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

__all__ = ["Constraint", "InterpolantPath", "Point", "constraint", "follow", "interpolant_path", "solve"]

_NEGLIGIBLE = 1e-12  # singular values below this fraction of the largest, times the larger side, count as zero
_OUT_OF_RANGE = 1e-8  # what linear dependence of the rows leaves of the targets, as a fraction, in rounded data
_SMALLEST = 1e-40  # of the products, in units of the coefficients; the dual stays solvable that far
_STRIDE = 0.3  # in ln b, between two points of the path: within it the tangent nearly solves
_CONVERGED = 1e-13
_ATTEMPTS = 200


class InterpolantPath(NamedTuple):
    """Interpolants w(b), in the order of the products asked for.

    Attributes:
        products: b, shape (m,).
        coefficients: w(b) with X w = y, shape (m, d).
        multipliers: μ(b) in w = 2b sinh(Xᵀμ), the shortest if the rows of X depend on each other, shape (m, n).
    """

    products: Float[np.ndarray, " m"]
    coefficients: Float[np.ndarray, "m d"]
    multipliers: Float[np.ndarray, "m n"]

    __repr__ = short_repr


@covers(
    network="diagonal linear, x·(u² − v²), with weight decay",
    data="any inputs, targets that they fit exactly",
    start="the same for all weights",
    gives="the function it interpolates with while the products of its weights decay",
    reference="arXiv:2311.18817",
)
def interpolant_path(inputs: FiniteNumbers, targets: FiniteNumbers, products: PositiveNumbers) -> InterpolantPath:
    """The interpolants w(b) that a diagonal network passes on its way from least ℓ2 norm (b → ∞) to least ℓ1 (b → 0).

    w(b) minimises Σ_i [w_i arcsinh(w_i/2b) − √(w_i² + 4b²)] among all w with X w = y. So w = 2b sinh(Xᵀμ), where μ
    minimises the convex dual 2b Σ_i cosh(Xᵀμ)_i − yᵀμ. It is found by damped Newton steps of length ln(1 + s)/s for a
    step that changes Xᵀμ by at most s, which converge from anywhere, along decreasing b and with the tangent
    dμ/d ln b = −(X D Xᵀ)⁻¹ y, D = √(w² + 4b²), as the guess. No term overflows, however small b is.

    The cost is about three solves of n equations for each product, and eight for each decade of b passed.

    Args:
        inputs: X, one sample a row, shape (n, d); of any rank.
        targets: y, shape (n,), in the range of X, as always where the rows are independent.
        products: b > 0, shape (m,), the products u_i v_i of the weights, in any order; down to 1e-40 of the largest
            coefficient of the interpolant of least ℓ2 norm.

    Returns:
        `InterpolantPath`.

    Raises:
        InputError: Targets that no linear function fits, products out of range, values that are not finite or shapes
            that do not fit.

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
    wanted, position = np.unique(products, return_inverse=True)
    _require_solvable(system, wanted)
    logarithms = np.log(wanted)
    found = [point for point in follow(system, logarithms) if point.log_product in logarithms][::-1]
    coefficients = np.array([point.coefficients for point in found]).reshape(len(wanted), -1)
    duals = np.array([point.dual for point in found]).reshape(len(wanted), -1)
    return InterpolantPath(products, coefficients[position], ((duals / system.strengths) @ system.samples.T)[position])


class Constraint(NamedTuple):
    """X w = y in orthonormal rows: A w = c with X = U S A, of rank r.

    Attributes:
        samples: U, shape (n, r).
        strengths: S > 0, shape (r,).
        rows: A, shape (r, d).
        values: c, shape (r,).
        size: The largest coefficient of the interpolant of least ℓ2 norm.
    """

    samples: Float[np.ndarray, "n r"]
    strengths: Float[np.ndarray, " r"]
    rows: Float[np.ndarray, "r d"]
    values: Float[np.ndarray, " r"]
    size: float


class Point(NamedTuple):
    """One interpolant.

    Attributes:
        log_product: ln b.
        coefficients: w, shape (d,).
        spread: D = √(w² + 4b²), shape (d,), by which changes of Aᵀν move w.
        dual: ν in w = 2b sinh(Aᵀν), shape (r,).
        tangent: dν/d ln b, shape (r,).
    """

    log_product: float
    coefficients: Float[np.ndarray, " d"]
    spread: Float[np.ndarray, " d"]
    dual: Float[np.ndarray, " r"]
    tangent: Float[np.ndarray, " r"]


def constraint(inputs: ArrayLike, targets: ArrayLike) -> Constraint:
    """What the samples ask of w, free of dependent rows."""
    x = require_array("inputs", inputs, (None, None))
    y = require_array("targets", targets, (len(x),))
    require(
        x.size > 0 and bool(np.any(x)),
        f"inputs of shape {x.shape} hold no number other than zero",
        argument="inputs",
        value=x.shape,
        remedy="give at least one sample that is not zero",
    )
    left, singular, right = np.linalg.svd(x, full_matrices=False)
    kept = singular > _NEGLIGIBLE * max(x.shape) * singular[0]
    left, singular, right = left[:, kept], singular[kept], right[kept]
    missed = float(np.linalg.norm(y - left @ (left.T @ y)))
    require(
        missed <= _OUT_OF_RANGE * np.linalg.norm(y),
        f"no linear function fits the targets: {missed / (float(np.linalg.norm(y)) or 1.0):.2g} of their norm is left",
        argument="targets",
        value=missed,
        remedy="give more inputs than samples, or targets without noise",
    )
    values = (left.T @ y) / singular
    return Constraint(left, singular, right, values, float(np.abs(values @ right).max()))


def follow(system: Constraint, log_products: Float[np.ndarray, " m"]) -> Iterator[Point]:
    """Interpolants along decreasing b: at the increasing ln b asked for, and in between where those lie far apart."""
    if not len(log_products):
        return
    # From where sinh is nearly linear on; a target of zero has no scale and needs no path.
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
    """The interpolant at one b, by damped Newton steps from a guess of ν."""
    rows, values = system.rows, system.values
    dual, resolution = guess, _CONVERGED * np.abs(values).max()
    for _ in range(_ATTEMPTS):
        angle = dual @ rows
        # 2b sinh and 2b cosh, which neither overflow for small b nor cancel for small angles.
        shrink, grown = np.exp(-2 * np.abs(angle)), np.exp(log_product + np.abs(angle))
        coefficients = np.sign(angle) * grown * -np.expm1(-2 * np.abs(angle))
        spread = grown * (1 + shrink)
        missing = values - rows @ coefficients
        step, tangent = np.linalg.solve((rows * spread) @ rows.T, np.stack([missing, -values], axis=1)).T
        length = float(np.abs(step @ rows).max())
        rounding = 4 * np.finfo(float).eps * (1 + np.abs(angle).max())
        if np.abs(missing).max() <= resolution or length <= rounding:
            return Point(float(log_product), coefficients, spread, dual, tangent)
        dual = dual + step * (np.log1p(length) / length)
    raise InputError(
        f"the interpolant at the product {np.exp(log_product):.3g} was not found",
        argument="products",
        value=float(np.exp(log_product)),
        remedy="choose larger products",
    )


def _require_solvable(system: Constraint, products: Float[np.ndarray, " m"]) -> None:
    require(
        products.size > 0,
        "there are no products",
        argument="products",
        value=0,
        remedy="give at least one",
    )
    smallest = float(products.min())
    require(
        smallest >= _SMALLEST * system.size,
        f"products go down to {smallest:.3g} for coefficients of {system.size:.3g}",
        argument="products",
        value=smallest,
        remedy=f"choose numbers not below {_SMALLEST:g} of the largest coefficient",
    )
