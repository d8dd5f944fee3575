"""Estimate the error of the small-scale limit at a finite scale, by comparison with the loss curve at that scale."""

from __future__ import annotations

import re

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.errors import DivergenceError
from dynascope.prediction.loss_curve import loss_curve
from dynascope.protocols import Learnable, Network
from dynascope.results import StaircaseView, name_all, training_time
from dynascope.results import staircase_names as names
from dynascope.results.staircase import with_slow_jumps
from dynascope.results.steps_seen import SeenSteps, crossing_times, seen_steps

__all__ = ["at_this_scale", "with_curve"]

_ROUGH = 0.25  # largest relative error of a scored time, and of a level relative to the adjacent drops
_MARGIN = 1.25  # safety factor on the error of the limit, for the error of the curve itself
_POINT = 3.0  # ratio of the largest to the mean error between two curves
_READ = 0.01  # relative accuracy of reading a time off the curve
_LEVEL = 0.02  # of the initial loss; the loss leaves a plateau before it converges
_TRAINED = 0.1  # of the initial loss; a larger decrease below it at time zero contradicts small weights
_SHORTER = 0.9  # of the time at which the integration failed
_LONGER, _EXTENSIONS = 4.0, 10  # how often a curve that does not reach the last jump is extended,
_OPERATIONS = 5e10  # if it is likely to end within so many operations, about ten seconds


def at_this_scale(staircase: xr.Dataset, task: Learnable, network: Network) -> xr.Dataset:
    """Add the loss curve at the scale of a staircase, and the estimated errors of its jumps.

    Args:
        staircase: Record of a staircase.
        task: The task.
        network: A module with its weights at unit scale.

    Returns:
        The result of `with_curve`; the staircase with a warning if the curve could not be computed; or the unchanged
        staircase if there is no method for this network.
    """
    if not staircase.sizes["jump"]:
        return staircase
    scale, normalised = float(staircase.attrs["scale"]), bool(staircase.attrs.get("normalised", 0))
    duration, curve, failed = training_time(staircase, scale), None, None
    spent = 0.0
    for _ in range(_EXTENSIONS):
        try:
            longer = loss_curve(task, network, scale=scale, duration=duration, normalised=normalised)
        except DivergenceError as error:
            # The time in the error message may have other units than the staircase.
            again, failed = failed is None and error.time > 0, failed or re.sub(r" at time [\d.e+-]+", "", str(error))
            if not again:
                break
            duration = _SHORTER * error.time  # end shortly before the failure
            continue
        if longer is None:
            return staircase
        curve = longer
        if curve["time"][-1] < duration and failed is None:
            failed = "the rest would take too many operations"
        arrived = not np.isnan(_seen(staircase, curve).times[-1])
        spent += curve.attrs["operations"]
        # A limit in operations, unlike one in seconds, gives the same result on every machine.
        if failed is not None or arrived or spent + _LONGER * curve.attrs["operations"] > _OPERATIONS:
            break
        duration *= _LONGER
    if curve is None:
        return _warned(staircase, f"The loss curve at this scale could not be computed: {failed}")
    result = with_curve(staircase, curve)
    initial, first = float(StaircaseView(staircase).levels[0]), float(curve["loss"][0])
    if first < (1 - _TRAINED) * initial:
        result = _warned(
            result,
            f"The given weights have a loss of {first:.3g}, but small weights have a loss of {initial:.3g}, so the "
            "given weights are large or already trained. The predicted jumps assume small weights: give the initial "
            "weights.",
        )
    if failed is None:
        return result
    end, last = float(curve["time"][-1]), float(StaircaseView(staircase).times[-1])
    far = f"{end / last:.2g} times the time of the last jump" if last > 0 else f"time {end:.2g}"
    return _warned(result, f"The loss curve at this scale ends at {far}: {failed}")


def with_curve(staircase: xr.Dataset, curve: xr.Dataset) -> xr.Dataset:
    """Add the errors of jumps, estimated from a loss curve at the same scale.

    Args:
        staircase: Record of a staircase.
        curve: The result of `loss_curve`.

    Returns:
        The record with `loss` over `time` and the estimated errors over `jump`: `jump_time_uncertainty` (relative) and
        `level_uncertainty` (relative to the initial loss; infinite if the curve has no plateau near the level). A jump
        is slow if its time differs by more than a quarter from the time on the curve, and the time on the curve then
        replaces the predicted time.
    """
    view = StaircaseView(staircase)
    seen = _seen(staircase, curve)
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.abs(view.times / seen.times - 1)
        blurred = _blur(view.levels, seen.times, curve)
    columns = zip(view.times, seen.times, off, blurred, strict=True)
    reasons = [_reason(*each, end=float(curve["time"][-1])) for each in columns]
    if names.REASON in staircase:
        earlier = staircase[names.REASON].to_numpy()
        reasons = [old if old == names.UNSETTLED else new for old, new in zip(earlier, reasons, strict=True)]
    slow = np.array([bool(reason) for reason in reasons])
    times = np.where(slow & np.isfinite(seen.times), seen.times, view.times)
    # The margin alone never makes a jump slow.
    allowed = np.where(slow, _ROUGH, np.minimum(_MARGIN * np.where(np.isnan(off), 0.0, off) + blurred + _READ, _ROUGH))
    known = with_slow_jumps(staircase, reasons).assign(
        {
            names.JUMP_TIME: ("jump", np.maximum.accumulate(times)),
            names.TIME_UNCERTAINTY: ("jump", allowed),
            names.CURVE_LOSS: curve["loss"],
        }
    )
    begin, end = _read_between(seen, blurred, curve, training_time(known, float(known.attrs["scale"])))
    known[names.LEVEL_UNCERTAINTY] = "jump", _level_uncertainty(view.levels, begin, end, curve)
    flat = np.zeros(len(slow)) if view.settling_times is None else view.settling_times
    # A run that ends earlier does not show the last plateau.
    flat = np.append(flat[:-1], np.fmax(flat[-1:], begin[-1:] - seen.times[-1:]))
    known[names.SETTLING_TIME] = "jump", flat
    return name_all(known).assign_attrs(
        curve_error=curve.attrs["error"],
        curve_variables=curve.attrs.get("variables", ""),
        **_tolerances(curve, float(view.levels[0])),
    )


