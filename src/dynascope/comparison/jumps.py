"""Staircases: find the predicted jumps in an observed loss curve, and the plateaus that nobody predicted."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.results import StaircaseView
from dynascope.results import staircase_names as names
from dynascope.results.staircase import staircase_residual
from dynascope.results.steps_seen import crossing_times, resting_levels, seen_steps
from dynascope.validation import require

__all__ = ["ESTIMATED", "between_points", "compare_curve", "compare_staircases", "curve_tells"]

ESTIMATED = "1.25 times the distance between the limit of small scales and the predicted loss curve at this scale"
# Two jumps this many e-folds of growth apart leave a visible pause in the descent between them.
_SEPARATE_E_FOLDS = 8.0
_PAUSE, _SURE_PAUSE = 2.0, 4.0  # how many times slower the descent becomes there, in a run and in a curve that is sure
# A run that ends within this share of the time of its last jump may be in the middle of it.
_AFTERMATH = 0.1
_LATENESS = 0.12  # how late a jump may come, over its time, if neither theory nor user says it
_TELLING = 0.05  # of the initial loss: by a curve that may be off by more nothing is judged
_MOVED, _TIMES = 0.1, 2000  # where a curve is compared: once this share of the loss falls, at so many times
# An observed plateau belongs to a predicted level within this share of the initial loss, or of the drops beside it.
_LEVEL_SHARE, _DROP_SHARE = 0.02, 0.25


def compare_staircases(
    observed: xr.Dataset, predicted: xr.Dataset, at_other_scale: xr.Dataset | None, *, tolerance: float | None = None
) -> tuple[xr.Dataset, dict[str, float], dict[str, float]]:
    """The residual of a staircase, the errors of its quantities, and what is allowed of those with estimates of theirs.

    Errors are predicted against observed: positive where the theory says later, or higher. A jump is judged unless the
    theory marks it slow, or it was not seen and was not due before the run ended. Where the theory says how far each
    time and each level may be off, the error told is that which is largest beside it.

    Args:
        observed: Record of a run.
        predicted: Record of a staircase.
        at_other_scale: The run again from another scale.
        tolerance: The largest relative error of a time, if not that which the theory says of each.

    Returns:
        The residual over `jump` (see `results.staircase.staircase_residual`), in which a plateau is seen midway in time
        between two jumps, and the slopes are differences of times over those of the units of accelerated time. The
        largest errors of times, levels and slopes, that of the initial loss, and the numbers of missing and of extra
        jumps. And the tolerances of times and levels, where the theory knows them.

    Raises:
        InputError: An observed record has no single loss over time, does not say its scale, or has that of the other.
    """
    time, loss = _curve(observed)
    staircase = StaircaseView(predicted)
    times, levels, slow = staircase.times, staircase.levels, staircase.slow
    found, ends, seen_after = seen_steps(time, loss, levels)
    followed = _followed(staircase, time)
    if staircase.curve is not None and not followed.all() and followed.any():
        # A level that was left later is read before that.
        last, end = time[followed][-1], float(staircase.curve["time"][-1])
        _, early_ends, early_levels = seen_steps(time[followed], loss[followed], levels)
        # A plateau that lasts beyond the curve lasts to its end, and not only to the last recorded time before it.
        early_ends = np.where(early_ends == last, end, early_ends)
        ends, seen_after = np.where(found <= last, [early_ends, early_levels], [ends, seen_after])
    seen = ~np.isnan(found)
    late = np.full(len(times), tolerance) if tolerance is not None else staircase.time_uncertainty
    if tolerance is None and late is not None:
        late = np.fmax(late, _spacing(time, found))
    judged = ~slow & (seen | (times * (1 + (_LATENESS if late is None else late)) <= time[-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        # A jump found at time zero has no relative error.
        time_error = times / found - 1
    level_error = (levels[1:] - seen_after) / levels[0]
    settled = judged & ~np.append(slow[1:], False) & ~_cut_short(found, time[-1])
    # Where further jumps are not known, nor is how long the loss stays where the last known one leads.
    settled[-1:] &= staircase.complete
    level_allowed = staircase.level_uncertainty
    if level_allowed is not None:
        settled &= np.isfinite(level_allowed)
    if staircase.settling_times is not None:
        # A plateau that is left, or a run that ends, before the theory expects it to be flat says nothing of its level.
        settled &= ~seen | (ends - found >= staircase.settling_times)
    missing = float(np.sum(judged & ~seen) + _merged(staircase, found, time, loss))
    errors, allowed = {names.INITIAL_LOSS: _initial_error(times, levels, time, loss)}, {}
    for name, error, counted, limit in (
        (names.JUMP_TIME, time_error, judged, None if tolerance is not None else late),
        (names.LEVEL, level_error, settled, level_allowed),
    ):
        errors[name] = _largest(error[counted])
        if limit is not None and counted.any():
            errors[name], allowed[name] = _worst(error[counted], limit[counted])
    errors |= {names.MISSING_JUMPS: missing, names.EXTRA_JUMPS: float(_unpredicted(staircase, time, loss))}
    slope = slope_error = None
    if at_other_scale is not None:
        difference = staircase.unit(_scale(at_other_scale)) - staircase.unit(_scale(observed))
        require(
            difference != 0,
            f"both observed records have the scale {_scale(observed)}",
            argument="at_other_scale",
            value=_scale(observed),
            remedy="observe again from another scale",
        )
        slope = (crossing_times(*_curve(at_other_scale), (levels[1:] + levels[:-1]) / 2) - found) / difference
        with np.errstate(divide="ignore"):
            slope_error = staircase.accelerated_times / slope - 1
        errors[names.SLOPE] = _largest(slope_error[judged])
    residual = staircase_residual(
        predicted,
        times=found,
        time_errors=time_error,
        levels=np.append(loss[:1], seen_after),
        level_errors=level_error,
        status=np.where(slow, names.SLOW, np.where(judged, names.JUDGED, names.NOT_DUE)).tolist(),
        slopes=slope,
        slope_errors=slope_error,
    )
    return residual, errors, allowed


def compare_curve(observed: xr.Dataset, predicted: xr.Dataset) -> float:
    """The mean distance of the observed from the predicted loss over the logarithm of time, over the initial loss.

    It is taken from a tenth of the time at which a tenth of the loss is predicted to have fallen, to the end of what
    both know; NaN if that was not due then.
    """
    shared, expected, initial = _shared_times(observed, predicted)
    if not len(shared):
        return np.nan
    return float(np.mean(np.abs(np.interp(shared, *_curve(observed)) - expected)) / initial)


def curve_tells(observed: xr.Dataset, predicted: xr.Dataset, tolerance: float) -> bool:
    """Whether a run that follows the curve at half or at twice its times would be told from one that follows it."""
    shared, expected, initial = _shared_times(observed, predicted)
    if tolerance > _TELLING or not len(shared):
        return False
    curve = predicted[names.CURVE_LOSS]
    known, loss = curve["time"].to_numpy(), curve.to_numpy()
    apart = [np.mean(np.abs(np.interp(factor * shared, known, loss) - expected)) for factor in (0.5, 2.0)]
    # Each may be off by the tolerance, towards the other.
    return bool(min(apart) / initial > 2 * tolerance)


def between_points(observed: xr.Dataset, predicted: xr.Dataset) -> float:
    """By how much that distance may be off where the loss falls from one logged point to the next nobody knows how."""
    shared, _, initial = _shared_times(observed, predicted)
    if not len(shared):
        return np.nan
    time, loss = _curve(observed)
    after = np.clip(np.searchsorted(time, shared), 1, len(time) - 1)
    between = np.interp(shared, time, loss)
    most = np.maximum(np.abs(loss[after - 1] - between), np.abs(between - loss[after]))
    return float(np.mean(most) / initial)


def _shared_times(observed: xr.Dataset, predicted: xr.Dataset) -> tuple[np.ndarray, np.ndarray, float]:
    """The times at which a curve is compared, none if that was not due; the loss predicted there, and the initial."""
    time, _ = _curve(observed)
    curve = predicted[names.CURVE_LOSS]
    known, expected = curve["time"].to_numpy(), curve.to_numpy()
    moving = float(known[int(np.argmax(expected < (1 - _MOVED) * expected[0]))])
    end = min(time[-1], known[-1])
    if moving == known[0] or end <= moving:
        return np.empty(0), np.empty(0), float(expected[0])
    shared = np.geomspace(max(moving / 10, time[0]), end, _TIMES)
    return shared, np.interp(shared, known, expected), float(expected[0])


def _spacing(time: np.ndarray, found: np.ndarray) -> np.ndarray:
    """The time between the records beside each jump, over its time; NaN where it was not found."""
    after = np.clip(np.searchsorted(time, found), 1, len(time) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isnan(found), np.nan, (time[after] - time[after - 1]) / found)


def _cut_short(found: np.ndarray, end: float) -> np.ndarray:
    """Whether a run ends so soon after a jump that it has not shown where that leads."""
    nexts = np.append(found[1:], np.nan)[: len(found)]
    return np.isnan(nexts) & (end - found < _AFTERMATH * found)


def _initial_error(times: np.ndarray, levels: np.ndarray, time: np.ndarray, loss: np.ndarray) -> float:
    """The first loss against the first level; NaN for a curve that begins when the first jump is over."""
    if len(times) and time[0] > times[0]:
        return np.nan
    return float(abs(loss[0] / levels[0] - 1)) if levels[0] > 0 else np.nan


def _curve(record: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    require(
        "loss" in record and record["loss"].dims == ("time",),
        "the observed record has no single loss over time",
        argument="observed",
        value=dict(record.sizes),
        remedy="select one member of the ensemble, or observe one run",
    )
    return record["time"].to_numpy(), record["loss"].to_numpy()


def _scale(record: xr.Dataset) -> float:
    require(
        "scale" in record.attrs,
        "an observed record does not say its scale",
        argument="at_other_scale",
        remedy="pass records of observe",
    )
    return float(record.attrs["scale"])


def _largest(errors: np.ndarray) -> float:
    """The largest size among errors; NaN if there are none, infinite if one is unknown."""
    if not errors.size:
        return np.nan
    return float(np.max(np.where(np.isnan(errors), np.inf, np.abs(errors))))


def _worst(errors: np.ndarray, allowed: np.ndarray) -> tuple[float, float]:
    """The error that is largest beside what is allowed of it, and that."""
    sizes = np.where(np.isnan(errors), np.inf, np.abs(errors))
    worst = int(np.argmax(sizes / allowed))
    return float(sizes[worst]), float(allowed[worst])


def _merged(staircase: StaircaseView, found: np.ndarray, time: np.ndarray, loss: np.ndarray) -> int:
    """Predicted jumps that do not separate from the one before, though a long plateau should lie between."""
    times, growth, slow = staircase.times, staircase.accelerated_times, staircase.slow
    log_inverse_scale = -np.log(float(staircase.record.attrs.get("scale", 1.0)))
    rate = np.maximum(-np.gradient(loss, time), 0.0)
    drops = -np.diff(staircase.levels)
    together = _run_together(time, loss, found, pause=_PAUSE)
    if staircase.curve is not None:
        # Where jumps nearly run together at this scale already, the limit says nothing of a pause between them. Asked
        # for the same pause, a run that follows the curve could be on the other side of it.
        curve = staircase.curve["time"].to_numpy(), staircase.curve.to_numpy()
        together &= ~_run_together(*curve, seen_steps(*curve, staircase.levels).times, pause=_SURE_PAUSE)
    merged = 0
    for j in range(1, len(times)):
        e_folds = log_inverse_scale * (growth[j] - growth[j - 1]) / growth[j]
        if not staircase.exponential:
            # A blow-up has no rate of its own; its duration is that of a drop at the fastest descent seen.
            e_folds = (times[j] - times[j - 1]) * rate.max() / drops[j]
        merged += bool(together[j] and e_folds >= _SEPARATE_E_FOLDS and not (slow[j - 1] or slow[j]))
    return merged


def _run_together(time: np.ndarray, loss: np.ndarray, found: np.ndarray, *, pause: float) -> np.ndarray:
    """Whether the descent does not slow down so many times between each jump and the one before, of those found."""
    rate = np.maximum(-np.gradient(loss, time), 0.0)
    together = np.zeros(len(found), bool)
    for j in range(1, len(found)):
        if np.isfinite(found[j - 1 : j + 1]).all():
            between = rate[slice(*np.searchsorted(time, found[j - 1 : j + 1]))]
            together[j] = between.size < 3 or pause * between.min() > min(between[0], between[-1])
    return together


def _unpredicted(staircase: StaircaseView, time: np.ndarray, loss: np.ndarray) -> int:
    """Observed plateaus at no predicted level, and a further descent below the last one, if that is to be the last.

    They count until the time to which theory follows the loss at this scale, if it does.
    """
    levels, slow = staircase.levels, staircase.slow
    # Where the loss rests at this scale is predicted as well, though not by the limit.
    curve = (
        []
        if staircase.curve is None
        else resting_levels(staircase.curve["time"].to_numpy(), staircase.curve.to_numpy())
    )
    known = np.append(levels, [level for level, _ in curve])
    extra = 0
    followed = _followed(staircase, time)
    time, loss = time[followed], loss[followed]
    if not len(time):
        return 0
    if not staircase.complete:
        above = max(int(np.argmax(loss < levels[-1])), 1) if loss[-1] < levels[-1] else len(loss)
        time, loss = time[:above], loss[:above]
    for level, drop in resting_levels(time, loss):
        nearest = int(np.argmin(np.abs(levels - level)))
        allowed = max(_LEVEL_SHARE * levels[0], _DROP_SHARE * drop)
        beside_slow = bool(slow[max(nearest - 1, 0) : nearest + 1].any())
        extra += bool(np.min(np.abs(known - level)) > allowed and not beside_slow)
    return extra + bool(loss[-1] < levels[-1] - _LEVEL_SHARE * levels[0] and not slow[-1:].any())


def _followed(staircase: StaircaseView, time: np.ndarray) -> np.ndarray:
    """When theory knows the loss at this scale; later, one that is not vanishing may show more than the limit does."""
    last = np.inf if staircase.curve is None else staircase.curve["time"].to_numpy()[-1]
    return time <= last
