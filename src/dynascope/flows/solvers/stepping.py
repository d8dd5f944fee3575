"""Checks and interpolation for flows that are recorded at the solver's steps."""

from __future__ import annotations

import functools
from typing import Annotated, TypeAlias

import numpy as np
import scipy
from annotated_types import Ge
from jaxtyping import Float

from dynascope.tasks.task import Task
from dynascope.validation import require

__all__ = ["Tolerance", "loss_between", "require_correlation", "resolved_loss", "resolving"]

_UNEVEN = 6.0  # ratio of adjacent steps above which they do not determine the curvature between them

# Below this tolerance, rounding dominates the error, and steps would be halved forever.
Tolerance: TypeAlias = Annotated[float, Ge(1e-14)]


def require_correlation(task: Task) -> None:
    """Raise `InputError` if Σyx = 0: small weights then stay near zero, and no time scale is defined."""
    require(
        bool(np.any(task.cross_moment)),
        "the targets are uncorrelated with all inputs",
        argument="task",
        value=0.0,
        remedy="give targets that depend on the inputs",
    )


def resolving(record: dict[str, np.ndarray], points: int) -> dict[str, np.ndarray]:
    """Interpolate a recorded flow to at most `points` times, which are dense where the flow changes quickly.

    `loss_between` interpolates the loss, and monotone cubics interpolate all other quantities. The times divide the sum
    of the elapsed time, the decrease in the loss, and the change in the log descent rate (each normalised) into equal
    parts. A drop in the loss is therefore resolved equally well even if it is a thousand times smaller than the first
    drop.
    """
    times, loss = resolved_loss(record, points)
    result = {"time": times, "loss": loss}
    with np.errstate(over="ignore"):  # the harmonic mean of underflowing slopes is zero
        for name, values in record.items():
            if name not in ("time", "loss"):
                result[name] = scipy.interpolate.PchipInterpolator(record["time"], values, axis=0)(times)
    return result


def resolved_loss(record: dict[str, np.ndarray], points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the times that `resolving` keeps, and the losses at these times."""
    time, rate = record["time"], record["descent_rate"]
    # High-order solvers take few steps, between which linear interpolation is inaccurate.
    fractions = np.linspace(0, 1, max(8, -(-2 * points // len(time))), endpoint=False)
    fine = np.append((time[:-1, None] + np.diff(time)[:, None] * fractions).ravel(), time[-1])
    smooth = loss_between(record, fine)
    # Changes at rates eight decades below the steepest descent are invisible.
    activity = np.log(np.interp(fine, time, rate) + max(1e-8 * rate.max(), np.finfo(float).tiny))
    measure = np.zeros(len(fine))
    for series in (fine, smooth, activity):
        change = np.abs(np.diff(series))
        measure[1:] += np.cumsum(change) / max(change.sum(), np.finfo(float).tiny)
    measure /= measure[-1]
    kept = np.searchsorted(measure, np.linspace(0, 1, points), side="left").clip(0, len(fine) - 1)
    kept = kept[np.insert(np.diff(kept) > 0, 0, True)]
    return fine[kept], smooth[kept]


def loss_between(record: dict[str, np.ndarray], times: Float[np.ndarray, " point"]) -> Float[np.ndarray, " point"]:
    """Interpolate the loss between the steps of a recorded flow.

    Polynomials of degree five match the values, the slopes, and the curvatures estimated from adjacent steps.

    Args:
        record: `time`, `loss` and `descent_rate` (−dL/dt).
        times: Increasing times between the first and last time of the record.

    Returns:
        Non-negative losses that do not increase.

    Example:
        >>> steps = np.linspace(0.0, 3.0, 7)
        >>> fallen = {"time": steps, "loss": np.exp(-steps), "descent_rate": np.exp(-steps)}
        >>> bool(abs(loss_between(fallen, np.array([1.25]))[0] - np.exp(-1.25)) < 1e-6)
        True
    """
    time, loss, rate = record["time"], record["loss"], record["descent_rate"]
    steps, fallen = np.diff(time), np.diff(loss)
    # If a step excites a fast motion, the rate at its end is a transient and not the slope of the loss.
    mean = -fallen / steps
    instant = rate > 2 * np.maximum(np.append(mean, 0.0), np.insert(mean, 0, 0.0))
    slopes = -rate[:-1] * steps, -rate[1:] * steps
    # The curvatures of a cubic, or better estimates from adjacent steps.
    bends = [6 * fallen - 4 * slopes[0] - 2 * slopes[1], 4 * slopes[1] + 2 * slopes[0] - 6 * fallen]
    inner = ~(instant[:-2] | instant[1:-1] | instant[2:])
    inner &= np.maximum(steps[:-1], steps[1:]) < _UNEVEN * np.minimum(steps[:-1], steps[1:])
    bend = _curvature(steps[:-1], steps[1:], fallen[:-1], fallen[1:], -rate[:-2], -rate[1:-1], -rate[2:])
    bends[0][1:] = np.where(inner, bend * steps[1:] ** 2, bends[0][1:])
    bends[1][:-1] = np.where(inner, bend * steps[:-1] ** 2, bends[1][:-1])
    rest = fallen - slopes[0] - bends[0] / 2, slopes[1] - slopes[0] - bends[0], bends[1] - bends[0]
    powers = (
        loss[:-1],
        slopes[0],
        bends[0] / 2,
        10 * rest[0] - 4 * rest[1] + rest[2] / 2,
        -15 * rest[0] + 7 * rest[1] - rest[2],
        6 * rest[0] - 3 * rest[1] + rest[2] / 2,
    )
    piece = np.searchsorted(time, times, side="right").clip(1, len(steps)) - 1
    share = (times - time[piece]) / steps[piece]
    smooth = functools.reduce(lambda sum_, power: sum_ * share + power[piece], reversed(powers), np.zeros(len(times)))
    odd = (instant[:-1] | instant[1:])[piece]
    if odd.any():
        smooth[odd] = scipy.interpolate.PchipInterpolator(time, loss)(times[odd])
    # A polynomial can fall below the loss at the end of its step; clip it, so that later values are not affected.
    return np.minimum.accumulate(np.clip(smooth, loss[1:][piece].clip(0), None))


def _curvature(
    before: np.ndarray,
    after: np.ndarray,
    fallen: np.ndarray,
    falling: np.ndarray,
    slope: np.ndarray,
    middle: np.ndarray,
    last: np.ndarray,
) -> np.ndarray:
    """Second derivative, at the middle of three points, of the polynomial that matches their values and slopes."""
    both = before + after
    # Divided differences with each point counted twice.
    first, second = fallen / before, falling / after
    left = (first - slope) / before, (middle - first) / before
    right = (second - middle) / after, (last - second) / after
    thirds = (left[1] - left[0]) / before, (right[0] - left[1]) / both, (right[1] - right[0]) / after
    fourths = (thirds[1] - thirds[0]) / both, (thirds[2] - thirds[1]) / both
    fifth = (fourths[1] - fourths[0]) / both
    return 2 * (left[1] + thirds[0] * before + fourths[0] * before**2 - fifth * before**2 * after)
