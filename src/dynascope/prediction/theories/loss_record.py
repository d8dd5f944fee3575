"""Records of predicted loss curves, up to convergence."""

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

__all__ = ["POINTS", "Curve", "curve_record", "settled_times", "solve_until_settled"]

_SETTLED = 1e-3  # remaining fraction of the decrease of the loss at the end
_LONGER, _EXTENSIONS = 4.0, 24
_SEEN = 10  # sufficient number of times before convergence
_EVEN, _BY_FACTORS, _EARLIEST = 200, 200, 1e-5
_STEEPEST = 2e-3  # largest decrease of the loss between neighbouring times, relative to its total decrease
POINTS = _EVEN + _BY_FACTORS
_TOLERANCE = 1e-3  # relative error of an integrated flow against an exact loss curve


class Curve(NamedTuple):
    """A loss over time, and further record variables at the same times, by name."""

    loss: Float[np.ndarray, " time"]
    variables: Mapping[str, tuple[tuple[str, ...], Any]]


def solve_until_settled(
    name: str,
    at: Callable[[Case, np.ndarray], Curve],
    why: Callable[[Case], str],
    least: Callable[[Case], float] | None = None,
) -> Callable[[Case], xr.Dataset]:
    """Return a solver that records an exact curve until the loss has converged.

    Args:
        name: Name of the theory.
        at: Returns the curve of a case at given times.
        why: Explains why the loss of a case converges above the loss of the best map; empty if unknown.
        least: Returns the minimum of the curve of a case, if this is not the loss of the best map.
    """

    def solve(case: Case) -> xr.Dataset:
        with jax.enable_x64(True):
            first = 1 / max(case.input_power[0], 1e-300)
            floor = case.floor if least is None else least(case)
            times = settled_times(lambda times: np.asarray(at(case, times).loss), floor=floor, first=first)
            found = at(case, times)
        start, end = float(found.loss[0]) - case.floor, float(found.loss[-1]) - case.floor
        text = (
            f"The loss converges to {found.loss[-1]:.4g}, above the minimum {case.floor:.4g} for this network."
            + why(case)
        )
        return curve_record(name, case, times, found, notes=[text] if end > 10 * _SETTLED * max(start, 0) else [])

    return solve


def curve_record(
    name: str,
    case: Case,
    times: Float[np.ndarray, " time"],
    found: Curve,
    *,
    notes: Sequence[str],
    tolerance: float = _TOLERANCE,
    reason: str = "the solution is exact, and the flow is integrated to this accuracy",
) -> xr.Dataset:
    """Make the record of a loss over time, with tolerances and their reasons."""
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
            "warnings": list(notes),
            "loss_tolerance": tolerance,
            "loss_tolerance_reason": reason,
            "loss_maximum_tolerance": 10 * tolerance,
            "loss_maximum_tolerance_reason": f"{reason}; steep drops are interpolated between recorded times",
            **task.attributes(),
        },
    )


def settled_times(
    loss_at: Callable[[np.ndarray], np.ndarray], *, floor: float, first: float
) -> Float[np.ndarray, " time"]:
    """Return times from 0 until a thousandth of the decrease in the loss remains, dense where the loss decreases.

    The times are evenly and geometrically spaced. If the loss changes a lot between neighbouring times, further times
    are inserted to keep linear interpolation accurate.

    If the loss never reaches the floor, the decrease up to the end of the integration is used.

    Args:
        loss_at: Returns the loss at given times.
        floor: The minimum of the loss.
        first: First guess of the final time.
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
            return _refined(loss_at, _times(settled)) if settled > 0 else times
        # The loss converged before the first sampled times of such a long run.
        loss, times = loss_at(_times(settled)), _times(settled)


def _refined(
    loss_at: Callable[[np.ndarray], np.ndarray], times: Float[np.ndarray, " time"]
) -> Float[np.ndarray, " finer"]:
    """Divide the intervals in which the loss changes a lot."""
    changes = np.abs(np.diff(loss_at(times)))
    parts = np.ceil(changes / max(_STEEPEST * changes.sum(), 1e-300)).astype(int)
    between = [
        np.linspace(begin, end, part, endpoint=False)
        for begin, end, part in zip(times[:-1], times[1:], parts, strict=True)
        if part > 1
    ]
    return np.union1d(times, np.concatenate([*between, times[-1:]]))


def _times(end: float) -> Float[np.ndarray, " time"]:
    even, factors = np.linspace(0, end, _EVEN), np.geomspace(_EARLIEST * end, end, _BY_FACTORS)
    return np.union1d(even, factors[:-1])
