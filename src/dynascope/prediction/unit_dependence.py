"""Units: where those of the inputs or targets decide what is learned first, a prediction says so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynascope.protocols import Learnable
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task

__all__ = ["spreads_of", "with_units"]

_FAR = 100.0  # factor between spreads beyond which units outweigh most of what the columns say
_LISTED = 5


def with_units(record: xr.Dataset, task: Learnable) -> xr.Dataset:
    """The record with a warning where the spreads of inputs, or of targets, differ by more than a hundred.

    Pixels of an image have one unit, and columns that are constant none that counts.

    Args:
        record: A prediction.
        task: What it is of.
    """
    spreads = spreads_of(task)
    if not isinstance(spreads, np.ndarray) or getattr(task, "image_shape", None):
        return record
    told = _far_apart("inputs", getattr(task, "feature_names", ()), spreads)
    if isinstance(task, Task):
        told += _far_apart("targets", task.target_names, task.targets.std(axis=0))
    if not told:
        return record
    warnings = [*record.attrs.get("warnings", []), *told]
    return record.assign_attrs(warnings=warnings)


def spreads_of(task: Learnable) -> np.ndarray | float:
    """The spread of each input; one where only an expectation is known.

    Example:
        >>> spreads_of(Task([[1.0, 0.0], [3.0, 0.0]], [[1.0], [2.0]]))
        array([1., 0.])
    """
    if isinstance(task, InContextRegression):
        return np.sqrt(np.diag(np.asarray(task.covariance)))
    return task.inputs.std(axis=0) if isinstance(task, Task) else 1.0


def _far_apart(what: str, names: Sequence[str], spreads: np.ndarray) -> list[str]:
    largest = float(spreads.max())
    small = [i for i in np.argsort(spreads, kind="stable") if 1e-12 * largest < spreads[i] < largest / _FAR]
    if not small:
        return []
    each = ", ".join(f"{spreads[i]:.3g} for {names[i]!r}" for i in small[:_LISTED])
    more = f" and {len(small) - _LISTED} more" if len(small) > _LISTED else ""
    factor = float(f"{largest / spreads[small[0]]:.2g}")
    return [
        f"The spreads of the {what} differ by a factor of {factor:g}: {largest:.3g} for "
        f"{names[int(spreads.argmax())]!r}, {each}{more}. Large numbers are learned first, so units decide; "
        "standardised they all have spread 1."
    ]
