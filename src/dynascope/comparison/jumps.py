"""Compare staircases: find the predicted jumps in an observed loss curve, and plateaus that theory does not predict."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.results import StaircaseView
from dynascope.results import staircase_names as names
from dynascope.results.staircase import staircase_residual
from dynascope.results.steps_seen import crossing_times, resting_levels, seen_steps
from dynascope.validation import require

__all__ = ["ESTIMATED", "between_points", "compare_curve", "compare_staircases", "curve_discriminates", "later_descent"]

ESTIMATED = "1.25 times the difference between the small-scale limit and the predicted loss curve at this scale"
# Two jumps this many e-folds of growth apart leave a visible pause in the descent between them.
_SEPARATE_E_FOLDS = 8.0
_PAUSE, _SURE_PAUSE = 2.0, 4.0  # minimum slowdown in the pause, in a run and in a predicted curve
# A run that ends so soon after its last jump, relative to its time, may not show the next level.
_AFTERMATH = 0.1
_LATENESS = 0.12  # default relative delay allowed for a jump
_TELLING = 0.05  # maximum tolerance of a compared curve, relative to the initial loss
_MOVED, _TIMES = (
    0.1,
    2000,
)  # a curve is compared after this fraction of the loss has been learned, at this number of times
# A plateau matches a level within this fraction of the initial loss, or of the adjacent drops.
_LEVEL_SHARE, _DROP_SHARE = 0.02, 0.25


def compare_staircases(
    observed: xr.Dataset, predicted: xr.Dataset, at_other_scale: xr.Dataset | None, *, tolerance: float | None = None
) -> tuple[xr.Dataset, dict[str, float], dict[str, float]]:
    """Return the residual of a staircase, the errors of its quantities, and the tolerances that theory estimates.

    Errors are predicted minus observed: positive if theory predicts a later time or a higher level. A jump is scored
    unless its time is uncertain (a slow jump), or it is predicted after the end of the run and was not observed. If
    theory estimates the error of each time and level, the returned error is the largest relative to its estimate.

    Args:
        observed: Record of a run.
        predicted: Record of a staircase.
        at_other_scale: Record of a run of the same network from another scale.
        tolerance: The tolerance of the relative error of times; it replaces the estimates of the theory.

    Returns:
        The residual over `jump` (see `results.staircase.staircase_residual`); the errors of times, levels, slopes and
        the initial loss, with the numbers of missing and extra jumps; and the tolerances of times and levels, if theory
        estimates them. The level of a plateau is read halfway in time between two jumps. Slopes are differences between
        times at two scales, divided by the difference in `results.time_unit`.

    Raises:
        InputError: An observed record lacks a scale or does not contain exactly one loss over time, or both observed
            records have the same scale.
    """
    time, loss = _curve(observed)
    staircase = StaircaseView(predicted)
    times, levels, slow = staircase.times, staircase.levels, staircase.slow
    found, ends, seen_after = seen_steps(time, loss, levels)
    covered = _covered(staircase, time)
    if staircase.curve is not None and not covered.all() and covered.any():
        # If a plateau ends after the predicted curve, its level is read before the end of the curve.
        last, end = time[covered][-1], float(staircase.curve["time"][-1])
        _, early_ends, early_levels = seen_steps(time[covered], loss[covered], levels)
        # A plateau that lasts beyond the curve ends with the curve, not at the last recorded time before its end.
        early_ends = np.where(early_ends == last, end, early_ends)
        ends, seen_after = np.where(found <= last, [early_ends, early_levels], [ends, seen_after])
    seen = ~np.isnan(found)
    late = np.full(len(times), tolerance) if tolerance is not None else staircase.time_uncertainty
    if tolerance is None and late is not None:
        late = np.fmax(late, _spacing(time, found))
    scored = ~slow & (seen | (times * (1 + (_LATENESS if late is None else late)) <= time[-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        # A jump found at time zero has no relative error.
        time_error = times / found - 1
    level_error = (levels[1:] - seen_after) / levels[0]
    level_allowed = staircase.level_uncertainty
    obstacles = _obstacles_to_levels(staircase, found, ends, time[-1])
    settled = scored & ~np.any([obstacle for obstacle, _ in obstacles], axis=0)
    missing = float(np.sum(scored & ~seen) + _merged(staircase, found, time, loss))
    errors, allowed = {names.INITIAL_LOSS: _initial_error(times, levels, time, loss)}, {}
    for name, error, counted, limit in (
        (names.JUMP_TIME, time_error, scored, None if tolerance is not None else late),
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
            remedy="observe again at another scale",
        )
        slope = (crossing_times(*_curve(at_other_scale), (levels[1:] + levels[:-1]) / 2) - found) / difference
        with np.errstate(divide="ignore"):
            slope_error = staircase.accelerated_times / slope - 1
        errors[names.SLOPE] = _largest(slope_error[scored])
    residual = staircase_residual(
        predicted,
        times=found,
        time_errors=time_error,
        levels=np.append(loss[:1], seen_after),
        level_errors=level_error,
        status=np.where(slow, names.SLOW, np.where(scored, names.JUDGED, names.NOT_DUE)).tolist(),
        settled=~seen | ~(_cut_short(found, time[-1]) | _unsettled(staircase, found, ends)),
        time_tolerances=late,
        slopes=slope,
        slope_errors=slope_error,
    )
    if scored.any() and not settled.any():
        first = [next(why for obstacle, why in obstacles if obstacle[jump]) for jump in np.flatnonzero(scored)]
        residual.attrs[names.LEVEL_UNSCORED] = " or ".join(dict.fromkeys(first))
    return residual, errors, allowed


def _unsettled(staircase: StaircaseView, found: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Select the observed plateaus that end before they are expected to become flat; their levels cannot be read."""
    settling = staircase.settling_times
    return np.zeros(len(found), bool) if settling is None else np.isfinite(found) & (ends - found < settling)


