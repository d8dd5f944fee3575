"""Follow a flow at the solver's own steps and keep what resolves every rise and fall of the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffrax
import jax
import numpy as np
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator

from dynascope.arguments import require, require_positive, shown
from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError
from dynascope.flows.deadline import overdue
from dynascope.flows.progress import tell_along
from dynascope.tasks.task import Task

__all__ = ["follow", "require_correlation", "require_tolerance", "resolving"]

_ROUNDING = 1e-14  # of a sum of some numbers in float64


def follow(
    vector_field: Callable,
    statistics: Callable,
    renewed: Callable,
    state: Any,
    arguments: Any,
    *,
    duration: float,
    longest_step: float,
    restart_every: int,
    tolerance: float,
    max_steps: int = 10_000_000,
    beyond: Callable[[Any, float], dict[str, np.ndarray]] | None = None,
    partial: bool = False,
) -> dict[str, np.ndarray]:
    """Integrate state' = vector_field(t, state, arguments) by Tsit5 and record statistics at every accepted step.

    Args:
        vector_field: As diffrax takes it.
        statistics: Function of (t, state, arguments), a dictionary of arrays; must hold `loss` and `descent_rate`.
        renewed: Function of the state, an equivalent state from which to go on after each restart.
        state: Initial state.
        arguments: Parameters of the flow.
        duration: Final time.
        longest_step: Upper bound on a step.
        restart_every: Steps between two restarts.
        tolerance: Relative and absolute tolerance of a step.
        max_steps: Number of steps after which the flow is given up.
        beyond: What follows it from there on instead, a function of state and time that returns the like of this one.
        partial: Whether to return what was followed until then rather than raise.

    Returns:
        `time` and each statistic, with the steps along the first axis.

    Raises:
        DivergenceError: The solver could not take a step, or `max_steps` was reached.
    """
    pieces: list[dict[str, np.ndarray]] = []
    now, steps = 0.0, 0
    # As arrays: a Python number would be part of the compiled program.
    end, longest, allowed = (np.asarray(number, float) for number in (duration, longest_step, tolerance))
    while now < duration:
        state, record = _advance(
            vector_field,
            statistics,
            renewed,
            state,
            arguments,
            np.asarray(now),
            end,
            longest,
            allowed,
            restart_every,
        )
        record = jax.device_get(record)
        taken = np.isfinite(record["time"])
        piece = {name: values[taken] for name, values in record.items()}
        last = float(piece["time"][-1]) if taken.any() else now
        if last <= now or not np.isfinite(piece["loss"]).all():
            raise DivergenceError(
                f"the flow could not be continued at time {now:.6g}",
                time=now,
                remedy="check the data for extreme values, or shorten the duration",
            )
        # Each piece begins with the state at which the one before it ended.
        pieces.append({name: values[1 if pieces else 0 :] for name, values in piece.items()})
        steps += len(piece["time"]) - 1
        if last >= duration * (1 - 1e-12):
            break
        if steps > max_steps and beyond is not None:
            pieces.append({name: values[1:] for name, values in beyond(state, last).items()})
            break
        if steps > max_steps and partial:
            break
        if steps > max_steps:
            raise DivergenceError(
                f"max_steps ({max_steps}) was reached at time {last:.6g}",
                time=last,
                remedy="standardise the inputs, shorten the duration, or raise max_steps (and operations)",
            )
        now = last
        tell_along(now, duration, steps, max_steps if partial else None)
        if overdue():
            break
    return {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}


@filter_jit
def _advance(
    vector_field, statistics, renewed, state, arguments, start, duration, longest_step, tolerance, restart_every
):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(vector_field),
        diffrax.Tsit5(),
        start,
        duration,
        None,
        state,
        arguments,
        saveat=diffrax.SaveAt(
            subs=[
                diffrax.SubSaveAt(t0=True, steps=True, fn=statistics),
                diffrax.SubSaveAt(t1=True),
            ]
        ),
        stepsize_controller=diffrax.PIDController(rtol=tolerance, atol=tolerance, dtmax=longest_step),
        max_steps=int(restart_every),
        throw=False,
    )
    assert solution.ts is not None
    assert solution.ys is not None
    final = jax.tree.map(lambda leaf: leaf[0], solution.ys[1])
    return renewed(final), {"time": solution.ts[0], **solution.ys[0]}


def require_correlation(task: Task) -> None:
    """Raise `InputError` if Σyx = 0, where a small network never leaves zero and no time scale is set."""
    require(
        bool(np.any(task.cross_moment)),
        "the targets have no correlation with any input",
        argument="task",
        value=0.0,
        remedy="pass targets that vary with the inputs",
    )


def require_tolerance(tolerance: float) -> None:
    """Raise `InputError` for an error of a step that rounding alone exceeds, so that steps would be halved for ever."""
    require_positive(tolerance=tolerance)
    require(
        tolerance >= _ROUNDING,
        f"tolerance is {shown(tolerance)}, which rounding exceeds",
        argument="tolerance",
        value=tolerance,
        remedy=f"choose a number of at least {_ROUNDING:g}",
    )


def resolving(record: dict[str, np.ndarray], points: int) -> dict[str, np.ndarray]:
    """Interpolate a recorded flow and keep the given number of times, dense where anything changes.

    The loss is interpolated by cubics through its values and slopes, everything else by cubics that rise and fall only
    where the values do. A time is kept for each equal share of elapsed time, of fallen loss, and of change in the log
    of the descent rate, so that a drop a thousand times smaller than the first is resolved as well as the first.
    """
    time, loss, rate = record["time"], record["loss"], record["descent_rate"]
    # A solver of high order takes few steps, between which lines would be far from the curve.
    fractions = np.linspace(0, 1, max(8, -(-2 * points // len(time))), endpoint=False)
    fine = np.append((time[:-1, None] + np.diff(time)[:, None] * fractions).ravel(), time[-1])
    smooth = CubicHermiteSpline(time, loss, -rate)(fine)
    # Where a step excites a fast motion, the rate at its end is that of an instant, and not the slope of the loss.
    slope = -np.diff(loss) / np.diff(time)
    instant = rate > 2 * np.maximum(np.append(slope, 0.0), np.insert(slope, 0, 0.0))
    odd = instant[:-1] | instant[1:]
    if odd.any():
        smooth[:-1] = np.where(np.repeat(odd, len(fractions)), PchipInterpolator(time, loss)(fine[:-1]), smooth[:-1])
    smooth = np.minimum.accumulate(np.maximum(smooth, 0.0))
    # Eight decades below the steepest descent nothing is visible any more.
    activity = np.log(np.interp(fine, time, rate) + max(1e-8 * rate.max(), np.finfo(float).tiny))
    measure = np.zeros(len(fine))
    for series in (fine, smooth, activity):
        change = np.abs(np.diff(series))
        measure[1:] += np.cumsum(change) / max(change.sum(), np.finfo(float).tiny)
    measure /= measure[-1]
    kept = np.unique(np.searchsorted(measure, np.linspace(0, 1, points), side="left").clip(0, len(fine) - 1))
    result = {"time": fine[kept], "loss": smooth[kept]}
    with np.errstate(over="ignore"):  # slopes below the range of numbers, whose inverse is averaged, are zero
        for name, values in record.items():
            if name not in ("time", "loss"):
                result[name] = PchipInterpolator(time, values, axis=0)(fine[kept])
    return result
