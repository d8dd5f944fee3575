"""A ReLU network with four parameters that learns three-bit parity in three modes, one after another."""

from __future__ import annotations

import contextlib
import functools
from typing import Annotated, NamedTuple

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Real
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from dynascope.errors import InputError
from dynascope.theory.domain import covers
from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.kernels import broadcast
from dynascope.validation import require, require_increasing, require_known
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveFloat

__all__ = [
    "INPUTS",
    "TiedWeights",
    "fixed_point",
    "half_saturation_times",
    "integrated_path",
    "loss",
    "mode_strengths",
    "network_outputs",
    "velocity",
]

INPUTS = np.array(list(np.ndindex(2, 2, 2)), dtype=np.float64)
_PARITY = (-1.0) ** INPUTS.sum(axis=1)
_PRE_ACTIVATION = INPUTS @ [-1.0, 1.0, -1.0]
# (u)₊, (u + 1)₊ and (−u − 1)₊ on the eight inputs, times the signs and factors of the output weights.
_MODES = np.maximum([_PRE_ACTIVATION, _PRE_ACTIVATION + 1, -_PRE_ACTIVATION - 1], 0) * np.array([[-2.0], [1.0], [1.0]])
_LARGEST = 600.0  # largest logarithm of A, B or G that is passed to exp, to avoid overflow
_MOST_EVALUATIONS = 60_000  # largest number for the explicit method, a few seconds
_MOST_SPANS = 12  # largest number of doublings of the integration time
_covers = functools.partial(
    covers,
    network="ReLU, three tied neurons and a bias",
    data="parity of three bits, all inputs",
    reference="Nam, DPhil thesis (2024), C.4, corrected",
)


class TiedWeights(NamedTuple):
    """The four parameters A, B, G and c of the network, each a number or an array of shape (...).

    A, B and G are squares of weights, and u = x₂ − x₁ − x₃ is the common input of the three neurons.

    Attributes:
        first: A = α² ≥ 0, of the neuron −2 α (α u)₊.
        second: B = β² ≥ 0, of the neuron β (β u + β)₊.
        third: G = γ² ≥ 0, of the neuron γ (−γ u − γ)₊.
        bias: Output bias c.
    """

    first: NonNegativeNumbers
    second: NonNegativeNumbers
    third: NonNegativeNumbers
    bias: FiniteNumbers


@finite_answers()
def network_outputs(weights: TiedWeights) -> Float[np.ndarray, "*batch 8"]:
    """Outputs of the network for all `INPUTS`, shape (..., 8).

        f = −2 A (u)₊ + B (u + 1)₊ + G (−u − 1)₊ + c,  u = x₂ − x₁ − x₃

    Args:
        weights: A, B, G and c.

    Raises:
        InputError: If A, B or G is negative, or a number is not finite.

    References:
        Nam, DPhil thesis (2024), C.4, corrected.

    Example:
        >>> print(network_outputs(fixed_point(5.0)))
        [ 5. -5. -5.  5. -5.  5.  5. -5.]
    """
    state = _state(weights)
    return state[..., :3] @ _MODES + state[..., 3:]


@finite_answers()
def loss(weights: TiedWeights, target_scale: PositiveFloat) -> Float[np.ndarray, "*batch"]:
    """Loss over the eight inputs, shape (...).

        L = 1/16 Σ (f − Y)²,  Y = S (−1)^(x₁ + x₂ + x₃)

    Args:
        weights: A, B, G and c.
        target_scale: S > 0.

    Raises:
        InputError: If A, B or G is negative, S is not positive, or a number is not finite.

    References:
        Nam, DPhil thesis (2024), C.4, corrected.

    Example:
        >>> print(loss(TiedWeights(0.0, 0.0, 0.0, 0.0), 5.0), loss(fixed_point(5.0), 5.0))
        12.5 0.0
    """
    return np.asarray(np.sum((network_outputs(weights) - target_scale * _PARITY) ** 2, axis=-1) / 16)


