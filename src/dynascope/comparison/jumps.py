"""Staircases: find the predicted jumps in an observed loss curve, and the plateaus that nobody predicted."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.arguments import require
from dynascope.record import StaircaseView
from dynascope.record import staircase_names as names
from dynascope.record.staircase import staircase_residual

__all__ = ["compare_staircases", "crossing_times", "resting_levels"]

# Two jumps this many e-folds of growth apart leave a visible pause in the descent between them.
_SEPARATE_E_FOLDS = 8.0
# A pause is a plateau where the descent is this many times slower than on either side.
_PLATEAU_DEPTH = 10.0
_ROUND_OFF = 1e-12
# A run that ends within this share of the time of its last jump may be in the middle of it.
_AFTERMATH = 0.1
# An observed plateau belongs to a predicted level within this share of the initial loss, or of the drops beside it.
_LEVEL_SHARE, _DROP_SHARE = 0.02, 0.25


def crossing_times(
    time: Float[np.ndarray, " time"], loss: Float[np.ndarray, " time"], values: Float[np.ndarray, " jump"]
) -> Float[np.ndarray, " jump"]:
    """First times at which a loss curve passes below each value; NaN where it never does.

    Example:
        >>> crossing_times(np.array([0.0, 1.0, 2.0]), np.array([1.0, 1.0, 0.0]), np.array([0.5, -1.0]))
        array([1.5, nan])
    """
    crossings = np.full(len(values), np.nan)
    for j, value in enumerate(values):
        after = int(np.argmax(loss < value))
        if loss[after] < value:
            before = max(after - 1, 0)
            crossings[j] = np.interp(value, [loss[after], loss[before]], [time[after], time[before]])
    return crossings


def resting_levels(
    time: Float[np.ndarray, " time"], loss: Float[np.ndarray, " time"], depth: float = _PLATEAU_DEPTH
) -> list[tuple[float, float]]:
    """Plateaus of a falling loss curve, found without a theory.

    A plateau lies at a local minimum of the descent rate −dL/dt that is at least `depth` times below the largest rate
    on either side of it, up to the neighbouring plateaus.

    Returns:
        For each plateau its loss and the smaller of the drops before and after it, in order.

    Example:
        >>> t = np.linspace(0, 20, 2001)
        >>> levels = resting_levels(t, 2 - 1 / (1 + np.exp(5 - t) ** 3) - 1 / (1 + np.exp(15 - t) ** 3))
        >>> [round(level, 3) for level, _ in levels]
        [1.0]
    """
    falls = [0]
    for i in range(1, len(loss)):
        # Smaller falls are round-off, which would make a plateau look rugged.
        if loss[i] < loss[falls[-1]] - _ROUND_OFF * loss[0]:
            falls.append(i)
    time, loss = time[falls], loss[falls]
    rate = -np.diff(loss) / np.diff(time)
    pauses: list[int] = []
    highest, lowest = 0, 0
    rising = True
    for i in range(len(rate)):
        if rising:
            if rate[i] > rate[highest]:
                highest = i
            elif rate[i] * depth < rate[highest]:
                lowest, rising = i, False
        elif rate[i] < rate[lowest]:
            lowest = i
        elif rate[i] > depth * rate[lowest]:
            pauses.append(lowest)
            highest, rising = i, True
    levels = [float(loss[pause] + loss[pause + 1]) / 2 for pause in pauses]
    bounds = [float(loss[0]), *levels, float(loss[-1])]
    return [(level, min(bounds[k] - level, level - bounds[k + 2])) for k, level in enumerate(levels)]


def compare_staircases(
    observed: xr.Dataset, predicted: xr.Dataset, at_other_scale: xr.Dataset | None, *, lateness: float = 0.12
) -> tuple[xr.Dataset, dict[str, float]]:
    """The residual of a staircase, and the errors of its quantities.

    Errors are predicted against observed: positive where the theory says later, or higher. A jump is judged unless the
    theory marks it slow, or it was not seen and was not due before the run ended.

    Args:
        observed: Record of a run.
        predicted: Record of a staircase.
        at_other_scale: The run again from another scale.
        lateness: How late a jump may come, over its predicted time, before it is missed.

    Returns:
        The residual over `jump` (see `record.staircase.staircase_residual`), in which a plateau is seen midway in time
        between two jumps, and the slopes are differences of times over those of the units of accelerated time. And the
        largest errors of times, levels and slopes, that of the initial loss, and the numbers of missing and of extra
        jumps.

    Raises:
        InputError: An observed record has no single loss over time, does not say its scale, or has that of the other.
    """
    time, loss = _curve(observed)
    staircase = StaircaseView(predicted)
    times, levels, slow = staircase.times, staircase.levels, staircase.slow
    middles = (levels[1:] + levels[:-1]) / 2
    found = crossing_times(time, loss, middles)
    seen = ~np.isnan(found)
    judged = ~slow & (seen | (times * (1 + lateness) <= time[-1]))
    # A plateau that nothing is seen to end lasts as long as the run.
    nexts = np.append(found[1:], np.nan)
    ends = np.where(np.isnan(nexts), time[-1], (nexts + found) / 2)
    seen_after = np.where(seen, np.interp(ends, time, loss), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        # A jump found at time zero has no relative error.
        time_error = times / found - 1
    level_error = (levels[1:] - seen_after) / levels[0]
    settled = judged & ~np.append(slow[1:], False) & ~_cut_short(found, nexts, time[-1])
    if staircase.settling_times is not None:
        # A plateau that is left, or a run that ends, before the theory expects it to be flat says nothing of its level.
        settled &= ~seen | (ends - found >= staircase.settling_times)
    missing = float(np.sum(judged & ~seen) + _merged(staircase, found, time, loss))
    errors = {
        names.INITIAL_LOSS: _initial_error(times, levels, time, loss),
        names.JUMP_TIME: _largest(time_error[judged]),
        names.LEVEL: _largest(level_error[settled]),
        names.MISSING_JUMPS: missing,
        names.EXTRA_JUMPS: float(_unpredicted(staircase, time, loss)),
    }
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
        slope = (crossing_times(*_curve(at_other_scale), middles) - found) / difference
        with np.errstate(divide="ignore"):
            slope_error = staircase.accelerated_times / slope - 1
        errors[names.SLOPE] = _largest(slope_error[judged])
    residual = staircase_residual(
        predicted,
        times=found,
        time_errors=time_error,
        levels=np.append(loss[:1], seen_after),
        level_errors=level_error,
        status=np.where(slow, "slow", np.where(judged, "judged", "not due")).tolist(),
        slopes=slope,
        slope_errors=slope_error,
    )
    return residual, errors


def _cut_short(found: np.ndarray, nexts: np.ndarray, end: float) -> np.ndarray:
    """Whether a run ends so soon after a jump that it has not shown where that leads."""
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


def _merged(staircase: StaircaseView, found: np.ndarray, time: np.ndarray, loss: np.ndarray) -> int:
    """Predicted jumps that do not separate from the one before, though a long plateau should lie between."""
    times, growth, slow = staircase.times, staircase.accelerated_times, staircase.slow
    merged = 0
    log_inverse_scale = -np.log(float(staircase.record.attrs.get("scale", 1.0)))
    rate = np.maximum(-np.gradient(loss, time), 0.0)
    drops = -np.diff(staircase.levels)
    for j in range(1, len(times)):
        e_folds = log_inverse_scale * (growth[j] - growth[j - 1]) / growth[j]
        if not staircase.exponential:
            # A blow-up has no rate of its own; its duration is that of a drop at the fastest descent seen.
            e_folds = (times[j] - times[j - 1]) * rate.max() / drops[j]
        if slow[j - 1] or slow[j] or e_folds < _SEPARATE_E_FOLDS or not np.isfinite(found[j - 1 : j + 1]).all():
            continue
        between = slice(*np.searchsorted(time, found[j - 1 : j + 1]))
        pause = rate[between]
        if pause.size < 3 or 2 * pause.min() > min(pause[0], pause[-1]):
            merged += 1
    return merged


def _unpredicted(staircase: StaircaseView, time: np.ndarray, loss: np.ndarray) -> int:
    """Observed plateaus at no predicted level, and a further descent below the last one, if that is to be the last."""
    levels, slow = staircase.levels, staircase.slow
    extra = 0
    if not staircase.complete:
        above = max(int(np.argmax(loss < levels[-1])), 1) if loss[-1] < levels[-1] else len(loss)
        time, loss = time[:above], loss[:above]
    for level, drop in resting_levels(time, loss):
        nearest = int(np.argmin(np.abs(levels - level)))
        allowed = max(_LEVEL_SHARE * levels[0], _DROP_SHARE * drop)
        beside_slow = bool(slow[max(nearest - 1, 0) : nearest + 1].any())
        extra += bool(abs(levels[nearest] - level) > allowed and not beside_slow)
    return extra + bool(loss[-1] < levels[-1] - _LEVEL_SHARE * levels[0])