def _obstacles_to_levels(
    staircase: StaircaseView, found: np.ndarray, ends: np.ndarray, last: float
) -> list[tuple[np.ndarray, str]]:
    """Return the reasons why the level after a jump cannot be scored, each with the jumps to which it applies.

    Args:
        staircase: The prediction.
        found: The observed times of the jumps.
        ends: The times at which the level after each jump is read.
        last: The end of the run.
    """
    jumps = len(found)
    after = np.append(found[1:], np.nan)[:jumps]
    allowed, unsettled = staircase.level_uncertainty, _unsettled(staircase, found, ends)
    return [
        (np.append(staircase.slow[1:], False)[:jumps], "the time of the next jump is uncertain"),
        # If further jumps are unknown, so is the duration of the last plateau.
        (np.arange(jumps) >= jumps - (not staircase.complete), "the time of the next jump is unknown"),
        (
            _cut_short(found, last) | (unsettled & np.isnan(after)),
            "the run or the predicted curve ends before the loss is flat",
        ),
        (unsettled, "the next jump begins before the loss is flat"),
        (
            np.zeros(jumps, bool) if allowed is None else ~np.isfinite(allowed),
            "the estimated error of the level exceeds a quarter of the adjacent drop in the loss",
        ),
    ]


def compare_curve(observed: xr.Dataset, predicted: xr.Dataset) -> float:
    """Return the mean distance between observed and predicted loss over log time, relative to the initial loss.

    The compared times begin at a tenth of the time at which the predicted loss has decreased by a tenth, and end with
    the shorter curve. The result is NaN if a curve ends before this decrease.
    """
    shared, expected, initial = _shared_times(observed, predicted)
    if not len(shared):
        return np.nan
    return float(np.mean(np.abs(np.interp(shared, *_curve(observed)) - expected)) / initial)


def curve_discriminates(observed: xr.Dataset, predicted: xr.Dataset, tolerance: float) -> bool:
    """Whether the tolerance is small enough to exclude a run at half or twice the predicted times."""
    shared, expected, initial = _shared_times(observed, predicted)
    if tolerance > _TELLING or not len(shared):
        return False
    curve = predicted[names.CURVE_LOSS]
    known, loss = curve["time"].to_numpy(), curve.to_numpy()
    apart = [np.mean(np.abs(np.interp(factor * shared, known, loss) - expected)) for factor in (0.5, 2.0)]
    # Both curves may deviate by the tolerance, towards each other.
    return bool(min(apart) / initial > 2 * tolerance)


def between_points(observed: xr.Dataset, predicted: xr.Dataset) -> float:
    """Bound the error of `compare_curve` due to the unknown loss between logged points."""
    shared, _, initial = _shared_times(observed, predicted)
    if not len(shared):
        return np.nan
    time, loss = _curve(observed)
    after = np.clip(np.searchsorted(time, shared), 1, len(time) - 1)
    between = np.interp(shared, time, loss)
    most = np.maximum(np.abs(loss[after - 1] - between), np.abs(between - loss[after]))
    return float(np.mean(most) / initial)


def _shared_times(observed: xr.Dataset, predicted: xr.Dataset) -> tuple[np.ndarray, np.ndarray, float]:
    """Return the times at which curves are compared (possibly none), the losses predicted there, and the first loss."""
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
    """Return the recording interval around each jump, relative to its time; NaN if the jump was not found."""
    after = np.clip(np.searchsorted(time, found), 1, len(time) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isnan(found), np.nan, (time[after] - time[after - 1]) / found)


def _cut_short(found: np.ndarray, end: float) -> np.ndarray:
    """Whether a run ends too soon after a jump to show the next level."""
    nexts = np.append(found[1:], np.nan)[: len(found)]
    return np.isnan(nexts) & (end - found < _AFTERMATH * found)


def _initial_error(times: np.ndarray, levels: np.ndarray, time: np.ndarray, loss: np.ndarray) -> float:
    """Return the relative error of the first loss; NaN for a curve that starts after the first jump."""
    if len(times) and time[0] > times[0]:
        return np.nan
    return float(abs(loss[0] / levels[0] - 1)) if levels[0] > 0 else np.nan


