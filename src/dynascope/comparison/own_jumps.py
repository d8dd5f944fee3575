"""Jumps in a loss curve of one's own: those are judged that its logging, its noise and its learning rate tell."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import xarray as xr

from dynascope.comparison.jumps import compare_staircases, crossing_times
from dynascope.comparison.loss_convention import LOSSES, ratio_names
from dynascope.comparison.steady_curve import WINDOW, SteadyCurve, steady_curve
from dynascope.record import StaircaseView
from dynascope.record import staircase_names as names
from dynascope.record.numbers import number
from dynascope.record.staircase import with_slow_jumps, with_tolerances

__all__ = ["UNCLEAR", "compare_own_staircase"]

UNCLEAR = "unclear"
# A larger error would let half the true learning rate pass, or twice it: (1 + e)/2 − 1 ≥ −e from e = 1/3 on.
_MOST = 1 / 3
_VAGUE = "its time is off by more than a third, which theory allows here and a wrong learning rate explains too"
_APART = 3  # logged points between two jumps that show a plateau there
_HIDDEN = 8.0  # a drop that is fewer standard errors of the curve is not timed
_LATE = 0.05  # share of their time by which jumps come late under large steps, from which on it is told
_FIRST = 0.02  # error of the first loss


def compare_own_staircase(
    observed: xr.Dataset, predicted: xr.Dataset, *, tolerance: tuple[float, str], chosen: bool = False
) -> tuple[xr.Dataset, xr.Dataset, dict[str, float]]:
    """The residual of a staircase against a curve of one's own, and the errors of its quantities.

    A jump is left unjudged (`unclear`) where the curve was logged too rarely to time it, where noise hides it, and
    where its time is off by more than a third though theory allows it, since a wrong learning rate explains that too.
    What logging and noise add to the error of times is added to their tolerance.

    Args:
        observed: As of `own_curve`.
        predicted: A staircase in the units of that curve.
        tolerance: Relative error that times may have, and why.
        chosen: Whether the user chose it, so that it stays.

    Returns:
        The prediction with that tolerance and with warnings of what the curve does not tell; the residual and the
        errors, as of `jumps.compare_staircases`.
    """
    staircase = StaircaseView(predicted)
    time, loss = observed["time"].to_numpy(), observed["loss"].to_numpy()
    curve = steady_curve(time, loss, float(staircase.times[0]) / 2 if len(staircase.times) else 0.0)
    found = crossing_times(time, curve.loss, (staircase.levels[1:] + staircase.levels[:-1]) / 2)
    gaps, falls = _around(curve, found)
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where many points follow a fall, a line between two of them tells when the middle is passed.
        blur = gaps / found * np.minimum(falls / -np.diff(staircase.levels), 1.0) + WINDOW * curve.noisy
        error = np.abs(staircase.times / found - 1)
    allowed, reason = tolerance
    units = observed["time"].attrs["units"].replace("optimiser ", "")
    reasons = _unclear(staircase, curve, found, gaps, blur, allowed, units)
    clear = blur[~np.isnan(blur) & np.array([not each for each in reasons]) & ~staircase.slow]
    added = float(clear.max(initial=0.0))
    if not chosen:
        allowed += added
        if added >= 0.005:
            reason += f"; and this curve tells times to {100 * added:.2g} %"
        between = (error > _MOST) & (error <= allowed)
        reasons = [each or _VAGUE * bool(odd) for each, odd in zip(reasons, between, strict=True)]
    marked = with_slow_jumps(
        predicted, [each or ("slow" if slow else "") for each, slow in zip(reasons, staircase.slow, strict=True)]
    )
    residual, errors = compare_staircases(
        observed.assign(loss=("time", curve.loss)), marked, at_other_scale=None, lateness=allowed
    )
    unclear = np.array([bool(each) for each in reasons], dtype=bool) & ~staircase.slow
    status = np.where(unclear, UNCLEAR, residual[names.STATUS].to_numpy())
    residual = residual.assign({names.STATUS: ("jump", status.astype(str))})
    if curve.noisy:
        errors[names.EXTRA_JUMPS] = np.nan
        if len(staircase.times) and 3 * curve.error(0.0) > _FIRST * loss[0]:
            errors[names.INITIAL_LOSS] = np.nan
    said = [
        *json.loads(predicted.attrs.get("warnings", "[]")),
        *_about_jumps(reasons, staircase),
        *_about_curve(observed, predicted, curve, errors[names.INITIAL_LOSS]),
    ]
    predicted = predicted.assign_attrs(warnings=json.dumps(said, ensure_ascii=False))
    return with_tolerances(predicted, jump_time=(float(allowed), reason)), residual, errors


def _around(curve: SteadyCurve, found: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How long from the last point before each jump to the first after, infinite where there is none; and its fall."""
    after = np.searchsorted(curve.time, np.nan_to_num(found, nan=curve.time[-1]))
    gaps = np.where(after > 0, curve.time[after] - curve.time[after - 1], np.inf)
    falls = np.where(after > 0, curve.loss[after - 1] - curve.loss[after], np.inf)
    return np.where(np.isnan(found), np.nan, gaps), falls


