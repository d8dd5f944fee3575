"""Compare an observation with a prediction, and reach a verdict."""

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
from dynascope.comparison.jumps import (
    ESTIMATED,
    compare_curve,
    compare_staircases,
    curve_discriminates,
    later_descent,
)
from dynascope.comparison.undecided import leave_undecided
from dynascope.comparison.user_curves.judging import (
    bare_losses,
    compare_with_staircase,
    other_initial_weights,
    with_step_tolerances,
)
from dynascope.comparison.user_curves.units import in_units_of, is_user_curve, with_clock_of
from dynascope.comparison.verdict import decided, only_the_curve, quantity_rows, verdict_sentence
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
    predicted: Annotated[Prediction | xr.Dataset, "the result of observe first, then the result of predict"],
    *,
    at_other_scale: Observation | xr.Dataset | None = None,
    along: str | Sequence[str] = "time",
    tolerance: Mapping[str, float] | None = None,
    checks: Collection[str] = (),
    claims: Collection[str] = (),
) -> Comparison:
    """Compare an observed record with a predicted one and decide whether they agree.

    Staircases (loss curves with plateaus and jumps): the observed time of a jump is the first time at which the loss
    passes the midpoint of the predicted levels before and after it. The comparison covers the initial loss, the times
    (relative to the observed times), the level of each plateau (relative to the initial loss) and the number of jumps.
    A predicted jump is missing if the run lasts long enough but never reaches it. It is also missing if it merges with
    its neighbour although theory predicts a long plateau between them. An observed plateau is extra if theory does not
    predict its level; plateaus after the end of the predicted loss curve are not counted. Slow jumps, whose times are
    uncertain, and jumps predicted after the end of the run are shown but not scored; the `status` of each jump is in
    the residual. If the prediction contains an estimated error of each time and level at its scale, these estimates are
    the tolerances. If the prediction contains a loss curve at its scale, the observed loss is also compared with this
    curve, by the mean distance over log time (`curve`). If the run was integrated in the same variables as the
    predicted curve, the comparison with the curve is only a check.

    Curves: every variable over `time` in both records is compared over the shared range of times. The errors are the
    relative L2 error, and the largest error divided by the largest predicted value. `along` selects dimensions other
    than time. Scalars are compared if the prediction states their tolerance.

    Your loss curve, read by `user_curve`: the results are in the units of the curve. Jumps that the curve does not
    resolve, because it is noisy or was logged too rarely, are `unclear` and not scored. A noisy curve is not searched
    for extra plateaus. If the first loss is above the loss of the initial weights given to `predict`, the verdict is
    "undecided": these weights are not those of step 0 (for example, because the model was already trained), or the data
    or `loss` do not match the run.

    The verdict depends on the compared quantities and on statistical claims about networks. Identities, which hold in
    every run, are checks: they are listed separately and provide no evidence for the theory. A violated identity points
    to an error in the measurement, so the verdict is undecided. The verdict is also undecided if nothing could be
    scored, or if more than half of the claims are undecided and nothing disagrees. If the verdict is agreement but less
    than half of the decrease in the loss was scored, the sentence of the verdict states the share.

    Args:
        observed: The result of `observe`, or the record of a run with `loss` over `time`, or over `step` with the times
            of the steps. For losses that you logged yourself, `user_curve(losses, learning_rate=0.05, loss="mse")`.
        predicted: The result of `predict`, or the record of a theory, whose attributes may state `<quantity>_tolerance`
            and `<quantity>_tolerance_reason`.
        at_other_scale: A run of the same network from another initial scale, to also compare the slope of each jump
            time against `results.time_unit` (dt/dlog(1/scale) for degree 2).
        along: The dimension or dimensions along which curves are compared; variables with none of these dimensions are
            not compared.
        tolerance: Tolerances by quantity, which replace those of the theory.
        checks: Names of the compared quantities that are identities.
        claims: Names of the claims in the observed record (`report_claims`, `report_effects`) on which the verdict also
            depends.

    Returns:
        The comparison. It contains the records `predicted`, `observed` and `residual`; the `verdict` with its sentence
        and the scored share of the decrease in the loss; the error, tolerance, reason and agreement of each of the
        `quantities` and `checks`; and all `claims` of the observed record.

    Raises:
        InputError: The records have nothing in common, or a tolerance, check or claim names an unknown quantity.

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
            f"{name} has type {type(side).__name__}",
            argument=name,
            value=type(side).__name__,
            remedy="give the result of observe or user_curve(losses, …) first, and then the result of predict",
        )
    require(
        not (isinstance(run, str | PathLike) and str(run).endswith(".zip")),
        f"observed is {str(run)!r}, the path of a saved result",
        argument="observed",
        value=str(run),
        remedy="load the result first with dynascope.load",
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
            "at_other_scale is not supported for a logged loss curve",
            argument="at_other_scale",
            remedy="omit at_other_scale, and compare each curve with a prediction at its scale",
        )
        other = _along_time(validate_record(other))
    warnings = _differences(run, theory)
    if is_staircase(theory) and (later := later_descent(run, theory)):
        warnings.append(later)
    if warnings:
        theory = theory.assign_attrs(warnings=[*theory.attrs.get("warnings", []), *warnings])
    dimensions = (along,) if isinstance(along, str) else tuple(along)
    known = sorted({*map(str, run.dims), *map(str, theory.dims)})
    for name in dimensions:
        require(
            name in known or along == "time",
            f"along is {name!r}, but neither record has this dimension",
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
    """Compare two records; `other` is the run from another scale."""
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
                known = names.CURVE in chosen or curve_discriminates(observed, predicted, allowed)
                errors[names.CURVE] = compare_curve(observed, predicted) if known else np.nan
                twice = observed.attrs.get("variables") == predicted.attrs.get("curve_variables")
                if twice and _judged(names.CURVE, errors[names.CURVE], predicted, chosen).agrees:
                    # Both integrate the same equations, so their agreement is no evidence for the theory.
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
        # If no jump is scored, the absence of errors is no evidence for the theory.
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
    rows, of_identities = quantity_rows(found, sides), quantity_rows(checked, sides)
    share = share_of_fall(sides, jumps=not only_the_curve(rows, sides.staircase))
    sentence = verdict_sentence(
        rows,
        sides.staircase,
        claims=deciding,
        reported=further,
        checks=of_identities,
        share=share,
        unscored={names.LEVEL: why} if (why := residual.attrs.get(names.LEVEL_UNSCORED)) else {},
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
    """Warn if the records state different data or scales for the run and the prediction."""
    found, run, theory = [], observed.attrs, predicted.attrs
    if "data_hash" in run and "data_hash" in theory and run["data_hash"] != theory["data_hash"]:
        found.append("The run and the prediction use different data; pass the same task to observe and predict.")
    if is_staircase(predicted) and "scale" in run and "scale" in theory:
        scales = float(run["scale"]), float(theory["scale"])
        # A module with weights has scale 1 in the run and its measured scale in the prediction.
        if scales[0] != 1 and not math.isclose(*scales, rel_tol=1e-6):
            found.append("The run starts from scale {:g}, but the prediction is for scale {:g}.".format(*scales))
    return found


def _along_time(record: xr.Dataset) -> xr.Dataset:
    """Replace the axis `step` of a descent record with the times of the steps; return other records unchanged."""
    steps = "time" in record and record["time"].dims == ("step",)
    return record.swap_dims(step="time") if steps else record


_DEFAULTS = {
    names.INITIAL_LOSS: (0.02, "a network with small weights starts near the loss of the zero function"),
    names.JUMP_TIME: (0.12, "neighbouring jumps change each other's times by about a tenth at usual scales"),
    names.LEVEL: (0.02, "the loss leaves a plateau before fully converging to its level"),
    names.MISSING_JUMPS: (0.0, "every predicted jump must be observed"),
    names.EXTRA_JUMPS: (0.0, "no other plateau may be observed"),
    names.SLOPE: (0.05, "neighbouring jumps still overlap at finite scale"),
}
_CURVE = (0.01, "the default of one percent")


def _require_compared(argument: str, given: Collection[str], errors: Mapping[str, float]) -> None:
    unknown = sorted(set(given) - set(errors))
    require(
        not unknown,
        f"{argument} contains {', '.join(unknown)}, but no such quantity is compared",
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
