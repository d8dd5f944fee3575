"""How closely the steps of a training of one's own can follow a loss that is predicted in continuous time."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.record import staircase_names as names

__all__ = ["with_limits_of_steps"]

_ROUGH = 0.1  # of the initial loss, in one logged step, beyond which nothing is told
_REASON = "what the loss falls in one logged step, by which descent and noise part it from gradient flow"


def with_limits_of_steps(
    observed: xr.Dataset, predicted: xr.Dataset, errors: dict[str, float]
) -> tuple[xr.Dataset, dict[str, float]]:
    """The prediction with tolerances as wide as a step of the curve, and the errors that can be judged by them.

    Args:
        observed: The record of a curve of one's own.
        predicted: The predicted loss over time, in its units.
        errors: Of the loss, in the mean and at most.

    Returns:
        The prediction with tolerances of at least what the loss changes from one logged step to the next, over the
        initial loss. Where that is more than a tenth the errors are NaN: nothing can be judged.

    Example:
        >>> run = xr.Dataset({"loss": ("time", [1.0, 0.96, 0.93])})
        >>> theory = xr.Dataset(attrs={"loss_tolerance": 0.001})
        >>> theory, errors = with_limits_of_steps(run, theory, {"loss": 0.02})
        >>> round(theory.attrs["loss_tolerance"], 6), errors
        (0.04, {'loss': 0.02})
    """
    loss = observed[names.CURVE_LOSS].to_numpy()
    step = float(np.nanmax(np.abs(np.diff(loss)), initial=0.0) / abs(loss[0]))
    told = {name: error if step <= _ROUGH else np.nan for name, error in errors.items()}
    limits = {}
    for name in errors:
        known = float(predicted.attrs.get(f"{name}_tolerance", 0.0))
        if step > known:
            limits |= {f"{name}_tolerance": step, f"{name}_tolerance_reason": _REASON}
    return predicted.assign_attrs(limits), told
