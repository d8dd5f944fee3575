"""The share of the decrease in the loss that a comparison scores."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr

from dynascope.results import Result
from dynascope.results import staircase_names as names

__all__ = ["share_of_fall"]

_LEAST = 0.01  # of the initial loss; below this decrease, nothing has been learned yet


def share_of_fall(view: Result, *, jumps: bool = True) -> float | None:
    """Return the share of the decrease in the loss that a comparison scores.

    The total decrease is L₀ − min(L_end, L_last): from the predicted initial loss to the last observed loss, or to the
    last predicted loss (of the plateaus or the curve) if the latter is lower. For a staircase, the scored part is Σ
    (L_before − L_after) over the scored jumps that were observed. For a loss curve, the scored part is the predicted
    decrease over the times that both records share.

    Args:
        view: A result with both records and the residual.
        jumps: Whether the jumps of a staircase were scored; otherwise only its loss curve was.

    Returns:
        The share; None if a record does not contain exactly one loss over time, or if the loss decreases by less than
        one percent.

    Example:
        >>> from dynascope.results import Result, make_record
        >>> theory = make_record({"loss": (["time"], [1.0, 0.6, 0.0])}, {"time": [0.0, 1.0, 2.0]})
        >>> run = make_record({"loss": (["time"], [1.0, 0.6])}, {"time": [0.0, 1.0]})
        >>> share_of_fall(Result(observed=run, predicted=theory))
        0.4
    """
    observed, predicted = _curve(view.observed), _curve(view.predicted)
    if observed is None:
        return None
    if view.staircase is not None and jumps:
        first, last = view.staircase.levels[[0, -1]]
        last = last if predicted is None else np.nanmin([last, predicted[1][-1]])
        scored = [row for row in view.staircase.rows if row.status == names.JUDGED and row.seen is not None]
        part = sum(row.loss_before - row.loss_after for row in scored if row.seen and math.isfinite(row.seen.time))
    elif predicted is not None:
        known, loss = predicted
        before, after = np.interp(np.clip(observed[0][[0, -1]], known[0], known[-1]), known, loss)
        levels = [] if view.staircase is None else view.staircase.levels[-1:]
        first, last, part = loss[0], np.nanmin([loss[-1], *levels]), before - after
    else:
        return None
    fall = first - np.nanmin([last, observed[1][-1]])
    return float(part / fall) if fall > _LEAST * first else None


def _curve(record: xr.Dataset | None) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the times and the loss of a record, if it contains exactly one loss over time."""
    curve = None if record is None else record.get(names.CURVE_LOSS)
    if curve is None or curve.dims != ("time",) or not curve.size:
        return None
    return curve["time"].to_numpy(), curve.to_numpy()
