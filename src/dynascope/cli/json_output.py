"""The JSON output of each command."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Rooms load their modules lazily, so that mistyped commands are reported immediately.
from dynascope import results as records
from dynascope.results import staircase_names as names
from dynascope.results.repeated_sentences import numbered

if TYPE_CHECKING:
    import xarray as xr

    from dynascope.protocols import Learnable
    from dynascope.results import Quantity, Result, StaircaseView
    from dynascope.results.staircase_view import Jump, SeenJump
    from dynascope.results.tree import AnyResult
    from dynascope.studies import Study

__all__ = ["prediction_answer", "study_answer"]


def prediction_answer(
    tree: AnyResult, *, seconds: float, record: Path | None, task: Learnable | None = None
) -> dict[str, Any]:
    """Return the JSON output of `predict`: the predicted staircase and the result of the check.

    Non-finite numbers are replaced by None; a warning lists them.

    Args:
        tree: The prediction or comparison.
        seconds: The run time.
        record: Path of the saved record.
        task: The task; if given, the output describes each of its columns.
    """
    view = records.from_tree(tree)
    staircase, predicted = view.staircase, view.predicted
    assert predicted is not None
    shown = ("theory", "theory_name", "theory_choice", "network", "scale", "convention", names.INITIAL_LOSS)
    rows = [] if staircase is None else staircase.rows
    answer = {
        **{name: predicted.attrs[name] for name in shown if name in predicted.attrs},
        "data": _data(predicted.attrs, task),
        "jumps": [_jump(jump, predicted.isel(jump=k)) for k, jump in enumerate(rows)],
        "warnings": _warnings(view),
        "curve": _curve(staircase) if staircase is not None else _exact_curve(predicted),
        "check": None if view.observed is None else _check(rows, staircase, view),
        "seconds": round(seconds, 3),
        "record": None if record is None else str(record),
        "version": view.provenance.version,
    }
    if staircase is not None and staircase.over_seeds:
        answer["seeds"] = _over_seeds(staircase)
    return _finite(answer)


def study_answer(study: Study, tree: AnyResult, *, seconds: float, record: Path | None) -> dict[str, Any]:
    """Return the JSON output of `run`: errors, claims and verdict."""
    view = records.from_tree(tree)
    claims = [each for each in view.claims.values() if each.decides]
    return _finite(
        {
            "study": study.name,
            "parameters": dataclasses.asdict(study),
            "agreement": _plain(view.quantities),
            "checks": _plain(view.checks),
            "claims": {each.name: each.outcome for each in claims},
            "undecided": {each.name: each.why_undecided for each in claims if each.why_undecided},
            **_verdict(view),
            "seconds": round(seconds, 3),
            "record": None if record is None else str(record),
            "version": view.provenance.version,
            "warnings": _warnings(view),
        }
    )


def _data(attributes: Mapping[Any, Any], task: Learnable | None) -> dict[str, Any]:
    """Return the data and the preprocessing steps."""
    known = {name: attributes.get(name) for name in ("task", "samples", "input_dimension", "output_dimension")}
    described = {**known, "done": list(attributes.get("description", []))}
    for side in ("inputs", "targets"):
        named = getattr(task, f"{'feature' if side == 'inputs' else 'target'}_names", None)
        if named is None:
            continue
        described[side] = [{"name": name} for name in named]
        # A value x of the task is shift + x / factor in the units of the data.
        moved = getattr(getattr(task, "transform", None), side, None)
        if moved is not None and moved.matrix.ndim == 1 and len(moved.matrix) == len(named):
            pairs = zip(described[side], moved.shift.tolist(), moved.matrix.tolist(), strict=True)
            described[side] = [{**each, "shift": shift, "factor": factor} for each, shift, factor in pairs]
    return described


def _jump(jump: Jump, record: xr.Dataset) -> dict[str, Any]:
    steps = {"step": jump.step, "epoch": jump.epoch}
    return {
        "jump": jump.number,
        names.ACCELERATED_TIME: jump.accelerated_time,
        "time": jump.time,
        **{name: value for name, value in steps.items() if not math.isnan(value)},
        names.LOSS_BEFORE: jump.loss_before,
        names.LOSS_AFTER: jump.loss_after,
        names.LEARNED: _learned(jump, record),
        names.SLOW: jump.slow,
        names.REASON: jump.reason,
    }


def _learned(jump: Jump, record: xr.Dataset) -> dict[str, Any]:
    learned: dict[str, Any] = {"description": jump.learned}
    if "coefficient" in record:
        coefficients, features = record["coefficient"].to_numpy().tolist(), record["feature"].to_numpy().tolist()
        active = [i for i, coefficient in enumerate(coefficients) if coefficient != 0]
        learned["active"] = active
        learned["features"] = [features[i] for i in active]
        learned["coefficients"] = [coefficients[i] for i in active]
    if "singular_value" in record:
        learned["rank"] = jump.number
        learned["singular_value"] = float(record["singular_value"])
    return learned


def _check(rows: Sequence[Jump], staircase: StaircaseView | None, view: Result) -> dict[str, Any]:
    """Return the result of the check; jumps are omitted if the theory predicts the loss over time."""
    unit = math.nan if staircase is None else staircase.unit()
    jumps = [_seen(jump.number, jump.seen, unit) for jump in rows if jump.seen is not None]
    judged = sum(jump["status"] == names.JUDGED for jump in jumps)
    found = {"agreement": _plain(view.quantities), "checks": _plain(view.checks)}
    return {"jumps": jumps, "judged": judged, "of": len(jumps), **found, **_verdict(view)}


def _plain(quantities: Mapping[str, Quantity]) -> dict[str, Any]:
    return {name: each.to_plain() | ({} if each.judged else {"agrees": None}) for name, each in quantities.items()}


def _verdict(view: Result) -> dict[str, Any]:
    """Return the verdict, its sentence, and the scored share of the decrease in the loss (None if unknown)."""
    assert view.verdict is not None
    outcome, sentence, share = dataclasses.astuple(view.verdict)
    return {"verdict": outcome, "verdict_sentence": sentence, "share_of_fall": share}


def _curve(staircase: StaircaseView) -> dict[str, Any] | None:
    """Return the loss curve at this scale, or None if there is none."""
    curve = staircase.curve
    if curve is None:
        return None
    times, error = curve["time"].to_numpy().tolist(), float(staircase.record.attrs["curve_error"])
    return {"time": times, names.CURVE_LOSS: curve.to_numpy().tolist(), "error": error}


def _exact_curve(predicted: xr.Dataset) -> dict[str, Any]:
    """Return the loss curve of an exact theory."""
    clocks = {"time": "time", "step": "training_step", "epoch": "training_epoch", names.CURVE_LOSS: names.CURVE_LOSS}
    columns = {
        name: predicted[variable].to_numpy().tolist() for name, variable in clocks.items() if variable in predicted
    }
    return columns | {"error": 0.0}


def _over_seeds(staircase: StaircaseView) -> dict[str, Any]:
    """Return medians and ranges over many draws of the initial weights."""
    jumps = [
        {
            "jump": jump.number,
            "seen": jump.seen,
            "time": {"median": jump.median, "earliest": jump.earliest, "latest": jump.latest},
            names.LEARNED: jump.learned,
        }
        for jump in staircase.over_seeds
    ]
    ends = {end: staircase.record.get(f"{names.CURVE_LOSS}_{end}") for end in ("low", "median", "high")}
    curve = {end: values.to_numpy().tolist() for end, values in ends.items() if values is not None}
    return {"count": staircase.seeds, "jumps": jumps, "curve": curve or None}


def _seen(number: int, seen: SeenJump, unit: float) -> dict[str, Any]:
    answer = {
        "jump": number,
        "time": seen.time,
        names.ACCELERATED_TIME: seen.time / unit,
        names.LOSS_BEFORE: seen.loss_before,
        names.LOSS_AFTER: seen.loss_after,
        names.STATUS: seen.status,
    }
    return answer if seen.slope is None else {**answer, names.SLOPE: seen.slope}


def _warnings(view: Result) -> list[str]:
    """Return the warnings of the theory, and a warning for each quantity whose error is undefined."""
    return view.warnings + [
        f"The error of the {name.replace('_', ' ')} is undefined: "
        + ("the run does not contain the predicted event." if each.judged else "there is nothing to compare.")
        for name, each in view.quantities.items()
        if not math.isfinite(each.error)
    ]


def _finite(answer: dict[str, Any]) -> dict[str, Any]:
    """Replace non-finite numbers with None and add a warning that lists them."""
    lost: dict[str, list[int]] = {}

    def cleaned(value: Any, place: str, entry: int) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            lost.setdefault(place, []).append(entry)
            return None
        if isinstance(value, dict):
            return {key: cleaned(each, f"{place}.{key}" if place else str(key), entry) for key, each in value.items()}
        if isinstance(value, list | tuple):
            inner = "[]" in place  # entries of nested lists are listed one by one
            return [
                cleaned(each, f"{place}[{i}]" if inner else f"{place}[]", entry if inner else i)
                for i, each in enumerate(value)
            ]
        return value

    result = cleaned(answer, "", 0)
    if lost:
        places = [place.replace("[]", f"[{numbered(entries)}]") for place, entries in lost.items()]
        result["warnings"].append(f"Some values are undefined or were not reached during the run: {', '.join(places)}.")
    return result
