"""The measured rows of a variable in the record of a run."""

from __future__ import annotations

import numpy as np
import xarray as xr

__all__ = ["known_losses", "known_values"]


def known_values(record: xr.Dataset, name: str) -> xr.DataArray | None:
    """Return the rows of a variable over `step` that have a finite value; None if there are none."""
    if name not in record:
        return None
    values = record[name]
    others = tuple(place for place, each in enumerate(values.dims) if each != "step")
    finite = np.isfinite(values.to_numpy().astype(float)).any(axis=others)
    return values.isel(step=finite) if finite.any() else None


def known_losses(record: xr.Dataset) -> xr.DataArray | None:
    """Return the losses on the reference batch if two rows have one, or else the mean losses of the training loop.

    The losses of the training loop vary with the batch; None if neither was recorded.
    """
    reference = known_values(record, "reference_loss")
    return known_values(record, "mean_loss") if reference is None or len(reference) < 2 else reference
