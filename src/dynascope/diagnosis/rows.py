"""Outputs, pre-activations and features as matrices, with one row for each example and position."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynascope.validation import array_namespace

__all__ = ["as_rows", "feature_rows", "thinned"]

_MOST_ROWS = 4096


def as_rows(values: Any, *, channels_second: bool = False) -> Any:
    """Return values as a matrix with one row for each example and position, in at least single precision.

    Example:
        >>> import numpy as np
        >>> as_rows(np.ones((8, 4, 3))).shape, as_rows(np.ones((8, 3, 4, 4)), channels_second=True).shape
        ((32, 3), (128, 3))
    """
    xp = array_namespace(values)
    wide = _wide(values)
    if wide.ndim == 1:
        return wide[:, None]
    if channels_second:
        wide = xp.moveaxis(wide, 1, -1)
    return xp.reshape(wide, (-1, wide.shape[-1]))


def feature_rows(values: Any, rows: int) -> Any:
    """Return features with one row for each row of the outputs.

    Example:
        >>> import numpy as np
        >>> feature_rows(np.ones((8, 4, 3)), 32).shape, feature_rows(np.ones((8, 4, 3)), 8).shape
        ((32, 3), (8, 12))
    """
    count = rows if math.prod(values.shape) % rows == 0 else values.shape[0]
    return array_namespace(values).reshape(_wide(values), (count, -1))


def thinned(rows: Any) -> Any:
    """Return at most a few thousand rows; arrays of equal length are reduced to the same rows.

    The rows are drawn at random, because evenly spaced rows could come from only a few columns of an image.
    """
    count = rows.shape[0]
    if count <= _MOST_ROWS:
        return rows
    return rows[np.sort(np.random.default_rng(0).choice(count, _MOST_ROWS, replace=False))]


def _wide(values: Any) -> Any:
    xp = array_namespace(values)
    return values if xp.finfo(values.dtype).bits >= 32 else xp.astype(values, xp.float32)
