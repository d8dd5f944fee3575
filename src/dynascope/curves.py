"""Curves: the distance between an observed and a predicted quantity over time."""

from __future__ import annotations

import numpy as np
import xarray as xr

from dynascope.errors import require

__all__ = ["compare_curves"]


def compare_curves(observed: xr.Dataset, predicted: xr.Dataset) -> tuple[xr.Dataset, dict[str, float]]:
    """Residuals of all shared variables over time, and their errors.

    The prediction is interpolated linearly at the observed times inside the range of both.

    Returns:
        The residuals `<name>_residual` (observed − predicted), and for each variable two errors: `<name>`, the relative
        L2 norm √(Σ residual² / Σ predicted²), and `<name>_maximum`, the largest residual over the largest prediction.

    Raises:
        InputError: No variable over time is shared, the times do not overlap, or the other dimensions differ.
    """
    shared = [
        str(name)
        for name, values in predicted.data_vars.items()
        if "time" in values.dims and values.dtype.kind in "fiu" and name in observed and "time" in observed[name].dims
    ]
    require(
        bool(shared),
        "the two records share no variable over time",
        argument="predicted",
        value=sorted(map(str, predicted.data_vars)),
        remedy=f"predict one of {', '.join(sorted(map(str, observed.data_vars)))}",
    )
    times = observed["time"].to_numpy()
    known = predicted["time"].to_numpy()
    inside = times[(times >= known[0]) & (times <= known[-1])]
    require(
        len(inside) >= 2,
        f"the observed times {times[0]:.6g} to {times[-1]:.6g} and the predicted {known[0]:.6g} to {known[-1]:.6g} "
        "hardly overlap",
        argument="observed",
        value=len(inside),
        remedy="observe and predict over the same span",
    )
    residuals, errors = {}, {}
    for name in shared:
        seen, expected = observed[name].sel(time=inside), predicted[name].interp(time=inside)
        require(
            dict(seen.sizes) == dict(expected.sizes),
            f"{name} has dimensions {dict(seen.sizes)} observed and {dict(expected.sizes)} predicted",
            argument="predicted",
            value=dict(expected.sizes),
            remedy="give both the same members",
        )
        expected = expected.transpose(*seen.dims).to_numpy()
        difference = seen.to_numpy() - expected
        residuals[f"{name}_residual"] = (seen.dims, difference)
        errors[name] = _ratio(float(np.linalg.norm(difference)), float(np.linalg.norm(expected)))
        errors[f"{name}_maximum"] = _ratio(np.abs(difference).max(), np.abs(expected).max())
    coordinates = {name: observed[name] for name in {d for dims, _ in residuals.values() for d in dims} - {"time"}}
    return xr.Dataset(residuals, coords={"time": inside, **coordinates}), errors


def _ratio(error: float, size: float) -> float:
    """Error over size; infinite where the prediction vanishes and the error does not, or where either is unknown."""
    if np.isnan(error) or np.isnan(size) or (size == 0 and error > 0):
        return np.inf
    return float(error / size) if error > 0 else 0.0
