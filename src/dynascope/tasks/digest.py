"""A short digest of data, by which two people see whether they used the same."""

from __future__ import annotations

import hashlib

import numpy as np
from jaxtyping import Num

__all__ = ["data_digest"]

_BITS = 20  # of each column that count
_FLOOR = 1e-9  # of the largest column, below which a column is rounding noise
# What is written down is round: numbers and sizes are moved off the places where rounding could fall on either side.
_OFF = 0.3719
_BYTES = 2**24  # of what is digested at once


def data_digest(*arrays: Num[np.ndarray, "n ..."]) -> str:
    """The first twelve hexadecimal digits of a hash of arrays, the same on every machine.

    Machines differ in the last digits of a mean or a product. So of each column as many digits are read as single
    precision nearly has, and numbers that differ by less than a millionth of their column count as equal.

    Args:
        *arrays: Finite numbers, one sample a row.

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
