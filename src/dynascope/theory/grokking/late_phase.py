"""Late training of a diagonal network with weight decay: weights and test curve after fitting, in closed form."""

from __future__ import annotations

import functools
from typing import Annotated, Any, NamedTuple

import numpy as np
from annotated_types import Gt, Lt
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.grokking.interpolation import Constraint, constraint, interpolant_path
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteFloat, FiniteNumbers, NonNegativeNumbers, PositiveFloat

__all__ = [
    "DATA",
    "LateCurve",
    "check_tests",
    "covers_diagonal",
    "fitting_time",
    "lag_per_decay",
    "late_curve",
    "relative_error",
    "weight_product",
]

DATA = "any inputs, targets that a linear function fits exactly"
covers_diagonal = functools.partial(
    covers,
    network="diagonal linear, x·(u² − v²), with weight decay",
    start="equal for all weights",
    reference="arXiv:2311.18817",
)


class LateCurve(NamedTuple):
    """The network after it has fitted the training samples.

    Attributes:
        products: b(t) = u_i v_i, shape (times,).
        coefficients: w(t) = u² − v², the sum of the interpolant w(b) and the lag behind it, shape (times, d).
        test_error: E(x·w − y)²/E y² on the test samples, shape (times,).
        interpolant_error: Test error of the interpolant w(b), without the lag (the limit λ → 0 at fixed b), shape
            (times,).
        loss: 1/(2n) ‖X w − y‖² to leading order in λ, which is λ², shape (times,).
        lag: ‖w − w(b)‖/‖w(b)‖, shape (times,); the curve is accurate while the lag is small.
    """

    products: Float[np.ndarray, " times"]
    coefficients: Float[np.ndarray, "times d"]
    test_error: Float[np.ndarray, " times"]
    interpolant_error: Float[np.ndarray, " times"]
    loss: Float[np.ndarray, " times"]
    lag: Float[np.ndarray, " times"]

    __repr__ = short_repr