@_covers(start="any with A, B, G ≥ 0", gives="velocity of the four parameters")
def velocity(
    weights: TiedWeights, *, target_scale: PositiveFloat, learning_rate: PositiveFloat = 1.0
) -> Float[np.ndarray, "*batch 4"]:
    """Gradient flow of the four parameters, in terms of A, B, G and c.

        Ȧ = η A (S − 2A + 2B + c),             Ḃ = η/2 B (S + 4A − 7B − 5c),
        Ġ = η/2 G (S − G − c),                 ċ = η/8 (2A − 5B − G − 8c).

    These equations are equivalent to α̇ = −η ∂L/∂α, and likewise for β, γ and c, with L = `loss` and α, β and γ shared
    between layers. Equations C.15–C.18 of Nam, DPhil thesis (2024), have the opposite sign, wrong coefficients in the
    second equation and inconsistent factors.

    Args:
        weights: A, B, G and c.
        target_scale: S > 0.
        learning_rate: η > 0.

    Returns:
        (Ȧ, Ḃ, Ġ, ċ), shape (..., 4).

    Raises:
        InputError: If A, B or G is negative, or a number is out of range.

    Example:
        >>> print(velocity(TiedWeights(0.09, 0.16, 0.25, -0.2), target_scale=5.0))
        [0.4446  0.4192  0.61875 0.09125]
    """
    state = _state(weights)
    rates = _rates(state, target_scale)
    # These are the rates of ln A, ln B, ln G and c.
    rates[..., :3] *= state[..., :3]
    return learning_rate * rates


@finite_answers()
def fixed_point(target_scale: PositiveFloat) -> TiedWeights:
    """Fixed point A = B = G = 2S, c = −S, where the network computes parity.

    Args:
        target_scale: S > 0.

    Raises:
        InputError: If S is not positive.

    References:
        Nam, DPhil thesis (2024), C.4, corrected.

    Example:
        >>> fixed_point(5.0)
        TiedWeights(first=10.0, second=10.0, third=10.0, bias=-5.0)
    """
    require_known(target_scale=target_scale)
    return TiedWeights(2 * target_scale, 2 * target_scale, 2 * target_scale, -target_scale)


@finite_answers()
def mode_strengths(weights: TiedWeights, target_scale: PositiveFloat) -> Float[np.ndarray, "*batch 3"]:
    """Strengths of the three neurons, shape (..., 3), which converge to ½, ¼ and ¼.

        E[Y f_q]/S² = A/4S, B/8S, G/8S

    The three strengths sum to the strength of the skill. The bias does not contribute, because the mean of Y is zero.

    Args:
        weights: A, B, G and c.
        target_scale: S > 0.

    Raises:
        InputError: If A, B or G is negative, S is not positive, or a number is not finite.

    Example:
        >>> print(mode_strengths(fixed_point(5.0), 5.0))
        [0.5  0.25 0.25]
    """
    return _state(weights)[..., :3] * (_MODES @ _PARITY / (8 * target_scale))


@_covers(start="any with A, B, G > 0", gives="the four parameters at any time")
def integrated_path(
    times: Annotated[Real[ArrayLike, " times"], Ge(0)],
    start: TiedWeights,
    *,
    target_scale: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
) -> TiedWeights:
    """Integrate `velocity` in ln A, ln B, ln G and c, and return the four parameters at given times.

    The logarithms prevent underflow for very small initial values. The bias converges to −S, not to S as the source
    states. For S ≪ 1, the bias is c ≈ (2A − 5B − G)/8; for large S, it lags behind the neurons and converges at the
    rate 3η/8.

    Args:
        times: Gradient-flow times t ≥ 0, increasing, shape (times,).
        start: Parameters at t = 0, with A, B and G positive.
        target_scale: S > 0.
        learning_rate: η > 0.

    Returns:
        The parameters as arrays of shape (times,), accurate to about 1e-8.

    Raises:
        InputError: If a number is out of range, or the integration fails.

    Example:
        >>> path = integrated_path([0.0, 100.0], TiedWeights(1e-4, 1e-4, 1e-4, 0.0), target_scale=5.0)
        >>> print(np.round(path.third, 6), np.round(path.bias, 6))
        [1.e-04 1.e+01] [ 0. -5.]
    """
    clock = learning_rate * np.asarray(times)
    require_increasing("times", clock)
    path, _ = _integrate(_logarithms(start), clock[-1], clock, target_scale, learning_rate)
    first, second, third = np.exp(path.y[:3])
    return TiedWeights(first, second, third, path.y[3])


