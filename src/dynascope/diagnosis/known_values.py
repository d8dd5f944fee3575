"""The measured rows of a variable in the record of a run."""

from __future__ import annotations

import numpy as np
import xarray as xr

__all__ = ["known_values"]


def known_values(record: xr.Dataset, name: str) -> xr.DataArray | None:
    """Return the rows of a variable over `step` that have a finite value; None if there are none."""
    if name not in record:
        return None
    values = record[name]
    others = tuple(place for place, each in enumerate(values.dims) if each != "step")
    finite = np.isfinite(values.to_numpy().astype(float)).any(axis=others)
    return values.isel(step=finite) if finite.any() else None
