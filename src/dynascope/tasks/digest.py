"""A short digest for checking whether two data sets are the same."""

from __future__ import annotations

import hashlib

import numpy as np
from jaxtyping import Num

__all__ = ["data_digest"]

_BITS = 20  # significant bits of each column
_FLOOR = 1e-9  # of the largest column, below which a column is rounding noise
# Data are often round numbers; this offset moves them away from the rounding boundaries.
_OFF = 0.3719
_BYTES = 2**24  # digested at once


def data_digest(*arrays: Num[np.ndarray, "n ..."]) -> str:
    """The first twelve hexadecimal digits of a hash of arrays, independent of the machine.

    Means and products have different rounding errors on different machines. Every value is therefore rounded to about
    a millionth of the largest value of its column.

    Args:
        *arrays: Finite numbers, one sample per row.

    Example:
        >>> x = np.array([[1.0, 2000.0], [3.0, 1000.0]])
        >>> data_digest(x) == data_digest(x * (1 + 1e-15)), data_digest(x) == data_digest(x + [0.0, 0.1])
        (True, False)
        >>> data_digest(x) == data_digest(x[::-1]), data_digest(x) == data_digest(x.reshape(1, 4))
        (False, False)
    """
    digest = hashlib.sha256()
    for values in arrays:
        digest.update(repr(values.shape).encode())
        rows = values.reshape(len(values), -1)
        largest = np.maximum(rows.max(axis=0), -(rows.min(axis=0).astype(np.float64))).astype(np.float64)
        largest = np.maximum(largest, _FLOOR * largest.max(initial=0.0))
        exponents = np.frexp((1 + _OFF) * largest)[1]
        digest.update(exponents.astype("<i4").tobytes())
        step = max(1, _BYTES // (8 * rows.shape[1]))
        for start in range(0, len(rows), step):
            places = np.ldexp(rows[start : start + step].astype(np.float64), _BITS - exponents)
            digest.update(np.floor(places + _OFF).astype("<i4").tobytes())
    return digest.hexdigest()[:12]
