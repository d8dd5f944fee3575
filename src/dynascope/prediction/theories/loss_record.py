"""The record of a predicted loss curve, up to its convergence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.errors import DivergenceError, InputError
from dynascope.prediction.case import Case
from dynascope.results import make_record
from dynascope.results.staircase_names import INITIAL_LOSS

__all__ = ["POINTS", "Curve", "curve_record", "followed", "settled_times"]

_SETTLED = 1e-3  # of the fall of the loss, that may be left at the end
_LONGER, _EXTENSIONS = 4.0, 24
_SEEN = 10  # times before the loss has come to rest, that are enough to say when
_EVEN, _BY_FACTORS, _EARLIEST = 200, 200, 1e-5
POINTS = _EVEN + _BY_FACTORS
_TOLERANCE = 1e-3  # of a loss curve that is exact, against a flow that is integrated


class Curve(NamedTuple):
    """A loss over time, and what else is known there: variables of a record by name."""

    loss: Float[np.ndarray, " time"]
    variables: Mapping[str, tuple[tuple[str, ...], Any]]


def followed(
    name: str,
    at: Callable[[Case, np.ndarray], Curve],
    why: Callable[[Case], str],
    least: Callable[[Case], float] | None = None,
) -> Callable[[Case], xr.Dataset]:
    """The record of a curve that is exact, to the time at which the loss has come to rest.

    Args:
        name: Of the theory.
        at: The curve of a case at some times.
        why: Why the loss of a case ends above that of the best map; nothing if that is not known.
        least: What the curve of a case may fall to, if that is not the loss of the best map.
    """

    def solve(case: Case) -> xr.Dataset:
        with jax.enable_x64(True):
            first = 1 / max(case.input_power[0], 1e-300)
            floor = case.floor if least is None else least(case)
            times = settled_times(lambda times: np.asarray(at(case, times).loss), floor=floor, first=first)
            found = at(case, times)
        start, end = float(found.loss[0]) - case.floor, float(found.loss[-1]) - case.floor
        told = (
            f"The loss converges to {found.loss[-1]:.4g}, above the minimum {case.floor:.4g} for this network."
            + why(case)
        )
        return curve_record(name, case, times, found, told=[told] if end > 10 * _SETTLED * max(start, 0) else [])

    return solve


def curve_record(
    name: str,
    case: Case,
    times: Float[np.ndarray, " time"],
    found: Curve,
    *,
    told: Sequence[str],
    tolerance: float = _TOLERANCE,
    reason: str = "the solution is exact, and the flow is integrated to this accuracy",
) -> xr.Dataset:
    """The record of a loss over time, with how closely training must agree with it, and why."""
    task = case.task
    coordinates: dict[str, Any] = {"time": times}
    names = {"feature": task.feature_names, "target": task.target_names}
    for dimensions, values in found.variables.values():
        for dimension, length in zip(dimensions, np.shape(values), strict=True):
            labels = names.get(dimension, ())
            own = np.array(labels) if len(labels) == length else np.arange(length)
            coordinates.setdefault(dimension, own)
    return make_record(
        {"loss": (("time",), found.loss), **{key: (d, np.asarray(v)) for key, (d, v) in found.variables.items()}},
        coordinates,
        attributes={
            "theory_name": name,
            "network": case.kind,
            "scale": case.scale,
            INITIAL_LOSS: float(found.loss[0]),
            "warnings": list(told),
            "loss_tolerance": tolerance,
            "loss_tolerance_reason": reason,
            "loss_maximum_tolerance": 10 * tolerance,
            "loss_maximum_tolerance_reason": "the same, with interpolation of steep drops between recorded times",
            **task.attributes(),
        },
    )


def settled_times(
    loss_at: Callable[[np.ndarray], np.ndarray], *, floor: float, first: float
) -> Float[np.ndarray, " time"]:
    """0 and times to that at which a thousandth of the fall of the loss is left, evenly and by factors.

    Where the floor is never reached that is the fall which was seen until the equation could not be followed.

    Args:
        loss_at: The loss at some times.
        floor: What it may fall to.
        first: A time to begin with.
    """
    end, times, loss = first, None, None
    for _ in range(_EXTENSIONS):
        try:
            loss, times = loss_at(_times(end)), _times(end)
        except (DivergenceError, InputError):
            if loss is None:
                raise
            break
        if loss[-1] - floor <= _SETTLED * (loss[0] - floor):
            break
        end *= _LONGER
    assert times is not None
    assert loss is not None
    final = loss[-1]
    while True:
        place = int(np.argmax(loss - final <= _SETTLED * (loss[0] - final)))
        settled = float(times[place])
        if place > _SEEN or settled == 0:
            return _times(settled) if settled > 0 else times
        # It was over before the first times that so long a run is looked at.
        loss, times = loss_at(_times(settled)), _times(settled)


def _times(end: float) -> Float[np.ndarray, " time"]:
    even, factors = np.linspace(0, end, _EVEN), np.geomspace(_EARLIEST * end, end, _BY_FACTORS)
    return np.union1d(even, factors[:-1])
