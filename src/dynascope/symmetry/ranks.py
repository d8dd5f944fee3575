"""Numerical ranks of matrices; raises an error if rounding errors make a rank ambiguous."""

from __future__ import annotations

import numpy as np

from dynascope.errors import InputError

__all__ = ["null_space", "rank"]

_ZERO = 1e-8  # singular values below this, relative to the largest, count as zero
_ROUNDING = 1e-11  # if one of them is above this, it exceeds rounding and the rank is ambiguous
_SURE = 1e-14  # unless the next ones are below this, which shows the level of rounding
_WEAK = 1e-3  # rows shorter than this, relative to the median, are dropped: normalised, they would be rounding errors
_SHOWN = 6  # singular values in the error message


def rank(rows: np.ndarray, what: str) -> int:
    """Return the number of independent rows.

    Raises:
        InputError: If the singular values have no gap; the message lists them.
    """
    return _rank(np.linalg.svd(_normalised(rows), compute_uv=False), rows.shape[1], what)


def null_space(rows: np.ndarray, what: str) -> np.ndarray:
    """Return an orthonormal basis (n, columns) of the vectors that are orthogonal to all rows.

    Raises:
        InputError: If the singular values have no gap; the message lists them.
    """
    usual = _normalised(rows)
    if not usual.size:
        return np.eye(rows.shape[1])
    # The square factor has the same null space and is smaller.
    _, values, right = np.linalg.svd(np.linalg.qr(usual, mode="r"))
    return right[_rank(values, rows.shape[1], what) :]


def _normalised(rows: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1)
    usual = np.median(lengths[lengths > 0]) if (lengths > 0).any() else 0.0
    kept = lengths > _WEAK * usual
    return rows[kept] / lengths[kept, None]


def _rank(values: np.ndarray, columns: int, what: str) -> int:
    if not values.size:
        return 0
    relative = values / values[0]
    found = int((relative > _ZERO).sum())
    below = relative[found] if found < min(len(relative), columns) else 0.0
    if below > _ROUNDING:
        more = int((relative > _ROUNDING).sum())
        if more < min(len(relative), columns) and relative[more] < _SURE:
            # A law that the small ε of a norm breaks does not count.
            return more
        near = ", ".join(f"{each:.1e}" for each in relative[max(0, found - _SHOWN // 2) : found + _SHOWN // 2])
        raise InputError(
            f"the rank of {what} is ambiguous, because the relative singular values {near} show no gap",
            argument="apply",
            value=[float(each) for each in relative],
            remedy="compute in double precision, with inputs and parameters of order one, or try another seed",
        )
    return found
