"""Silent alignment: the tangent kernel of a small two-layer linear network aligns before the loss falls."""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Interval, IsFinite
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ENOUGH_SAMPLES, ONE_OUTPUT, SMALL_START, WHITE_INPUTS
from dynascope.theory.domain import covers
from dynascope.theory.units import in_units
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import NonNegativeNumbers, PositiveFloat

__all__ = ["AlignmentPlateau", "SilentAlignment", "alignment_plateau", "silent_alignment"]

_FirstLayer = IsFinite[Float[np.ndarray, "h d"]]
_SecondLayer = IsFinite[Float[np.ndarray, " h"]]
_Correlation = IsFinite[Float[np.ndarray, " d"]]
_NETWORK = "two-layer linear, one output, unit rates"


class AlignmentPlateau(NamedTuple):
    """The tangent kernel X M Xᵀ during the first plateau of the loss, in units of the square of the scale.

    Attributes:
        misalignment: 1 − A, with the cosine A between M and I + b̂ b̂ᵀ, computed without cancellation, shape (times,).
        kernel_trace: tr M/α² = (d ‖a‖² + ‖W‖²)/α², shape (times,).
        second: a/α, shape (times, h).
        first: W/α, shape (times, h, d).
    """

    misalignment: Float[np.ndarray, " times"]
    kernel_trace: Float[np.ndarray, " times"]
    second: Float[np.ndarray, "times h"]
    first: Float[np.ndarray, "times h d"]

    __repr__ = short_repr


class SilentAlignment(NamedTuple):
    """When the kernel aligns, and when the loss falls.

    Attributes:
        rate: s = ‖E[x y]‖; the weights grow as exp(s t).
        growing: ‖z₊‖², the squared norm of the growing combination of the layers at scale one.
        prefactor: C in 1 − A ≈ C exp(−2 s t).
        alignment_time: ln(C/ε)/(2 s), at which 1 − A is the tolerance ε; it does not depend on the scale.
        half_time: Time at which half of the target is learned on whitened inputs.
    """

    rate: float
    growing: float
    prefactor: float
    alignment_time: float
    half_time: float

    __repr__ = short_repr


@covers(
    network=_NETWORK,
    data="any inputs, any targets",
    start="small, before the loss falls",
    gives="the alignment and the trace of the tangent kernel during the plateau",
    reference="arXiv:2111.00034",
    exact=False,
    assumes=(ONE_OUTPUT, SMALL_START),
)
@in_units(
    "correlation",
    "first|second",
    times="t",
    first="w",
    second="w",
    correlation="t^-1",
    gives={"kernel_trace": "w^2", "second": "w", "first": "w"},
)
def alignment_plateau(
    times: NonNegativeNumbers, first: _FirstLayer, second: _SecondLayer, correlation: _Correlation
) -> AlignmentPlateau:
    """Compute the tangent kernel of f(x) = aᵀW x, started at α W̃ and α ã with α → 0, before the loss falls.

    a = α (z₊ exp(st) + z₋ exp(−st))/√2, W = α W⊥ + α (z₊ exp(st) − z₋ exp(−st)) b̂ᵀ/√2

    Here b = E[x y], s = ‖b‖, z± = (ã ± W̃ b̂)/√2 and W⊥ = W̃ (I − b̂ b̂ᵀ). The kernel of inputs X is X M Xᵀ with
    M = ‖a‖² I + Wᵀ W, and its alignment is A = cos(M, I + b̂ b̂ᵀ). The relative error of the formulas is of the order
    of α² exp(2st), because the residual is frozen. They hold for any covariance of the inputs.

    Args:
        times: Gradient-flow times t ≥ 0, a number or shape (times,).
        first: W̃, the first layer at scale one, shape (h, d).
        second: ã, the second layer at scale one, shape (h,).
        correlation: b, not zero, shape (d,).

    Returns:
        The misalignment 1 − A, and the trace and the weights in units of the scale.

    Raises:
        InputError: If a value is not finite, a time is negative, shapes do not match, or b or the kernel is zero.

    References:
        Atanasov, Bordelon, Pehlevan, Neural networks as kernel learners: the silent alignment effect,
        arXiv:2111.00034; the solution of the plateau is derived here.

    Example:
        >>> path = alignment_plateau([0.0, 2.0], [[1.0, 0.5]], [0.5], [1.0, 0.0])
        >>> path.misalignment.round(5).tolist()
        [0.11774, 0.00165]
    """
    require_shape("times", times, (), (None,))
    times, s, unit, plus, minus, across = (np.atleast_1d(times), *_split(first, second, correlation))
    grown, shrunk = (np.exp(sign * s * times)[:, None] / np.sqrt(2) for sign in (1, -1))
    # The matrix is divided by exp(2st), so that only the trace may overflow.
    relative = np.exp(-s * times)[:, None]
    a = (plus + minus * relative**2) / np.sqrt(2)
    along = (plus - minus * relative**2) / np.sqrt(2)
    w = across * relative[..., None] + along[..., None] * unit
    square = np.sum(a**2, axis=1)
    matrix = square[:, None, None] * np.eye(len(unit)) + np.swapaxes(w, 1, 2) @ w
    size = np.linalg.norm(matrix, axis=(1, 2), keepdims=True)
    require((size > 0).all(), "first and second are zero", argument="first", value=0.0, remedy="choose nonzero weights")
    aligned = np.eye(len(unit)) + np.outer(unit, unit)
    distance = matrix / size - aligned / np.linalg.norm(aligned)
    second_at = plus * grown + minus * shrunk
    first_at = across + (plus * grown - minus * shrunk)[..., None] * unit
    trace = len(unit) * np.sum(second_at**2, axis=1) + np.sum(first_at**2, axis=(1, 2))
    return AlignmentPlateau(np.sum(distance**2, axis=(1, 2)) / 2, trace, second_at, first_at)


