"""Warn about suspicious data: inputs that determine the target, and placeholders for missing values."""

from __future__ import annotations

import numpy as np
import xarray as xr
from jaxtyping import Float

from dynascope.protocols import Learnable
from dynascope.tasks.data.column_names import listed
from dynascope.tasks.task import Task

__all__ = ["determining_inputs", "placeholders", "with_doubts"]

_MOST = 10**7  # larger data are not examined
_EXACT = 1e-4  # relative residual of an affine map to the target
_FEWEST_ROWS = 5  # fewer rows may lie on a line by chance
_CHANCE = 1e-4  # probability that groups of equal inputs have equal targets by chance
_FAR = 1.5  # minimum distance of a placeholder, in units of the range of nine tenths of the other values
_FEWEST_VALUES = 5  # minimum number of distinct other values
_SHARE = 0.01  # minimum fraction of rows with the placeholder


def with_doubts(record: xr.Dataset, task: Learnable) -> xr.Dataset:
    """Add warnings about inputs that determine the target, and about placeholders such as −999.

    Args:
        record: A prediction.
        task: The data; images and tasks without samples are not examined.
    """
    if not isinstance(task, Task) or task.image_shape or not task.feature_names or task.inputs.size > _MOST:
        return record
    found_warnings = []
    determining = determining_inputs(task)
    if determining:
        subject = "One input determines" if len(determining) == 1 else "Each of these inputs determines"
        found_warnings.append(
            f"{subject} the target by itself: {listed(determining)}. If it is a copy of the target, or is known only "
            "after the target, exclude it with `drop`."
        )
    found = placeholders(task)
    if found:
        each = ", ".join(f"{value:.6g} in {name!r} ({rows} rows)" for name, (value, rows) in found.items())
        found_warnings.append(
            f"Repeated values far from all others may be placeholders for missing values: {each}. If so, leave these "
            "cells empty."
        )
    warnings = [*record.attrs.get("warnings", []), *found_warnings]
    return record.assign_attrs(warnings=warnings) if found_warnings else record


def determining_inputs(task: Task) -> list[str]:
    """Return the inputs that determine the target: by an affine function, or because equal inputs have equal targets.

    The columns "kind=oak", "kind=elm" of a category are treated as one input. Repeated values are considered only if
    their equal targets are unlikely to arise by chance. If there is only one input, nothing is examined.

    Example:
        >>> draw = np.random.default_rng(0)
        >>> x = draw.normal(size=(30, 2))
        >>> determining_inputs(Task(np.c_[x, 3 * x[:, 0] + 1], x[:, :1], feature_names=("a", "b", "c")))
        ['a', 'c']
        >>> determining_inputs(Task(x, 2 * x[:, :1] - x[:, 1:]))
        []
    """
    groups: dict[str, list[int]] = {}
    for place, name in enumerate(task.feature_names):
        groups.setdefault(name.partition("=")[0], []).append(place)
    if len(groups) < 2:
        return []
    _, outcome, counts = np.unique(task.targets, axis=0, return_inverse=True, return_counts=True)
    shares = counts / task.samples
    quantity = len(shares) > 2 and task.samples >= _FEWEST_ROWS
    return [
        name
        for name, places in groups.items()
        if (quantity and _is_affine(task.inputs[:, places], task.targets))
        or _is_sorted_by(task.inputs[:, places], outcome, shares)
    ]


def placeholders(task: Task) -> dict[str, tuple[float, int]]:
    """Return the suspected placeholder of each input, in its original units, with its number of rows.

    A placeholder is a repeated value far from all others. Zeros, and columns with few distinct values, are not
    considered.

    Example:
        >>> temperature = np.r_[np.linspace(10, 30, 40), [-999.0] * 5]
        >>> placeholders(Task(temperature[:, None], np.arange(45.0), feature_names=("temperature",)))
        {'temperature': (-999.0, 5)}
    """
    values = task.inputs
    if task.transform is not None:
        if task.transform.inputs.matrix.ndim > 1:
            return {}
        values = task.transform.inputs.invert(values)
    found = {}
    for name, column in zip(task.feature_names, values.T, strict=True):
        for value in (column.min(), column.max()):
            equal = np.isclose(column, value, rtol=1e-9, atol=0.0)
            others = column[~equal]
            if equal.sum() < max(3, _SHARE * len(column)) or len(np.unique(others)) < _FEWEST_VALUES:
                continue
            low, high = np.quantile(others, [0.05, 0.95])
            gap = np.abs(others - value).min()
            if gap > _FAR * (high - low) and abs(value) > 1e-9 * gap:
                found[name] = float(f"{value:.9g}"), int(equal.sum())
    return found


def _is_affine(inputs: Float[np.ndarray, "n k"], targets: Float[np.ndarray, "n c"]) -> bool:
    """Whether each target is an affine function of a single input."""
    if inputs.shape[1] > 1 or np.ptp(inputs) == 0:
        return False
    x, y = inputs - inputs.mean(axis=0), targets - targets.mean(axis=0)
    x = x / np.linalg.norm(x)
    left = np.linalg.norm(y - x @ (x.T @ y), axis=0)
    return bool((left <= _EXACT * np.linalg.norm(y, axis=0)).all())


def _is_sorted_by(inputs: Float[np.ndarray, "n k"], outcome: np.ndarray, shares: np.ndarray) -> bool:
    """Whether rows with equal inputs have equal targets, more often than expected by chance."""
    order = np.lexsort(inputs.T)
    starts = np.flatnonzero(np.r_[True, (np.diff(inputs[order], axis=0) != 0).any(axis=1)])
    sizes = np.diff(np.r_[starts, len(order)])
    outcome = outcome.ravel()[order]
    pure = np.maximum.reduceat(outcome, starts) == np.minimum.reduceat(outcome, starts)
    if not pure.all():
        return False
    return bool(np.log([np.sum(shares**size) for size in sizes]).sum() < np.log(_CHANCE))
