"""Diagonal linear networks: the exact path of successive saddles."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from scipy.optimize import nnls

from dynascope.errors import require, require_array, require_positive
from dynascope.theory.staircase.steps import Staircase

__all__ = ["diagonal_staircase"]

_THEORY = "successive saddles of diagonal linear networks"
_REFERENCE = (
    "S. Pesme, N. Flammarion, Saddle-to-saddle dynamics in diagonal linear networks (arXiv 2304.00488); "
    "Alternating Gradient Flows (arXiv 2506.06489)"
)
# A multiplier below this fraction of the largest initial one is round-off of the least-squares solution.
_ROUND_OFF = 1e-10
# Two hitting times this close (relative) are one event of a tie.
_TIE = 1e-9
# Calibrated on 1274 jumps of random problems at scale 1e-8: of 457 within these bounds, 3 had slopes off by more than
# one percent, and of the 817 others 239.
_RELAXATION_TIMES = 8.0
_VISIBLE = 0.01


def diagonal_staircase(
    inputs: Float[np.ndarray, "n d"],
    targets: Float[np.ndarray, " n"],
    *,
    scale: float,
    feature_names: Sequence[str] | None = None,
) -> Staircase:
    """Predict the staircase of f(x) = (u ⊙ v)ᵀ x trained by gradient flow from u = scale·1, v = 0.

    Let β = u ⊙ v and m = E[x (y − βᵀx)], and let S be the integral of m in units of log(1/scale). Along the flow
    β = (scale²/2) sinh(2 log(1/scale) S), so that in the limit of small scale a coordinate is zero while |Sᵢ| < 1 and
    free, with the sign of Sᵢ, once |Sᵢ| = 1. The limit path alternates two exact steps:

    1. S grows linearly at rate m until the next coordinate hits ±1;
    2. β jumps to argmin E(y − βᵀx)² with βᵢ ≥ 0 where Sᵢ = 1, βᵢ ≤ 0 where Sᵢ = −1, and βᵢ = 0 elsewhere.

    Coordinates may leave (their multiplier pushes Sᵢ inside again) and re-enter. The path ends where no multiplier is
    left: at the interpolator of smallest ℓ1 norm if there is one, else at least squares.

    Args:
        inputs: x, shape (n, d).
        targets: y, shape (n,).
        scale: Initial value of u, below one.
        feature_names: Names of the d inputs, for the phrases; "x1", "x2", … if absent.

    Returns:
        The staircase. Its feature `coefficient` is β after each jump. The times at this scale add to the limit what
        each coordinate needs to grow to its value: with log(1/scale) = λ it is half grown log(4|βᵢ|)/(2|mᵢ|) after
        |Gᵢ| = λ, and only then the multipliers of the others change. A jump is marked slow, with the reason, where at
        this scale a plateau beside it is too short to be reached, or an inactive coordinate is too close to its
        boundary to be negligible there, or on an earlier plateau the coordinate that is now learned was; its time may
        then be off by more.

    Raises:
        InputError: Values that are not finite, shapes or names that do not fit, targets that no input explains, a scale
            not below one.

    Assumptions: general position (the constrained least-squares problem has one solution).

    Source: arXiv 2304.00488, Algorithm 1; the same path as Alternating Gradient Flows in the limit, arXiv 2506.06489.

    Example:
        >>> steps = diagonal_staircase(np.eye(2), np.array([4.0, -1.0]), scale=1e-6)
        >>> steps.accelerated_times, steps.levels
        (array([0.5, 2. ]), array([4.25, 0.25, 0.  ]))
        >>> steps.features["coefficient"][1]
        array([[ 4.,  0.],
               [ 4., -1.]])
    """
    x = require_array("inputs", inputs, (None, None))
    y = require_array("targets", targets, (len(x),))
    require_positive(scale=scale)
    require(scale < 1, f"scale is {scale}", argument="scale", value=scale, remedy="choose a number below one")
    names = [f"x{i + 1}" for i in range(x.shape[1])] if feature_names is None else list(feature_names)
    require(
        len(names) == x.shape[1],
        f"feature_names has {len(names)} names for {x.shape[1]} inputs",
        argument="feature_names",
        value=len(names),
        remedy="give one name for each input",
    )
    path = _path(x, y)
    log_inverse_scale = -float(np.log(scale))
    return Staircase(
        accelerated_times=path.times,
        times=_times_at_scale(x, y, path, log_inverse_scale),
        levels=path.levels,
        learned=tuple(_phrase(before, after, names) for before, after in itertools.pairwise(path.maps)),
        slow=_slow(x, path, log_inverse_scale, names),
        features={"coefficient": (("jump", "feature"), path.maps[1:])},
        theory=_THEORY,
        reference=_REFERENCE,
        warnings=tuple(
            f"{', '.join(names[i] for i in tie)} are learned at the same time: the data are not generic."
            for tie in path.ties
        ),
    )


@dataclasses.dataclass(frozen=True)
class _Path:
    """Jump times (J,); losses (J + 1,), maps β (J + 1, d) and integrals S (J + 1, d), the first at time zero."""

    times: np.ndarray
    levels: np.ndarray
    maps: np.ndarray
    integrals: np.ndarray
    ties: tuple[np.ndarray, ...]


def _path(x: np.ndarray, y: np.ndarray) -> _Path:
    samples, dimension = x.shape
    if samples > dimension:
        # The path depends on the data only through xᵀx and xᵀy, which a triangular factor carries without squaring.
        triangular = np.asarray(np.linalg.qr(np.column_stack([x, y]), mode="r"))
        x, y = triangular[:, :-1], triangular[:, -1]
    largest = np.abs(x.T @ y).max() / samples
    possible = np.linalg.norm(x, axis=0).max() * np.linalg.norm(y) / samples
    require(
        largest > _ROUND_OFF * possible,
        "the targets have no correlation with any input",
        argument="targets",
        value=0.0,
        remedy="pass targets that vary with the inputs",
    )
    clock, integral, beta = 0.0, np.zeros(dimension), np.zeros(dimension)
    times, maps, integrals, ties = [], [beta], [integral], []
    while True:
        multiplier = x.T @ (y - x @ beta) / samples
        multiplier[(beta != 0) | (np.abs(multiplier) <= _ROUND_OFF * largest)] = 0.0
        moving = multiplier != 0
        if not moving.any():
            break
        waits = np.full(dimension, np.inf)
        waits[moving] = (np.sign(multiplier[moving]) - integral[moving]) / multiplier[moving]
        hit = waits <= waits.min() * (1 + _TIE)
        if hit.sum() > 1:
            ties.append(np.flatnonzero(hit))
        clock += waits.min()
        integral = np.clip(integral + waits.min() * multiplier, -1.0, 1.0)
        integral[hit] = np.sign(multiplier[hit])
        beta = _constrained_least_squares(x, y, integral, guess=(beta != 0) | hit)
        times.append(clock)
        maps.append(beta)
        integrals.append(integral)
        require(
            len(times) <= 100 * dimension,
            f"the path did not end after {len(times)} jumps",
            argument="inputs",
            value=x.shape,
            remedy="remove inputs that are combinations of others",
        )
    residuals = y - np.array(maps) @ x.T
    levels = np.sum(residuals**2, axis=1) / (2 * samples)
    return _Path(np.array(times), levels, np.array(maps), np.array(integrals), tuple(ties))


def _constrained_least_squares(x: np.ndarray, y: np.ndarray, integral: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """The β of smallest squared error with the signs of S where |S| = 1, and zero elsewhere.

    Nearly always the support is the guess, which the optimality conditions certify; only else it is searched for.
    """
    free = np.flatnonzero(np.abs(integral) == 1.0)
    signed = x[:, free] * integral[free]
    support = guess[free]
    size = _least_squares(signed, y, support)
    push = signed.T @ (y - signed @ size)
    if size.min() < 0 or push[~support].max(initial=0.0) > _ROUND_OFF * np.abs(x.T @ y).max():
        searched, _ = nnls(signed, y)
        size = _least_squares(signed, y, searched > 1e-12 * searched.max())
        size = searched if size.min() < 0 else size
    beta = np.zeros(len(integral))
    beta[free] = size * integral[free]
    return beta


def _least_squares(x: np.ndarray, y: np.ndarray, support: np.ndarray) -> np.ndarray:
    solution = np.zeros(x.shape[1])
    solution[support] = np.linalg.lstsq(x[:, support], y, rcond=None)[0]
    return solution


def _times_at_scale(x: np.ndarray, y: np.ndarray, path: _Path, log_inverse_scale: float) -> np.ndarray:
    """Times at which the loss passes the middle of each drop, to first order beyond the limit.

    A coordinate grows as a logistic at rate 2|m|. That shifts the integrals of the others exactly as a step at its half
    would, as long as the active coordinates follow without delay.
    """
    integral, clock, times = np.zeros(x.shape[1]), 0.0, []
    for k in range(len(path.times)):
        before, after = path.maps[k], path.maps[k + 1]
        multiplier = np.where(before == 0, x.T @ (y - x @ before) / len(x), 0.0)
        newly_free = (np.abs(path.integrals[k + 1]) == 1) & (path.integrals[k + 1] != path.integrals[k])
        hit = int(np.argmax(np.where(newly_free, np.abs(after), -1.0)))
        rate, sign = abs(multiplier[hit]), path.integrals[k + 1][hit]
        boundary = clock + max((log_inverse_scale - sign * integral[hit]) / rate, 0.0)
        growth = _log_four(after[hit]) / (2 * rate)
        # Half of the drop remains when a share 1 − 1/√2 has grown.
        times.append(boundary + growth + np.log(np.sqrt(2) - 1) / (2 * rate))
        switch = max(boundary + growth, clock)
        integral = integral + multiplier * (switch - clock)
        integral = np.where(after != 0, np.sign(after) * (log_inverse_scale + _log_four(after) / 2), integral)
        clock = switch
    return np.maximum.accumulate(np.maximum(times, 0.0))


def _log_four(beta: np.ndarray | float) -> np.ndarray | float:
    """Log of 4|β|: how much further than its boundary the integral of a coordinate of size β is; 0 for β = 0."""
    return np.log(4 * np.abs(np.where(beta == 0, 0.25, beta)))


def _phrase(before: np.ndarray, after: np.ndarray, names: list[str]) -> str:
    gained = [names[i] for i in np.flatnonzero((before == 0) & (after != 0))]
    lost = [names[i] for i in np.flatnonzero((before != 0) & (after == 0))]
    parts = [f"learns {', '.join(gained)}"] if gained else []
    return "; ".join([*parts, *([f"drops {', '.join(lost)}"] if lost else [])]) or "adjusts"


def _slow(x: np.ndarray, path: _Path, log_inverse_scale: float, names: list[str]) -> tuple[str, ...]:
    """For each jump, what keeps its time from having reached the limit at this scale."""
    near = [np.array([], dtype=int)] + [
        _near_boundary(*each, log_inverse_scale) for each in zip(path.maps[1:], path.integrals[1:], strict=True)
    ]
    durations = np.append(np.diff(path.times), np.inf)
    ends = np.append(path.integrals[2:], path.integrals[-1:], axis=0)
    lasting = [np.inf] + [
        _relaxation_times(x, *each) * log_inverse_scale
        for each in zip(path.maps[1:], path.integrals[1:], ends, durations, strict=True)
    ]

    def unsettled(plateau: int) -> str:
        if lasting[plateau] < _RELAXATION_TIMES:
            return f"the plateau lasts only {max(lasting[plateau], 0.0):.1f} relaxation times"
        margins = 1 - np.abs(path.integrals[plateau][near[plateau]])
        if not len(margins):
            return ""
        return f"{names[near[plateau][np.argmin(margins)]]} is only {100 * margins.min():.1f} % inside its boundary"

    reasons = []
    for k in range(len(path.times)):
        parts = [f"{side} it, {why}" for side, why in (("before", unsettled(k)), ("after", unsettled(k + 1))) if why]
        earlier = {i for each in near[:k] for i in each}
        learned = np.flatnonzero((path.maps[k] == 0) & (path.maps[k + 1] != 0))
        parts += [f"{names[i]} was near its boundary on an earlier plateau" for i in learned if i in earlier]
        reasons.append("; ".join(parts))
    return tuple(reasons)


def _relaxation_times(
    x: np.ndarray, beta: np.ndarray, start: np.ndarray, end: np.ndarray, duration: float
) -> np.floating | float:
    """How often the slowest coordinate relaxes on a plateau where S goes from start to end, over log(1/scale)."""
    if np.isinf(duration):
        return np.inf
    active = np.flatnonzero(beta)
    # Near the plateau an active coordinate relaxes by β' = 2|β|·m, with m linear in β. These are the rates in
    # coordinates where the relaxation is symmetric.
    weighted = x[:, active] * np.sqrt(2 * np.abs(beta[active]) / len(x))
    relaxed = np.linalg.eigvalsh(weighted.T @ weighted) * duration
    # One that has left decays as exp(−2 log(1/scale) |ΔS|).
    decayed = 2 * np.abs(end - start)[(np.abs(start) == 1.0) & (beta == 0)]
    return min(*relaxed, *decayed, np.inf)


def _near_boundary(beta: np.ndarray, integral: np.ndarray, log_inverse_scale: float) -> np.ndarray:
    """Inactive coordinates that are too close to their boundary to be negligible; not those that just left it."""
    inside = (beta == 0) & (np.abs(integral) < 1)
    return np.flatnonzero(inside & (np.exp(-2 * log_inverse_scale * (1 - np.abs(integral))) > _VISIBLE))
