"""What the command line says to machines: one plain object for each command."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from dynascope.record.clock import time_unit

if TYPE_CHECKING:
    from dynascope.studies import Study

__all__ = ["prediction_answer", "study_answer"]


def prediction_answer(tree: xr.DataTree, *, seconds: float, record: Path | None) -> dict[str, Any]:
    """The answer of `predict`: the staircase, and what the check found.

    Numbers that are not finite become None; a warning says which and why.
    """
    predicted = tree["predicted"].to_dataset()
    attributes = predicted.attrs
    answer = {
        "theory": attributes["theory"],
        "network": attributes["network"],
        "scale": attributes["scale"],
        "initial_loss": attributes["initial_loss"],
        "jumps": [_jump(predicted.isel(jump=k)) for k in range(predicted.sizes["jump"])],
        "warnings": _warnings(tree),
        "check": _check(tree) if "observed" in tree.children else None,
        "seconds": round(seconds, 3),
        "record": None if record is None else str(record),
        "version": attributes["version"],
    }
    return _finite(answer)


def study_answer(study: Study, tree: xr.DataTree, *, seconds: float, record: Path | None) -> dict[str, Any]:
    """The answer of `run`: how far theory and experiment agree."""
    return _finite(
        {
            "study": study.name,
            "parameters": dataclasses.asdict(study),
            "agreement": json.loads(tree.attrs["agreement"]),
            "verdict": tree.attrs["verdict"],
            "seconds": round(seconds, 3),
            "record": None if record is None else str(record),
            "version": tree.attrs["version"],
            "warnings": _warnings(tree),
        }
    )


def _jump(jump: xr.Dataset) -> dict[str, Any]:
    number = int(jump["jump"])
    return {
        "jump": number,
        "accelerated_time": float(jump["accelerated_time"]),
        "time": float(jump["jump_time"]),
        "loss_before": float(jump["loss_before"]),
        "loss_after": float(jump["loss_after"]),
        "learned": _learned(jump, number),
        "slow": bool(jump["slow"]),
        "reason": str(jump["reason"].item()),
    }


def _learned(jump: xr.Dataset, number: int) -> dict[str, Any]:
    learned: dict[str, Any] = {"description": str(jump["learned"].item())}
    if "coefficient" in jump:
        coefficients = jump["coefficient"].to_numpy()
        active = np.flatnonzero(coefficients)
        learned["active"] = active.tolist()
        learned["features"] = jump["feature"].to_numpy()[active].tolist()
        learned["coefficients"] = coefficients[active].tolist()
    if "singular_value" in jump:
        learned["rank"] = number
        learned["singular_value"] = float(jump["singular_value"])
    return learned


def _check(tree: xr.DataTree) -> dict[str, Any]:
    residual = tree["residual"].to_dataset()
    attributes = tree["predicted"].attrs
    unit = time_unit(
        float(attributes["scale"]),
        degree=int(attributes.get("degree", 2)),
        normalised=bool(attributes.get("normalised", 0)),
    )
    jumps = []
    for k in range(residual.sizes["jump"]):
        jump = residual.isel(jump=k)
        time = float(jump["observed_jump_time"])
        seen = {
            "jump": int(jump["jump"]),
            "time": time,
            "accelerated_time": time / unit,
            "loss_before": float(jump["observed_loss_before"]),
            "loss_after": float(jump["observed_loss_after"]),
        }
        if "slope" in jump:
            seen["slope"] = float(jump["slope"])
        jumps.append(seen)
    return {"jumps": jumps, "agreement": json.loads(tree.attrs["agreement"]), "verdict": tree.attrs["verdict"]}


def _warnings(tree: xr.DataTree) -> list[str]:
    """What the theory warns of, the jumps that are not judged, and the quantities whose error is not a number."""
    predicted = tree["predicted"].to_dataset()
    warnings = json.loads(predicted.attrs.get("warnings", "[]"))
    if "reason" in predicted:
        warnings += [
            f"Jump {number} approaches its predicted time slowly and is not judged: {reason}."
            for number, reason in zip(predicted["jump"].to_numpy(), predicted["reason"].to_numpy(), strict=True)
            if reason
        ]
    return warnings + [
        f"The {name.replace('_', ' ')} has no error: "
        + ("nothing could be compared." if each["agrees"] else "what is predicted was not observed.")
        for name, each in json.loads(tree.attrs.get("agreement", "{}")).items()
        if each["error"] is None
    ]


def _finite(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer with None for every number that is not finite, and a warning that names them."""
    lost: list[str] = []

    def cleaned(value: Any, place: str) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            lost.append(place)
            return None
        if isinstance(value, dict):
            return {key: cleaned(each, f"{place}.{key}" if place else str(key)) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [cleaned(each, f"{place}[{i}]") for i, each in enumerate(value)]
        return value

    result = cleaned(answer, "")
    if lost:
        result["warnings"].append(f"Not reached or not defined within the run: {', '.join(lost)}.")
    return result
