"""What samples must be to make a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dynascope.validation import require

__all__ = ["check_samples", "column_names"]

_LARGEST = 1e150  # the squares of larger values would overflow in the second moments,
_SMALLEST = 1e-150  # and those of smaller ones underflow


def check_samples(x: np.ndarray, y: np.ndarray) -> None:
    """Raise `InputError` unless these are two samples or more of an input and a target, none too large or too small.

    Args:
        x: Inputs, one sample a row.
        y: Targets, one sample a row.

    Example:
        >>> check_samples(np.eye(2), np.ones((3, 1)))
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: x has 2 samples and y has 3: give one target for each sample.
    """
    require(
        len(x) == len(y),
        f"x has {len(x)} samples and y has {len(y)}",
        argument="y",
        value=len(y),
        remedy="give one target for each sample",
    )
    require(
        len(x) >= 2,
        f"x has {len(x)} sample{'s' if len(x) != 1 else ''}",
        argument="x",
        value=len(x),
        remedy="give at least two",
    )
    require(
        x.shape[1] > 0 and y.shape[1] > 0,
        f"x has {x.shape[1]} columns and y has {y.shape[1]}",
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
            remedy="choose units in which its squares do not overflow",
        )
        require(
            largest == 0 or largest > _SMALLEST,
            f"{name} has no value larger than {largest:.1e}",
            argument=name,
            value=largest,
            remedy="choose units in which its squares do not underflow",
        )


def column_names(field: str, names: Sequence[str], letter: str, width: int) -> tuple[str, ...]:
    """The names of columns; numbered ones if none are given.

    Example:
        >>> column_names("feature_names", (), "x", 2)
        ('x1', 'x2')
    """
    names = tuple(names) or tuple(f"{letter}{i + 1}" for i in range(width))
    require(
        len(names) == width,
        f"{field} has {len(names)} names for {width} columns",
        argument=field,
        value=len(names),
        remedy="give one name for each column",
    )
    return names