def _tolerances(curve: xr.Dataset, initial: float) -> dict[str, float | str]:
    tolerances: dict[str, float | str] = {
        f"{names.CURVE}_tolerance": max(0.01, 2 * curve.attrs["error"]),
        f"{names.CURVE}_tolerance_reason": "one percent, or twice the estimated error of the predicted curve",
    }
    off = abs(float(curve["loss"][0]) / initial - 1)
    if off > _READ:
        # If the inputs are large, the initial output is not small even for small weights.
        tolerances[f"{names.INITIAL_LOSS}_tolerance"] = _MARGIN * off + _READ
        tolerances[f"{names.INITIAL_LOSS}_tolerance_reason"] = (
            "the contribution of the initial network output at this scale, plus a quarter"
        )
    return tolerances


def _seen(staircase: xr.Dataset, curve: xr.Dataset) -> SeenSteps:
    return seen_steps(curve["time"].to_numpy(), curve["loss"].to_numpy(), StaircaseView(staircase).levels)


def _blur(
    levels: Float[np.ndarray, " level"], times: Float[np.ndarray, " jump"], curve: xr.Dataset
) -> Float[np.ndarray, " jump"]:
    """Estimate the relative error of the time at which the curve passes the midpoint of each jump.

    The estimate combines the error of the loss with the difference between the two computed curves. Errors accumulate
    along the curve, so the uncertainty of a jump carries over to all later jumps.
    """
    middles, error = (levels[1:] + levels[:-1]) / 2, _POINT * curve.attrs["error"] * levels[0]
    moments, loss, rougher = (curve[name].to_numpy() for name in ("time", "loss", "rougher_loss"))

    def moved(loss: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.abs(crossing_times(moments, loss, middles) / times - 1)

    found = [moved(loss + error), moved(loss - error), _POINT * moved(rougher)]
    return np.maximum.accumulate(np.where(np.isnan(found).any(axis=0), np.inf, np.max(found, axis=0)))


def _reason(limit: float, here: float, off: float, blurred: float, *, end: float) -> str:
    # Ratios of times do not depend on the units.
    if limit <= 0:
        return "the small-scale limit predicts it at time zero, so this scale is not small in these units"
    if np.isnan(here):
        until = f"{end / limit:.2g} times" if end > 1.05 * limit else ""
        return " ".join(
            filter(None, ["the loss curve at this scale does not reach it by", until, "the time in the limit"])
        )
    if off + blurred + _READ <= _ROUGH:
        return ""
    if off > min(blurred, _ROUGH):
        return f"the loss at this scale falls at {here / limit:.3g} times the time in the small-scale limit"
    return "the loss falls so slowly at this jump that the time is uncertain"


def _read_between(
    seen: SeenSteps, blurred: Float[np.ndarray, " jump"], curve: xr.Dataset, trained: float
) -> tuple[Float[np.ndarray, " jump"], Float[np.ndarray, " jump"]]:
    """Return the range of times in which the level after each jump is read.

    The level is read halfway to the next jump, or at the end of the run if there is no next jump. The range includes
    the uncertainty of the times.
    """
    shift = 1 + np.maximum(blurred, np.append(blurred[1:], 0.0))
    after = np.append(seen.times[1:], np.nan)[: len(shift)]
    rests, last = np.isnan(after), float(curve["time"][-1])
    begin = np.where(rests, np.minimum(trained, last), seen.ends) / shift
    # A level at time zero stays at time zero, whatever the uncertainty.
    ends = np.multiply(seen.ends, shift, out=np.zeros_like(seen.ends), where=seen.ends != 0)
    end = np.where(rests, last, np.fmin(ends, after))
    return np.maximum(begin, seen.times), end


def _level_uncertainty(
    levels: Float[np.ndarray, " level"],
    begin: Float[np.ndarray, " jump"],
    end: Float[np.ndarray, " jump"],
    curve: xr.Dataset,
) -> Float[np.ndarray, " jump"]:
    drops = -np.diff(levels) / levels[0]
    beside = np.minimum(drops, np.append(drops[1:], np.inf))
    # The loss decreases, so its largest distance from a level is at either end of the range.
    here, rougher = (
        np.stack([np.interp(moment, curve["time"], curve[name]) for moment in (begin, end)]) / levels[0]
        for name in ("loss", "rougher_loss")
    )
    off, between = np.abs(levels[1:] / levels[0] - here), np.abs(here - rougher)
    allowed = _MARGIN * off.max(axis=0) + _POINT * (between.max(axis=0) + curve.attrs["error"])
    rough = ~(allowed <= _ROUGH * beside)
    return np.where(rough, np.inf, np.maximum(allowed, np.minimum(_LEVEL, _ROUGH * beside)))


def _warned(staircase: xr.Dataset, sentence: str) -> xr.Dataset:
    warnings = [*staircase.attrs.get("warnings", []), sentence]
    return staircase.assign_attrs(warnings=warnings)