def _unclear(
    staircase: StaircaseView,
    curve: SteadyCurve,
    found: np.ndarray,
    gaps: np.ndarray,
    blur: np.ndarray,
    allowed: float,
    units: str,
) -> list[str]:
    """Why the curve does not tell the time of each jump; empty where it does."""
    reasons = []
    for j, drop in enumerate(-np.diff(staircase.levels)):
        reason = ""
        if np.isinf(gaps[j]):
            reason = "the curve begins after it"
        elif blur[j] > allowed / 2:
            reason = f"the curve was logged every {number(gaps[j], 3)} {units} there, too rarely to time it"
        elif j and found[j] - found[j - 1] < _APART * gaps[j]:
            reason = f"the curve was logged every {number(gaps[j], 3)} {units} there, too rarely to part it"
        elif curve.noisy and _HIDDEN * curve.error(staircase.times[j] if np.isnan(found[j]) else found[j]) > drop:
            reason = "the noise of the curve hides it"
        reasons.append(reason)
    return reasons


def _about_jumps(reasons: list[str], staircase: StaircaseView) -> Iterator[str]:
    """One sentence for each reason, with the jumps that it holds of."""
    told: dict[str, list[int]] = {}
    for number_, (reason, slow) in enumerate(zip(reasons, staircase.slow, strict=True), start=1):
        if reason and not slow:
            told.setdefault(reason, []).append(number_)
    for reason, jumps in told.items():
        listed = ", ".join(map(str, jumps))
        subject = f"Jump {listed} is" if len(jumps) == 1 else f"Jumps {listed} are"
        yield f"{subject} not judged: {reason}."


def _about_curve(observed: xr.Dataset, predicted: xr.Dataset, curve: SteadyCurve, first_error: float) -> Iterator[str]:
    """What is odd about a curve: another convention or other data, noise, steps that are too large."""
    staircase, loss = StaircaseView(predicted), observed.attrs["loss_convention"]
    if first_error > _FIRST:
        ratio = float(curve.loss[0] / staircase.levels[0])
        others = ratio_names(ratio, loss, predicted.attrs, _FIRST)
        told = f"The first loss is {number(ratio, 3)} times that predicted"
        if others:
            is_it = " or ".join(f"loss={each!r} ({LOSSES[each].formula})" for each in others)
            yield f"{told}: is it {is_it}, and not loss={loss!r}?"
        else:
            yield f"{told}: is that for the arrays trained on, centred and scaled alike, and is the start small?"
    if curve.noisy:
        yield (
            f"The loss rises by up to {100 * curve.rise:.2g} % of its start, as it does from minibatches or from a "
            "large learning rate. Its best falling fit is judged, and further plateaus are not looked for. Theory is "
            "about small steps on all samples."
        )
    late = _growth(staircase) * observed.attrs["largest_step"] / 2
    if late > _LATE:
        yield (
            f"The learning rate is large: weights grow by {200 * late:.0f} % in one step, so jumps come about "
            f"{100 * late:.0f} % later than under gradient flow. Train with a smaller one to tell more."
        )


def _growth(staircase: StaircaseView) -> float:
    """The fastest rate at which small weights grow, where they grow exponentially."""
    record = staircase.record
    if not staircase.exponential or not len(staircase.times):
        return 0.0
    rates = record["growth_rate"].to_numpy() if "growth_rate" in record else 1 / staircase.accelerated_times
    return float(np.nanmax(np.where(np.isfinite(rates), rates, np.nan), initial=0.0))