@_covers(start="small", gives="times at which neurons reach half their strength")
def half_saturation_times(
    start: TiedWeights, *, target_scale: PositiveFloat, learning_rate: PositiveFloat = 1.0
) -> Float[np.ndarray, " neurons"]:
    """First times at which A, B and G reach S, half of their final values, on the `integrated_path`.

    Args:
        start: Parameters at t = 0, with A, B and G positive and below S.
        target_scale: S > 0.
        learning_rate: η > 0.

    Returns:
        Three gradient-flow times, shape (3,).

    Raises:
        InputError: If a number is out of range, or a neuron starts above half its final strength or never reaches it.

    Example:
        >>> print(half_saturation_times(TiedWeights(1e-4, 1e-4, 1e-4, 0.0), target_scale=5.0).round(3))
        [3.045 3.598 4.747]
    """
    logarithms, level = _logarithms(start), np.log(target_scale)
    highest = logarithms[:3].max()
    require(
        bool(highest < level),
        f"start has a neuron at {np.exp(highest):g}, which is not below half the final value, {target_scale:g}",
        argument="start",
        value=float(np.exp(highest)),
        remedy="give A, B and G below target_scale",
    )
    span = 4 * (1 + level - logarithms[:3].min()) / target_scale
    for _ in range(_MOST_SPANS):
        path, unit = _integrate(logarithms, span, None, target_scale, learning_rate)
        reached = path.y[:3] >= level
        if reached.any(axis=1).all():
            ends = reached.argmax(axis=1)
            found = [
                brentq(lambda t, q=q, path=path: path.sol(t)[q] - level, path.t[end - 1], path.t[end], xtol=1e-13)
                for q, end in enumerate(ends)
            ]
            return np.array(found) * (unit / learning_rate)
        span *= 2
    raise InputError(
        "a neuron does not reach half its strength",
        argument="start",
        value=np.array(start).tolist(),
        remedy="give a smaller initial bias",
    )


def _rates(state: np.ndarray, scale: float) -> np.ndarray:
    """Time derivatives of ln A, ln B, ln G and c, divided by η."""
    first, second, third, bias = np.moveaxis(state, -1, 0)
    return np.stack(
        [
            scale - 2 * first + 2 * second + bias,
            (scale + 4 * first - 7 * second - 5 * bias) / 2,
            (scale - third - bias) / 2,
            (2 * first - 5 * second - third - 8 * bias) / 8,
        ],
        axis=-1,
    )


def _integrate(
    logarithms: np.ndarray,
    span: float,
    times: np.ndarray | None,
    target_scale: PositiveFloat,
    learning_rate: PositiveFloat,
):
    """Integrate over η t; return the solution, at `times` or as dense output, and its unit of time."""

    def rates(_: float, state: np.ndarray, unit: float = 1.0) -> np.ndarray:
        # A trial step may overshoot so far that exp would overflow; the solver then rejects it.
        return unit * _rates(np.append(np.exp(np.minimum(state[:3], _LARGEST)), state[3]), target_scale)

    # The unit of time lets LSODA square times and rates; it is a power of two, so that scaling does not round.
    fastest = np.abs(rates(0.0, logarithms)).max(initial=np.finfo(float).tiny)
    unit = 2.0 ** np.floor(np.log2(min(span or 1.0, 1 / fastest)))

    # LSODA becomes implicit if the last mode grows slowly while the other modes are stiff. On some processors its
    # implicit steps fail after a long plateau, where an explicit method succeeds in more steps.
    scaled = None if times is None else times / unit
    options = {"rtol": 1e-10, "atol": 1e-10, "t_eval": scaled, "dense_output": scaled is None}
    path = solve_ivp(rates, (0.0, span / unit), logarithms, "LSODA", args=(unit,), **options)
    if not path.success:
        evaluations = iter(range(_MOST_EVALUATIONS))
        with contextlib.suppress(StopIteration):
            path = solve_ivp(
                lambda t, y: rates(next(evaluations), y, unit), (0.0, span / unit), logarithms, "DOP853", **options
            )
    require(
        path.success,
        f"the integration failed at time {path.t[-1] * unit if len(path.t) else 0:g}",
        argument="start",
        value=logarithms.tolist(),
        remedy="give initial parameters closer to zero",
    )
    return path, unit


def _logarithms(start: TiedWeights) -> Float[np.ndarray, " parameters"]:
    """Validate the initial parameters; return ln A, ln B, ln G and c."""
    require(
        not any(map(np.ndim, start)),
        "start contains arrays",
        argument="start",
        value=list(map(np.shape, start)),
        remedy="give four numbers",
    )
    state = np.array(start, float)
    require(
        bool(np.all(state[:3] > 0)),
        f"start has a neuron at {state[:3].min():g}",
        argument="start",
        value=float(state[:3].min()),
        remedy="give positive A, B and G, because a neuron at zero stays at zero",
    )
    return np.append(np.log(state[:3]), state[3])


def _state(weights: TiedWeights) -> Float[np.ndarray, "*batch 4"]:
    """Broadcast the four parameters and stack them along the last axis."""
    fields = broadcast(**{f"weights.{name}": value for name, value in weights._asdict().items()})
    return np.stack(fields, axis=-1)
