"""How closely the steps of a training of one's own can follow a loss that is predicted in continuous time."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.record import staircase_names as names

__all__ = ["with_limits_of_steps"]

_ROUGH = 0.1  # of the initial loss: a curve that may be off by more fits one of half or twice its times as well
_REASON = (
    "how far descent lags behind gradient flow by the predicted loss, and what the loss changes in one logged step"
)


def with_limits_of_steps(
    observed: xr.Dataset, predicted: xr.Dataset, errors: dict[str, float]
) -> tuple[xr.Dataset, dict[str, float]]:
    """The prediction with tolerances as wide as steps part descent from flow, and the errors that are judged by them.

    On a straight path, where the speed is f = |∇L|, steps of rate η follow the field f − η f f′ / 2 to first order and
    are later than gradient flow by (η / 2) ln(f / f(0)). As L′ = −f², that is ¼ ln(L′ / L′(0)) steps, most where the
    loss falls fastest. One step more is allowed, for what is of higher order and for paths that are not straight.

    Args:
        observed: The record of a curve of one's own.
        predicted: The predicted loss over time, in its units.
        errors: Of the loss, in the mean and at most.

    Returns:
        The prediction with tolerances that are wider by what it differs from itself so much later, in the same mean and
        at most, and at least what the loss changes from one logged step to the next. Where one of these is more than a
        tenth of the initial loss the errors are NaN: nothing can be judged.

    Example:
        >>> run = xr.Dataset({"loss": ("time", [1.0, 0.96, 0.93])}, {"time": [0.0, 0.04, 0.08]})
        >>> theory = xr.Dataset({"loss": ("time", [1.0, 0.96, 0.92])}, {"time": [0.0, 0.04, 0.08]})
        >>> theory, errors = with_limits_of_steps(run, theory.assign_attrs(loss_tolerance=0.001), {"loss": 0.02})
        >>> round(theory.attrs["loss_tolerance"], 6), errors
        (0.04, {'loss': 0.02})
    """
    time, loss = observed["time"].to_numpy(), observed[names.CURVE_LOSS].to_numpy()
    logged = float(np.nanmax(np.abs(np.diff(loss)), initial=0.0) / abs(loss[0]))
    known, expected = predicted["time"].to_numpy(), predicted[names.CURVE_LOSS].to_numpy()
    lag = _lag(known, expected) * float(observed.attrs.get("largest_step", np.max(np.diff(time))))
    there = time[(time >= known[0]) & (time <= known[-1])]
    now, before = np.interp(there, known, expected), np.interp(there - lag, known, expected)
    most = float(np.max(np.abs(before - now)) / now.max())
    mean = float(np.linalg.norm(before - now) / np.linalg.norm(now))
    limits, told = {}, {}
    for name, error in errors.items():
        known_error = float(predicted.attrs.get(f"{name}_tolerance", 0.0))
        limit = max(logged, known_error + (most if name.endswith("_maximum") else mean))
        told[name] = error if max(logged, most) <= _ROUGH else np.nan
        limits |= {f"{name}_tolerance": limit, f"{name}_tolerance_reason": _REASON}
    return predicted.assign_attrs(limits), told


def _lag(time: np.ndarray, loss: np.ndarray) -> float:
    """Steps that descent lags behind gradient flow where the loss falls fastest, and one more."""
    falls = -np.diff(loss)
    # Less cannot be told from rounding; the lag is then as if the start were that much smaller.
    speeds = np.maximum(falls, np.finfo(float).eps * loss[0]) / np.diff(time)
    return 1 + np.log(speeds.max() / speeds[0]) / 4
