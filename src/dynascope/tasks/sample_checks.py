"""Checks of the samples and column names of a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynascope.validation import require

__all__ = ["check_samples", "column_names"]

_LARGEST = 1e150  # the squares of larger values would overflow in the second moments,
_SMALLEST = 1e-150  # and those of smaller ones underflow


def check_samples(x: np.ndarray, y: np.ndarray) -> None:
    """Check the number of samples and columns, and the size of the values.

    Args:
        x: Inputs, one sample per row.
        y: Targets, one sample per row.

    Raises:
        InputError: If the lengths differ, if there are fewer than two samples, no inputs or no targets, or if the
            squares of the values overflow or underflow.

    Example:
        >>> check_samples(np.eye(2), np.ones((3, 1)))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: x has 2 samples, but y has 3: give one target per sample.
    """
    require(
        len(x) == len(y),
        f"x has {len(x)} samples, but y has {len(y)}",
        argument="y",
        value=len(y),
        remedy="give one target per sample",
    )
    require(
        len(x) >= 2,
        f"x has {len(x)} sample{'s' if len(x) != 1 else ''}",
        argument="x",
        value=len(x),
        remedy="give at least two samples",
    )
    require(
        x.shape[1] > 0 and y.shape[1] > 0,
        f"x has shape {x.shape}, and y has shape {y.shape}",
        argument="x",
        value=x.shape,
        remedy="give at least one input and one target",
    )
    for name, values in (("x", x), ("y", y)):
        largest = float(np.abs(values).max())
        require(
            largest < _LARGEST,
            f"{name} has values as large as {largest:.1e}",
            argument=name,
            value=largest,
            remedy="choose units in which the squares of the values do not overflow",
        )
        require(
            largest == 0 or largest > _SMALLEST,
            f"the largest absolute value in {name} is {largest:.1e}",
            argument=name,
            value=largest,
            remedy="choose units in which the squares of the values do not underflow",
        )


def column_names(field: str, names: Sequence[str], letter: str, width: int) -> tuple[str, ...]:
    """Check the names of columns; the default is numbered names.

    Raises:
        InputError: If the number of names differs from `width`.

    Example:
        >>> column_names("feature_names", (), "x", 2)
        ('x1', 'x2')
    """
    names = tuple(names) or tuple(f"{letter}{i + 1}" for i in range(width))
    require(
        len(names) == width,
        f"{field} has length {len(names)}, but the number of columns is {width}",
        argument=field,
        value=len(names),
        remedy="give one name per column",
    )
    return names
