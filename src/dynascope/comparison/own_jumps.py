"""Jumps in a loss curve of one's own: those are judged that its logging, its noise and its learning rate tell."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

from dynascope.arguments import require
from dynascope.comparison.doubts import FIRST, TOO_ROUGH, doubts_of
from dynascope.comparison.jumps import ESTIMATED, between_points, compare_curve, compare_staircases, curve_tells
from dynascope.comparison.own_warnings import fastest_growth, told_of_curve, told_of_jumps, told_of_times
from dynascope.comparison.steady_curve import steady_curve
from dynascope.record import StaircaseView
from dynascope.record import staircase_names as names
from dynascope.record.staircase import with_slow_jumps, with_tolerances

__all__ = ["compare_own_staircase"]

_SETTLED = 0.25  # share of its time for which the last plateau is to be seen


def compare_own_staircase(
    observed: xr.Dataset, predicted: xr.Dataset, *, tolerance: tuple[float, str], chosen: bool = False
) -> tuple[xr.Dataset, xr.Dataset, dict[str, float], dict[str, float]]:
    """The residual of a staircase against a curve of one's own, and the errors of its quantities.

    A jump is left unjudged (`unclear`) where the curve was logged too rarely to time it, where noise hides it, where
    large steps explain that it is late, and where theory knows times no better than to a third, so that a wrong
    learning rate would pass. What logging and noise add to the error of times is added to their tolerance. The level of
    a plateau is judged where the next jump is seen, or where it is the last one and lasts.

    Args:
        observed: As of `own_curve`.
        predicted: A staircase in the units of that curve.
        tolerance: Relative error that times may have, and why.
        chosen: Whether the user chose it, so that it stays.

    Returns:
        The prediction with that tolerance and with warnings of what the curve does not tell; the residual, the errors
        and the tolerance of levels where that is known, as of `jumps.compare_staircases`.

    Raises:
        InputError: The prediction is an ensemble.
    """
    if predicted.attrs.get("weights") == "drawn":
        # Other weights of the same scale have other times, by as much as the theory allows for without knowing any.
        predicted = predicted.drop_vars([names.TIME_UNCERTAINTY, names.LEVEL_UNCERTAINTY], errors="ignore")
    staircase = StaircaseView(predicted)
    require(
        staircase.times.ndim == 1,
        f"the prediction is an ensemble of {staircase.times.size // max(predicted.sizes['jump'], 1)} staircases",
        argument="predicted",
        value=dict(predicted.sizes),
        remedy="select the one that starts as the run did",
    )
    time, loss = observed["time"].to_numpy(), observed["loss"].to_numpy()
    first = float(staircase.times[0]) if len(staircase.times) and np.isfinite(staircase.times[0]) else 0.0
    curve = steady_curve(time, loss, first / 2)
    late = fastest_growth(staircase) * observed.attrs["largest_step"] / 2
    if first > 0:
        late += observed.attrs.get("delay", 0.0) / first
    known = staircase.time_uncertainty
    if known is not None and tolerance[0] > TOO_ROUGH and not chosen and not staircase.slow.all():
        tolerance = float(known[~staircase.slow].max()) + late, ESTIMATED
    doubts = doubts_of(staircase, curve, tolerance[0], late=late, chosen=chosen, units=_units(observed))
    steady = observed.assign(loss=("time", curve.loss))
    residual, errors, estimated = compare_staircases(
        steady,
        _with_levels_to_judge(with_slow_jumps(predicted, doubts.reasons), doubts.found, time[-1]),
        at_other_scale=None,
        tolerance=doubts.allowed + late,
    )
    if known is not None and staircase.curve is not None:
        blurred = late / 2 + 3 * curve.error(time[0]) / loss[0] + between_points(steady, predicted)
        predicted = _with_curve_tolerance(predicted, blurred)
        told = curve_tells(steady, predicted, predicted.attrs[f"{names.CURVE}_tolerance"])
        errors[names.CURVE] = compare_curve(steady, predicted) if told else np.nan
    unclear = np.array([bool(each) for each in doubts.reasons], dtype=bool) & ~staircase.slow
    status = np.where(unclear, names.UNCLEAR, residual[names.STATUS].to_numpy())
    residual, judged = residual.assign({names.STATUS: ("jump", status.astype(str))}), status == names.JUDGED
    seen = np.isfinite(doubts.found)
    for name in (names.OBSERVED_JUMP_TIME, names.TIME_ERROR):
        residual[name] = residual[name].where(seen)
    if curve.noisy:
        errors[names.EXTRA_JUMPS] = np.nan
    if time[0] > first / 2 or 3 * curve.error(time[0]) > FIRST * loss[0]:
        errors[names.INITIAL_LOSS] = np.nan
    if 3 * curve.unit / 4 > FIRST * loss[0]:
        errors[names.LEVEL] = np.nan
    said = [
        *json.loads(predicted.attrs.get("warnings", "[]")),
        *told_of_jumps(np.where(unclear, doubts.reasons, "").tolist()),
        *told_of_curve(observed, predicted, curve, errors[names.INITIAL_LOSS], late),
        *told_of_times(staircase.times[judged] / doubts.found[judged], doubts.allowed),
    ]
    predicted = predicted.assign_attrs(warnings=json.dumps(said, ensure_ascii=False))
    why = tolerance[1] + doubts.added
    return with_tolerances(predicted, jump_time=(doubts.allowed, why)), residual, errors, estimated


def _with_curve_tolerance(predicted: xr.Dataset, blurred: float) -> xr.Dataset:
    """The prediction with what noise, steps and logging of a curve add to what its loss here may be off."""
    usual, why = (predicted.attrs[f"{names.CURVE}_tolerance{end}"] for end in ("", "_reason"))
    if not blurred >= 1e-3:  # also NaN, of a run that ends before the curve is compared
        return predicted
    reason = f"{why}; and {100 * blurred:.2g} % for the noise, the steps and the logging of this curve"
    return predicted.assign_attrs(
        {f"{names.CURVE}_tolerance": usual + blurred, f"{names.CURVE}_tolerance_reason": reason}
    )


def _with_levels_to_judge(predicted: xr.Dataset, found: np.ndarray, end: float) -> xr.Dataset:
    """The prediction with plateaus that never settle where a run, whatever its length, does not show where they end."""
    staircase = StaircaseView(predicted)
    settling = np.zeros(len(found)) if staircase.settling_times is None else staircase.settling_times.copy()
    settling[:-1][np.isnan(found[1:])] = np.inf
    settling[-1:] = np.maximum(settling[-1:], _SETTLED * found[-1:]) if staircase.complete else np.inf
    return predicted.assign({names.SETTLING_TIME: ("jump", settling)})


def _units(observed: xr.Dataset) -> str:
    return observed["time"].attrs["units"].removeprefix("optimiser ")
