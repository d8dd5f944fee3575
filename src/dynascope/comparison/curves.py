"""Distances between an observed and a predicted quantity over time, or along another dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynascope.validation import require

__all__ = ["compare_curves"]


def compare_curves(
    observed: xr.Dataset, predicted: xr.Dataset, along: Sequence[str] = ("time",)
) -> tuple[xr.Dataset, dict[str, float]]:
    """Return the residuals and errors of all shared variables along a dimension, and of scalars with a tolerance.

    Over time, the prediction is interpolated linearly at the observed times in the shared range. Along any other
    dimension, both records must have the same labels.

    Args:
        observed: Record of a run.
        predicted: Record of a theory. A scalar is compared if an attribute states its tolerance.
        along: The dimensions along which to compare. A variable is compared, over all its dimensions, if it has one of
            them; without dimensions, nothing is compared.

    Returns:
        The residuals `<name>_residual` (observed − predicted), and for each variable two errors: `<name>`, the relative
        L2 norm √(Σ residual² / Σ predicted²), and `<name>_maximum`, the largest residual divided by the largest
        prediction.

    Raises:
        InputError: The records share no variable along these dimensions, their times hardly overlap, or their other
            dimensions differ.
    """
    if not along:
        return xr.Dataset(), {}
    shared = [
        str(name)
        for name, values in predicted.data_vars.items()
        if values.dtype.kind in "fiu"
        and name in observed
        and all(
            set(along) & set(dimensions) or (not dimensions and f"{name}_tolerance" in predicted.attrs)
            for dimensions in (values.dims, observed[name].dims)
        )
    ]
    require(
        bool(shared),
        f"the two records share no variable over {' or '.join(along)}",
        argument="predicted",
        value=sorted(map(str, predicted.data_vars)),
        remedy=f"predict at least one of {', '.join(sorted(map(str, observed.data_vars)))}",
    )
    if any("time" in predicted[name].dims for name in shared):
        times = _shared_times(observed, predicted)
        observed, predicted = observed.sel(time=times), predicted[shared].interp(time=times)
    residuals, errors = {}, {}
    for name in shared:
        seen, expected = observed[name], predicted[name]
        require(
            dict(seen.sizes) == dict(expected.sizes),
            f"{name} has dimensions {dict(seen.sizes)} in the observed record, but {dict(expected.sizes)} in the "
            "predicted one",
            argument="predicted",
            value=dict(expected.sizes),
            remedy="give both records the same members",
        )
        for dimension in set(along) & set(seen.dims):
            require(
                bool(np.all(seen[dimension].to_numpy() == expected[dimension].to_numpy())),
                f"the observed and predicted labels of {name} along {dimension!r} differ",
                argument="predicted",
                value=expected[dimension].to_numpy().tolist(),
                remedy="observe and predict with the same labels",
            )
        expected = expected.transpose(*seen.dims).to_numpy()
        difference = seen.to_numpy() - expected
        residuals[f"{name}_residual"] = (seen.dims, difference)
        errors[name] = _ratio(float(np.linalg.norm(difference)), float(np.linalg.norm(expected)))
        errors[f"{name}_maximum"] = _ratio(float(np.abs(difference).max()), float(np.abs(expected).max()))
    coordinates = {name: observed[name] for name in {d for dims, _ in residuals.values() for d in dims}}
    return xr.Dataset(residuals, coords=coordinates), errors


def _shared_times(observed: xr.Dataset, predicted: xr.Dataset) -> np.ndarray:
    """Return the observed times within the range of both records."""
    times, known = observed["time"].to_numpy(), predicted["time"].to_numpy()
    inside = times[(times >= known[0]) & (times <= known[-1])]
    require(
        len(inside) >= 2,
        f"the observed times {times[0]:.6g} to {times[-1]:.6g} and the predicted times {known[0]:.6g} to "
        f"{known[-1]:.6g} hardly overlap",
        argument="observed",
        value=len(inside),
        remedy="observe and predict over the same range of times",
    )
    return inside


def _ratio(error: float, size: float) -> float:
    """Return error / size; infinite if only the size is zero, or if either is unknown."""
    if np.isnan(error) or np.isnan(size) or (size == 0 and error > 0):
        return np.inf
    return float(error / size) if error > 0 else 0.0
