"""Compare: observation and prediction on the same axes, with a verdict."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping, Sequence
from os import PathLike
from typing import Annotated, Any

import numpy as np
import xarray as xr

from dynascope.comparison.coverage import share_of_fall
from dynascope.comparison.curves import compare_curves
from dynascope.comparison.jumps import ESTIMATED, compare_curve, compare_staircases, curve_tells
from dynascope.comparison.undecided import leave_undecided
from dynascope.comparison.user_curves.judging import (
    bare_losses,
    compare_with_staircase,
    other_initial_weights,
    with_step_tolerances,
)
from dynascope.comparison.user_curves.units import in_units_of, is_user_curve, with_clock_of
from dynascope.comparison.verdict import decided, quantity_rows, verdict_sentence
from dynascope.results import (
    CONVENTION,
    Comparison,
    Observation,
    Prediction,
    Quantity,
    Result,
    Verdict,
    name_all,
    names_of,
    validate_record,
)
from dynascope.results import staircase_names as names
from dynascope.results.claim import reported_claims
from dynascope.results.judgement import Outcome
from dynascope.results.staircase_view import StaircaseView, is_staircase
from dynascope.validation import require, require_kind
from dynascope.validation.bounded_scalars import NonNegativeFloat

__all__ = ["compare"]


def compare(
    observed: Any,
    predicted: Annotated[Prediction | xr.Dataset, "what observe returns, and then what predict returns"],
    *,
    at_other_scale: Observation | xr.Dataset | None = None,
    along: str | Sequence[str] = "time",
    tolerance: Mapping[str, float] | None = None,
    checks: Collection[str] = (),
    claims: Collection[str] = (),
) -> Comparison:
    """Put an observed and a predicted record side by side and judge whether they agree.

    Staircases: each predicted jump is matched with the first time at which the observed loss passes the middle between
    the two plateaus. Compared are the initial loss, the times (relative), the loss on each plateau (over the initial
    loss), and the count: a predicted jump that is due and never reached, or that does not separate from its neighbour
    although the theory puts a long plateau between them, is missing; an observed plateau at no predicted level is
    extra, up to the time to which the prediction follows the loss at its scale. Jumps that the theory marks slow, and
    those that were not due when the run ended, are shown and not judged: the residual has the `status` of each. Where
    the prediction says how far each time and level may be off at its scale, each is held against that. A prediction of
    the loss over time at this scale is compared as `curve`, in mean distance over log time; that it fits a run which
    was followed in the same variables is a check.

    Curves: every variable over `time` that both records hold is compared on the times they share, in relative L2 norm
    and in largest error over the largest predicted value. Other dimensions than time may be named by `along`.
    Numbers without a dimension are compared where the prediction carries their tolerance.

    Your loss curve, as `user_curve` reads it: everything is shown in its units. Jumps whose time it does not tell,
    since it was logged rarely or is noisy, are `unclear` and not judged, and further plateaus are not looked for in a
    noisy curve. Where its first loss is above that of the weights from which you predicted, the verdict is
    "undecided": the weights are not those of step 0, as after `predict(data, model)` on a trained model, or the data or
    `loss` differ.

    The verdict is on what is claimed: quantities of the theory, and claims that hold of networks only statistically.
    Identities, which hold of every run, are checks: they are shown apart and support nothing, and where one fails the
    fault is in the measurement and nothing is concluded. The verdict is undecided too where nothing could be judged, or
    where more than half of the claims are undecided and nothing disagrees. An agreement that judges less than half of
    the fall of the loss says so in its sentence.

    Args:
        observed: What `observe` returns, or the record of a run, with `loss` over `time`, or over `step` with the times
            of the steps. Or the losses that you logged while you trained, as a record:
            `user_curve(losses, learning_rate=0.05, loss="mse")`.
        predicted: What `predict` returns, or the record of a theory. Its attributes may carry `<quantity>_tolerance`
            and, with it, `<quantity>_tolerance_reason`.
        at_other_scale: The run again from another initialisation scale; adds the slopes of the jump
            times against the unit of accelerated time (dt/dlog(1/scale) for degree 2).
        along: For curves, the dimension, or dimensions, along which they run; variables that have none of them are not
            compared.
        tolerance: Tolerances by quantity that replace those of the theory.
        checks: Names of the compared quantities that are identities.
        claims: Names of the claims on which the observed record reports (`report_claims`, `report_effects`) and by
            which the verdict is decided besides.

    Returns:
        The comparison: the records `predicted`, `observed` and `residual`; the `verdict` with its sentence and the
        share of the fall of the loss that was judged; for each of the `quantities` its error, its tolerance with the
        reason, and whether it agrees; the same of `checks`; and all `claims` on which the observed record
        reports.

    Raises:
        InputError: The records have nothing in common, or a tolerance, check or claim names what is not compared.

    Example:
        >>> from dynascope.results import make_record
        >>> time = [0.0, 1.0, 2.0]
        >>> theory = make_record({"loss": (["time"], [1.0, 0.50, 0.25])}, {"time": time})
        >>> run = make_record({"loss": (["time"], [1.0, 0.51, 0.25])}, {"time": time})
        >>> compare(run, theory, tolerance={"loss": 0.02, "loss_maximum": 0.02}).verdict.outcome
        'agree'
    """
    theory, other = _record_of(predicted, Prediction), _record_of(at_other_scale, Observation)
    run = _record_of(observed, Observation)
    for name, side, valid in (
        ("observed", observed, run is not None and not isinstance(run, Result)),
        ("predicted", predicted, isinstance(theory, xr.Dataset)),
    ):
        require(
            valid,
            f"{name} is a {type(side).__name__}",
            argument=name,
            value=type(side).__name__,
            remedy="give what observe returns, or user_curve(losses, …), and then what predict returns",
        )
    require(
        not (isinstance(run, str | PathLike) and str(run).endswith(".zip")),
        f"observed is the path of a saved result, {str(run)!r}",
        argument="observed",
        value=str(run),
        remedy="read it by results.load first",
    )
    if not isinstance(run, xr.Dataset):
        raise bare_losses(observed, theory)
    run = _along_time(validate_record(run))
    validate_record(theory)
    from_user, doubt = is_user_curve(run), ""
    if from_user:
        theory = in_units_of(theory, run)
        doubt = other_initial_weights(run, theory)
    if other is not None:
        require(
            not from_user,
            "slopes are not taken of your curve",
            argument="at_other_scale",
            remedy="compare each with its own prediction",
        )
        other = _along_time(validate_record(other))
    if warnings := _differences(run, theory):
        theory = theory.assign_attrs(warnings=[*theory.attrs.get("warnings", []), *warnings])
    dimensions = (along,) if isinstance(along, str) else tuple(along)
    known = sorted({*map(str, run.dims), *map(str, theory.dims)})
    for name in dimensions:
        require(
            name in known or along == "time",
            f"along names {name!r}, which neither record has",
            argument="along",
            value=name,
            remedy=f"choose from {', '.join(known)}",
        )
    compared = _compare_records(run, theory, other, along=dimensions, tolerance=tolerance, checks=checks, claims=claims)
    return leave_undecided(compared, doubt) if doubt else compared


def _compare_records(
    observed: xr.Dataset,
    predicted: xr.Dataset,
    other: xr.Dataset | None,
    *,
    along: tuple[str, ...],
    tolerance: Mapping[str, float] | None,
    checks: Collection[str],
    claims: Collection[str],
) -> Comparison:
    """Compare two records along the same axes; `other` is the run from another scale."""
    chosen, checks, from_user = dict(tolerance or {}), set(checks), is_user_curve(observed)
    for name, limit in chosen.items():
        require_kind(NonNegativeFloat, **{f"tolerance[{name!r}]": limit})
    estimated: dict[str, float] = {}
    if is_staircase(predicted):
        times = _judged(names.JUMP_TIME, 0.0, predicted, chosen)
        if from_user:
            predicted, residual, errors, estimated = compare_with_staircase(
                observed, predicted, tolerance=(times.tolerance, times.reason), chosen=names.JUMP_TIME in chosen
            )
        else:
            common = names.JUMP_TIME in chosen or names.TIME_UNCERTAINTY not in predicted
            limit = times.tolerance if common else None
            residual, errors, estimated = compare_staircases(observed, predicted, other, tolerance=limit)
            if StaircaseView(predicted).curve is not None:
                allowed = _judged(names.CURVE, 0.0, predicted, chosen).tolerance
                known = names.CURVE in chosen or curve_tells(observed, predicted, allowed)
                errors[names.CURVE] = compare_curve(observed, predicted) if known else np.nan
                twice = observed.attrs.get("variables") == predicted.attrs.get("curve_variables")
                if twice and _judged(names.CURVE, errors[names.CURVE], predicted, chosen).agrees:
                    # The same equations followed twice: that they say the same supports nothing.
                    checks.add(names.CURVE)
    else:
        residual, errors = compare_curves(observed, predicted, along)
        if from_user:
            predicted, errors = with_step_tolerances(observed, predicted, errors)
    _require_compared("tolerance", chosen, errors)
    _require_compared("checks", checks, errors)
    found = {
        name: Quantity(error, estimated[name], ESTIMATED)
        if name in estimated and name not in chosen
        else _judged(name, error, predicted, chosen)
        for name, error in errors.items()
    }
    checked = {name: found.pop(name) for name in list(found) if name in checks}
    if is_staircase(predicted) and not (residual[names.STATUS] == names.JUDGED).any():
        # Where no jump is judged, that nothing is wrong with them supports nothing.
        found = {
            name: dataclasses.replace(each, error=np.nan) if each.agrees and name != names.CURVE else each
            for name, each in found.items()
        }
    residual.attrs.update({"convention": CONVENTION, "version": predicted.attrs["version"]})
    residual = name_all(residual, names_of(predicted, observed))
    if from_user:
        residual = with_clock_of(residual, observed)
        residual.attrs["convention"] = observed.attrs["convention"]
    alone = Prediction.of(predicted)
    both: dict[str, Any] = {"predicted": alone.record, "observed": name_all(observed), "residual": residual}
    sides, reported = Result(**both), reported_claims(both["observed"], claims)
    deciding: list[Outcome] = [each.outcome for each in reported.values() if each.decides]
    further: list[Outcome] = [each.outcome for each in reported.values() if not each.decides]
    rows, of_identities, share = quantity_rows(found, sides), quantity_rows(checked, sides), share_of_fall(sides)
    sentence = verdict_sentence(
        rows, sides.staircase, claims=deciding, reported=further, checks=of_identities, share=share
    )
    return Comparison(
        **both,
        title=alone.title,
        reference=alone.reference,
        provenance=alone.provenance,
        verdict=Verdict(decided(rows, deciding, of_identities), sentence, share),
        quantities=found,
        checks=checked,
        claims=reported,
    )


def _record_of(side: Any, kind: type[Prediction | Observation]) -> Any:
    return side.record if isinstance(side, kind) else side


def _differences(observed: xr.Dataset, predicted: xr.Dataset) -> list[str]:
    """Sentences on a run on other data, or from another scale, than the prediction is for, as far as both are known."""
    found, run, theory = [], observed.attrs, predicted.attrs
    if "data_hash" in run and "data_hash" in theory and run["data_hash"] != theory["data_hash"]:
        found.append("The run and the prediction are on different data: observe and predict the same task.")
    if is_staircase(predicted) and "scale" in run and "scale" in theory:
        scales = float(run["scale"]), float(theory["scale"])
        # A network that starts from its own weights has scale 1 in the run, and its measured scale in the prediction.
        if scales[0] != 1 and not math.isclose(*scales, rel_tol=1e-6):
            found.append("The run starts from scale {:g}, and the prediction is for scale {:g}.".format(*scales))
    return found


def _along_time(record: xr.Dataset) -> xr.Dataset:
    """The record of a descent with the times of its steps as the axis; any other as it is."""
    steps = "time" in record and record["time"].dims == ("step",)
    return record.swap_dims(step="time") if steps else record


_DEFAULTS = {
    names.INITIAL_LOSS: (0.02, "a small network starts at the loss of the zero function"),
    names.JUMP_TIME: (0.12, "times of neighbouring jumps shift each other by about a tenth at usual scales"),
    names.LEVEL: (0.02, "a plateau is left before it is quite reached"),
    names.MISSING_JUMPS: (0.0, "every predicted jump must be seen"),
    names.EXTRA_JUMPS: (0.0, "no other plateau may be seen"),
    names.SLOPE: (0.05, "neighbouring jumps still overlap at finite scale"),
}
_CURVE = (0.01, "one percent, unless the theory says otherwise")


def _require_compared(argument: str, given: Collection[str], errors: Mapping[str, float]) -> None:
    unknown = sorted(set(given) - set(errors))
    require(
        not unknown,
        f"{argument} names {', '.join(unknown)}, which is not compared here",
        argument=argument,
        value=unknown,
        remedy=f"choose from {', '.join(errors)}",
    )


def _judged(name: str, error: float, predicted: xr.Dataset, chosen: Mapping[str, float]) -> Quantity:
    if name in chosen:
        return Quantity(error, chosen[name], "chosen by the user")
    usual, reason = _DEFAULTS.get(name, _CURVE)
    return Quantity(
        error,
        float(predicted.attrs.get(f"{name}_tolerance", usual)),
        str(predicted.attrs.get(f"{name}_tolerance_reason", reason)),
    )