@covers_diagonal(data="any", gives="the product of the weights of every input at any time")
def weight_product(
    times: NonNegativeNumbers, *, scale: PositiveFloat, weight_decay: PositiveFloat
) -> Float[np.ndarray, "*times"]:
    """Product of the two weights of each input over time under weight decay; it does not depend on the data.

        u_i v_i = α² exp(−2λt)

    The network f = x·(u ⊙ u − v ⊙ v) with u = v = α at t = 0 follows gradient flow on any loss of its outputs plus
    ½λ(‖u‖² + ‖v‖²). The contributions of the loss to the derivatives of ln u and ln v cancel.

    Args:
        times: Gradient-flow times t ≥ 0, any shape.
        scale: α > 0.
        weight_decay: λ > 0.

    Returns:
        b(t), with the shape of the times.

    Raises:
        InputError: If an argument is out of range.

    References:
        Lyu et al., arXiv:2311.18817, section 3.

    Example:
        >>> weight_product([0.0, 10.0], scale=2.0, weight_decay=0.05).round(6)
        array([4.      , 1.471518])
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.square(scale * np.exp(-weight_decay * np.asarray(times))))


@covers_diagonal(
    data=DATA, gives="the weights, the test error and the loss after fitting, for small weight decay", exact=False
)
def late_curve(
    inputs: FiniteNumbers,
    targets: FiniteNumbers,
    test_inputs: FiniteNumbers,
    test_targets: FiniteNumbers,
    times: NonNegativeNumbers,
    *,
    scale: PositiveFloat,
    weight_decay: PositiveFloat,
) -> LateCurve:
    """Predict the late weights and test error of the diagonal network f = x·(u ⊙ u − v ⊙ v) with weight decay.

        w = w(b(t)) + lag,   X w − y = −(n/4) dμ/dt = −(nλ/2)(X D Xᵀ)⁻¹ y,   D = √(w² + 4b²)

    Gradient flow on L = 1/(2n) ‖X w − y‖² + ½λ(‖u‖² + ‖v‖²) from u = v = α satisfies w = 2b(t) sinh(Xᵀμ) at all times,
    with μ' = −4(X w − y)/n. After fitting, w is close to the interpolant w(b(t)) of `interpolant_path`, and b decreases
    slowly. As b decreases, a training error of order λ drives w, so w lags behind w(b). With the lag included, the
    error of the curve is of order λ².

    The curve is valid after `fitting_time`, as long as the lag is small. If the test inputs are the unit vectors and
    the test targets are the true coefficients, the test error equals the population error for inputs with unit
    covariance.

    Args:
        inputs: X, training samples in rows, shape (n, d).
        targets: y, shape (n,), in the range of X.
        test_inputs: Test samples in rows, shape (m, d).
        test_targets: Targets of the test samples, shape (m,), not all zero.
        times: Gradient-flow times t ≥ 0, shape (times,).
        scale: α > 0.
        weight_decay: λ > 0.

    Returns:
        `LateCurve`.

    Raises:
        InputError: If the data are invalid for `interpolant_path`, or an argument is out of range.

    References:
        Lyu et al., arXiv:2311.18817, section 3; the lag is derived here.

    Example:
        >>> curve = late_curve([[1.0, 2.0]], [2.0], np.eye(2), [0.0, 1.0], [10.0, 100.0], scale=1.0, weight_decay=0.02)
        >>> curve.test_error.round(4), curve.interpolant_error.round(4)
        (array([0.1876, 0.0209]), array([0.1875, 0.0206]))
    """
    products = weight_product(require_array("times", times, (None,)), scale=scale, weight_decay=weight_decay)
    tests = check_tests(inputs, test_inputs, test_targets)
    system, samples = constraint(inputs, targets), len(np.asarray(targets))
    path = interpolant_path(inputs, targets, products)
    spread = np.hypot(path.coefficients, 2 * products[:, None])
    # One time after another, to limit the memory for the Hessians.
    lags = [lag_per_decay(system, each) for each in spread]
    residual, lag = (weight_decay * np.array(each) for each in zip(*lags, strict=True))
    coefficients = path.coefficients + lag
    return LateCurve(
        products,
        coefficients,
        relative_error(coefficients, *tests),
        relative_error(path.coefficients, *tests),
        np.sum((residual * system.strengths) ** 2, axis=1) / (2 * samples),
        np.linalg.norm(lag, axis=1) / (np.linalg.norm(path.coefficients, axis=1) if system.size > 0 else 1.0),
    )


@covers_diagonal(data=DATA, gives="an upper bound for the time of fitting the training samples", exact=False)
def fitting_time(
    inputs: FiniteNumbers,
    *,
    scale: PositiveFloat,
    weight_decay: PositiveFloat,
    remaining: Annotated[FiniteFloat, Gt(0), Lt(1)] = 0.01,
) -> float | None:
    """Upper bound for the time at which the network has fitted the training samples, up to a lag of order λ.

        8 α² s² (1 − exp(−2λt))/(2λn) = ln(1/ε)

    Here s is the smallest non-zero singular value of X. The training errors decay at rates given by the eigenvalues of
    (4/n) X D Xᵀ, where D ≥ 2b(t). At time t, they are therefore below a fraction ε of the initial errors. After this
    time, the network follows `late_curve`.

    Args:
        inputs: X, training samples in rows.
        scale: α > 0.
        weight_decay: λ > 0.
        remaining: ε, above 0 and below 1; the remaining loss is below ε² times the initial loss.

    Returns:
        Gradient-flow time, or None if weight decay may prevent the fit.

    Raises:
        InputError: If an argument is out of range.

    Example:
        >>> print(f"{fitting_time([[1.0, 2.0]], scale=1.0, weight_decay=0.01):.4f}")
        0.1153
    """
    x = require_array("inputs", inputs, (None, None))
    smallest = constraint(x, np.zeros(len(x))).strengths[-1]
    with np.errstate(all="ignore"):
        speed = scale * smallest
        undecayed = np.log(1 / remaining) * len(x) / 8
        decayed = 2 * undecayed * (weight_decay / speed / speed)
        delayed = -np.log1p(-decayed) / decayed if decayed > 0 else 1.0
        return float(undecayed / speed / speed * delayed) if decayed < 1 else None


def lag_per_decay(
    system: Constraint, spread: Float[np.ndarray, " d"]
) -> tuple[Float[np.ndarray, " r"], Float[np.ndarray, " d"]]:
    """Return the residual of A w = c and the lag of w behind the interpolant with derivative D, both divided by λ."""
    hessian = (system.rows * spread) @ system.rows.T
    # With μ = U ν/S and d ln b/dt = −2λ, dν/dt is −2λ times the tangent −(A D Aᵀ)⁻¹ c.
    residual = -len(system.samples) / 2 * np.linalg.solve(hessian, system.values) / system.strengths**2
    return residual, spread * (np.linalg.solve(hessian, residual) @ system.rows)


def relative_error(
    coefficients: Float[np.ndarray, "*batch d"], inputs: Float[np.ndarray, "m d"], targets: Float[np.ndarray, " m"]
) -> Any:
    """Return the relative error E(x·w − y)²/E y² on the samples, shape (batch,)."""
    return np.sum((coefficients @ inputs.T - targets) ** 2, axis=-1) / np.sum(targets**2)


def check_tests(inputs: Any, test_inputs: Any, test_targets: Any) -> tuple[np.ndarray, np.ndarray]:
    """Check the test samples, and return them as arrays."""
    x = require_array("inputs", inputs, (None, None))
    tests = require_array("test_inputs", test_inputs, (None, x.shape[1]))
    targets = require_array("test_targets", test_targets, (len(tests),))
    require(
        bool(np.any(targets)),
        "test_targets is all zero",
        argument="test_targets",
        value=0.0,
        remedy="give at least one non-zero target, so that the relative error is defined",
    )
    return tests, targets
