"""Warn if the units of the inputs or targets determine which features are learned first."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynascope.protocols import Learnable
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task

__all__ = ["spreads_of", "with_units"]

_FAR = 100.0  # ratio of standard deviations above which units dominate
_LISTED = 5


def with_units(record: xr.Dataset, task: Learnable) -> xr.Dataset:
    """Add a warning if the standard deviations of inputs or targets differ by more than a factor of 100.

    Images and constant columns are exempt.

    Args:
        record: A prediction.
        task: The task of the prediction.
    """
    spreads = spreads_of(task)
    if not isinstance(spreads, np.ndarray) or getattr(task, "image_shape", None):
        return record
    found = _far_apart("inputs", getattr(task, "feature_names", ()), spreads)
    if isinstance(task, Task):
        found += _far_apart("targets", task.target_names, task.targets.std(axis=0))
    if not found:
        return record
    warnings = [*record.attrs.get("warnings", []), *found]
    return record.assign_attrs(warnings=warnings)


def spreads_of(task: Learnable) -> np.ndarray | float:
    """Return the standard deviation of each input; 1 for tasks without samples.

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
        f"The standard deviations of the {what} differ by a factor of {factor:g}: {largest:.3g} for "
        f"{names[int(spreads.argmax())]!r}, {each}{more}. Columns with a large variance are learned first, so "
        "the units matter; consider standardising the data."
    ]