@covers(
    network=_NETWORK,
    data="whitened inputs for the time of the loss; any inputs for the alignment",
    start="small",
    gives="the time at which the kernel aligns and the time at which the loss falls",
    reference="arXiv:2111.00034",
    exact=False,
    assumes=(ONE_OUTPUT, SMALL_START, ENOUGH_SAMPLES, WHITE_INPUTS),
)
@in_units(
    "correlation",
    "first|second",
    first="w",
    second="w",
    correlation="t^-1",
    gives={"rate": "t^-1", "growing": "w^2", "alignment_time": "t", "half_time": "t"},
)
def silent_alignment(
    first: _FirstLayer,
    second: _SecondLayer,
    correlation: _Correlation,
    *,
    scale: PositiveFloat,
    tolerance: Annotated[float, Interval(gt=0, lt=1)] = 0.01,
) -> SilentAlignment:
    """Compute when the tangent kernel of f(x) = aᵀW x aligns, and when the loss falls, for small initial weights.

    t_align = ln(C/ε)/(2s), C = 2 ‖W⊥ᵀ z₊‖²/((d + 3) ‖z₊‖⁴), t_half = ln(2s/(α² ‖z₊‖²) − 1)/(2s)

    The notation is that of `alignment_plateau`. The alignment time is of leading order in the tolerance ε and does not
    depend on the scale α, but t_half grows as ln(1/α)/s: for small α, the kernel aligns while the loss is constant. On
    whitened inputs, the kernel then only grows, M ∝ I + b̂ b̂ᵀ. On other inputs it turns again (`kernel_turn`).

    Args:
        first: W̃, the first layer at scale one, shape (h, d).
        second: ã, the second layer at scale one, shape (h,).
        correlation: b = E[x y], not zero, shape (d,).
        scale: α > 0, which multiplies both layers.
        tolerance: ε, the misalignment 1 − A at which the kernel counts as aligned, between 0 and 1.

    Returns:
        The two times, 0 if reached at once, and the numbers that determine them.

    Raises:
        InputError: If a value is not finite, shapes do not match, α or ε is out of range, b is zero, or no combination
            of the layers grows, z₊ = 0.

    References:
        Atanasov, Bordelon, Pehlevan, arXiv:2111.00034; the prefactor is derived here.

    Example:
        >>> times = silent_alignment([[1.0, 0.5]], [0.5], [1.0, 0.0], scale=1e-4)
        >>> round(times.alignment_time, 3), round(times.half_time, 3)
        (1.092, 9.498)
    """
    s, _, plus, _, across = _split(first, second, correlation)
    growing = float(plus @ plus)
    require(
        growing > 0,
        "no combination of first and second grows, because ã = −W̃ b̂",
        argument="second",
        value=0.0,
        remedy="choose other initial weights",
    )
    prefactor = float(2 * np.sum((plus @ across) ** 2) / ((len(across.T) + 3) * growing**2))
    aligned = max(np.log(prefactor) - np.log(tolerance), 0.0) / (2 * s) if prefactor > 0 else 0.0
    # ln(2s/(α² ‖z₊‖²) − 1), without overflow for tiny α.
    amount = np.log(2 * s / growing) - 2 * np.log(scale)
    half = (amount + np.log1p(-np.exp(-amount))) / (2 * s) if amount > np.log(2) else 0.0
    return SilentAlignment(float(s), growing, prefactor, float(aligned), float(half))


def _split(first: np.ndarray, second: np.ndarray, correlation: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return s, b̂, z₊, z₋ and W⊥ after checking shapes."""
    require_shape("first", first, (..., None, None))
    require_shape("first", first, (None, None))
    require_shape("second", second, (len(first),))
    require_shape("correlation", correlation, (first.shape[1],))
    s = np.asarray(np.linalg.norm(correlation))
    require(
        s > 0,
        "correlation is zero",
        argument="correlation",
        value=0.0,
        remedy="give inputs and targets that are correlated, because otherwise the weights do not grow",
    )
    unit = correlation / s
    along = first @ unit
    plus, minus = (second + along) / np.sqrt(2), (second - along) / np.sqrt(2)
    return s, unit, plus, minus, first - np.outer(along, unit)