def _curve(record: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    require(
        "loss" in record and record["loss"].dims == ("time",),
        "the observed record does not contain exactly one loss over time",
        argument="observed",
        value=dict(record.sizes),
        remedy="select one member of the ensemble, or observe one run",
    )
    return record["time"].to_numpy(), record["loss"].to_numpy()


def _scale(record: xr.Dataset) -> float:
    require(
        "scale" in record.attrs,
        "an observed record has no attribute 'scale'",
        argument="at_other_scale",
        remedy="pass the results of observe",
    )
    return float(record.attrs["scale"])


def _largest(errors: np.ndarray) -> float:
    """Return the largest absolute error; NaN if there are none, infinite if one is unknown."""
    if not errors.size:
        return np.nan
    return float(np.max(np.where(np.isnan(errors), np.inf, np.abs(errors))))


def _worst(errors: np.ndarray, allowed: np.ndarray) -> tuple[float, float]:
    """Return the error with the largest ratio to its tolerance, and that tolerance."""
    sizes = np.where(np.isnan(errors), np.inf, np.abs(errors))
    worst = int(np.argmax(sizes / allowed))
    return float(sizes[worst]), float(allowed[worst])


def _merged(staircase: StaircaseView, found: np.ndarray, time: np.ndarray, loss: np.ndarray) -> int:
    """Count the predicted jumps that merge with the previous one although a long plateau is predicted between them."""
    times, growth, slow = staircase.times, staircase.accelerated_times, staircase.slow
    log_inverse_scale = -np.log(float(staircase.record.attrs.get("scale", 1.0)))
    rate = np.maximum(-np.gradient(loss, time), 0.0)
    drops = -np.diff(staircase.levels)
    together = _run_together(time, loss, found, pause=_PAUSE)
    if staircase.curve is not None:
        # If the predicted curve at this scale nearly merges two jumps, the limit implies no pause between them. The
        # threshold is stricter for the curve, so that a run that follows it exactly cannot fail.
        curve = staircase.curve["time"].to_numpy(), staircase.curve.to_numpy()
        together &= ~_run_together(*curve, seen_steps(*curve, staircase.levels).times, pause=_SURE_PAUSE)
    merged = 0
    for j in range(1, len(times)):
        e_folds = log_inverse_scale * (growth[j] - growth[j - 1]) / growth[j]
        if not staircase.exponential:
            # A finite-time blow-up has no growth rate; its duration is that of the drop at the fastest observed
            # descent.
            e_folds = (times[j] - times[j - 1]) * rate.max() / drops[j]
        merged += bool(together[j] and e_folds >= _SEPARATE_E_FOLDS and not (slow[j - 1] or slow[j]))
    return merged


def _run_together(time: np.ndarray, loss: np.ndarray, found: np.ndarray, *, pause: float) -> np.ndarray:
    """Whether the loss falls from one observed jump to the next without slowing down by the factor `pause`."""
    rate = np.maximum(-np.gradient(loss, time), 0.0)
    together = np.zeros(len(found), bool)
    for j in range(1, len(found)):
        if np.isfinite(found[j - 1 : j + 1]).all():
            between = rate[slice(*np.searchsorted(time, found[j - 1 : j + 1]))]
            together[j] = between.size < 3 or pause * between.min() > min(between[0], between[-1])
    return together


def _unpredicted(staircase: StaircaseView, time: np.ndarray, loss: np.ndarray) -> int:
    """Count the unpredicted plateaus, and a descent below the last level of a complete staircase.

    If there is a predicted loss curve, only the time up to its end is considered.
    """
    levels, slow = staircase.levels, staircase.slow
    # Plateaus of the predicted curve at this scale count as predicted too.
    curve = (
        []
        if staircase.curve is None
        else resting_levels(staircase.curve["time"].to_numpy(), staircase.curve.to_numpy())
    )
    known = np.append(levels, [level for level, _ in curve])
    extra = 0
    covered = _covered(staircase, time)
    time, loss = time[covered], loss[covered]
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


def later_descent(observed: xr.Dataset, predicted: xr.Dataset) -> str:
    """Describe a descent of the observed loss after the end of the predicted curve, which is not scored; empty if none.

    Args:
        observed: Record of a run.
        predicted: Record of a staircase.
    """
    staircase, (time, loss) = StaircaseView(predicted), _curve(observed)
    levels = staircase.levels
    below = loss[-1] < levels[-1] - _LEVEL_SHARE * levels[0]
    known = staircase.complete and not staircase.slow[-1:].any()
    if not (below and known) or _covered(staircase, time).all():
        return ""
    return (
        f"After the end of the predicted curve, the observed loss falls to {loss[-1]:.4g}, below the last predicted "
        f"level of {levels[-1]:.4g}. This descent is not scored, although theory predicts no further jump."
    )


def _covered(staircase: StaircaseView, time: np.ndarray) -> np.ndarray:
    """Select the times up to the end of the predicted loss curve; the small-scale limit may omit later jumps."""
    last = np.inf if staircase.curve is None else staircase.curve["time"].to_numpy()[-1]
    return time <= last
