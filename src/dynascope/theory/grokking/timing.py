"""Grokking time of a diagonal network with weight decay, from a critical point that depends only on the data."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import root_scalar

from dynascope.results.named_tuples import short_repr
from dynascope.theory.grokking.interpolation import constraint, solve, trace_path
from dynascope.theory.grokking.late_phase import DATA, check_tests, covers_diagonal, lag_per_decay, relative_error
from dynascope.validation import require_broadcast
from dynascope.validation.bounded import FiniteNumbers, PositiveFloat, PositiveNumbers

__all__ = ["CriticalPoint", "critical_point", "grokking_time"]

_WIDEST, _NARROWEST = 100.0, 1e-12  # range of products of the search, in units of the coefficients
_GRID = 0.1  # grid spacing in ln b


class CriticalPoint(NamedTuple):
    """The point at which the network begins to generalise; it depends only on the data.

    Attributes:
        product: b*, the product of the weights.
        lag: τ, the delay between the interpolant and the network in reaching the threshold; it is the same for all
            initial scales and all small weight decays.
    """

    product: float
    lag: float

    __repr__ = short_repr


@covers_diagonal(
    data=DATA, gives="the product of the weights at which the test error falls below a threshold", exact=False
)
def critical_point(
    inputs: FiniteNumbers,
    targets: FiniteNumbers,
    test_inputs: FiniteNumbers,
    test_targets: FiniteNumbers,
    *,
    threshold: PositiveFloat = 0.1,
) -> CriticalPoint | None:
    """Product b* of the weights at which the interpolant w(b) begins to generalise; it depends only on the data.

        b* = max {b: e(b) ≤ threshold},   e(b) = E(x·w(b) − y)²/E y² on the test samples

    The network reaches the threshold with a delay τ. This delay is the error due to the lag of `late_curve`, divided by
    the rate 2λ|de/d ln b| at which the error decreases. The lag is proportional to λ, so λ cancels.

    Args:
        inputs: X, training samples in rows, shape (n, d).
        targets: y, shape (n,), in the range of X.
        test_inputs: Test samples in rows; if these are the standard basis vectors, the error is the population error
            for inputs with identity covariance.
        test_targets: Targets of the test samples, not all zero.
        threshold: Relative test error, above 0.

    Returns:
        A `CriticalPoint`, or None in two cases. Either the minimum-ℓ2-norm interpolant already generalises, so there is
        no delay, or not even the minimum-ℓ1-norm interpolant does (down to b = 1e-12 times the largest coefficient).

    Raises:
        InputError: If the data are invalid for `interpolant_path`, or an argument is out of range.

    References:
        Lyu et al., arXiv:2311.18817, section 3; τ is derived here.

    Example:
        >>> point = critical_point([[1.0, 2.0]], [2.0], np.eye(2), [0.0, 1.0], threshold=0.05)
        >>> print(f"{point.product:.6f} {point.lag:.6f}")
        0.049614 0.220062
    """
    tests = check_tests(inputs, test_inputs, test_targets)
    system = constraint(inputs, targets)
    if system.size == 0:
        return None
    ends = np.log(system.size) + np.log([_NARROWEST, _WIDEST])
    logarithms = np.linspace(ends[0], ends[1], int(np.ceil((ends[1] - ends[0]) / _GRID)) + 1)
    before = None
    for point in trace_path(system, logarithms):
        if relative_error(point.coefficients, *tests) <= threshold:
            break
        before = point
    else:
        return None
    if before is None:
        return None

    def excess(log_product: float) -> float:
        guess = before.dual + (log_product - before.log_product) * before.tangent
        return float(relative_error(solve(system, log_product, guess).coefficients, *tests)) - threshold

    found = root_scalar(excess, bracket=(point.log_product, before.log_product), xtol=1e-13).root
    critical = solve(system, found, before.dual + (found - before.log_product) * before.tangent)
    _, lag = lag_per_decay(system, critical.spread)
    slope = critical.coefficients + critical.spread * (critical.tangent @ system.rows)
    x, y = tests
    residual = critical.coefficients @ x.T - y
    return CriticalPoint(math.exp(found), float(residual @ (x @ lag) / (2 * residual @ (x @ slope))))


@covers_diagonal(
    data=DATA, gives="the time at which the test error falls below a threshold, for small weight decay", exact=False
)
def grokking_time(
    product: PositiveNumbers, *, scale: PositiveNumbers, weight_decay: PositiveNumbers, lag: FiniteNumbers = 0.0
) -> Float[np.ndarray, ...]:
    """Time at which the network generalises, shortly after the product of its weights has decayed to b*.

        t = ln(α²/b*)/(2λ) + τ

    Multiplying the initial scale by c delays grokking by ln(c)/λ, for any data. If this time is earlier than
    `fitting_time`, there is no delay: the network generalises as it fits. The time is negative if α² is below b*.

    Args:
        product: b* > 0, from `critical_point`; any shape that broadcasts with the other arguments.
        scale: α > 0.
        weight_decay: λ > 0.
        lag: τ, from `critical_point`; zero for the leading order in λ.

    Returns:
        Gradient-flow time, in the broadcast shape of the arguments; with the lag included, the error of the time
        vanishes as λ → 0.

    Raises:
        InputError: If an argument is not positive, the lag is not finite, or the shapes do not broadcast.

    References:
        Lyu et al., arXiv:2311.18817, section 3, for the order of magnitude.

    Example:
        >>> grokking_time(0.05, scale=[1.0, 2.0], weight_decay=0.01).round(3)
        array([149.787, 219.101])
    """
    arrays = {"product": product, "scale": scale, "weight_decay": weight_decay, "lag": lag}
    require_broadcast(**{name: np.shape(each) for name, each in arrays.items()})
    return np.asarray((2 * np.log(scale) - np.log(product)) / (2 * np.asarray(weight_decay)) + lag)
