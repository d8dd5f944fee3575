"""Ranks of matrices whose small singular values are rounding, or are not."""

from __future__ import annotations

import numpy as np

from dynascope.errors import InputError

__all__ = ["null_space", "rank"]

_ZERO = 1e-8  # relative to the largest: singular values below it are taken for zero
_ROUNDING = 1e-11  # and those above this are more than rounding, so that nobody knows
_SURE = 1e-14  # unless others are so small, and so show what rounding is
_WEAK = 1e-3  # rows this much shorter than usual are saturated, and rounding after they are normalised
_SHOWN = 6


def rank(rows: np.ndarray, what: str) -> int:
    """The number of independent rows.

    Raises:
        InputError: Singular values without a gap, which it tells.
    """
    return _rank(np.linalg.svd(_normalised(rows), compute_uv=False), rows.shape[1], what)


def null_space(rows: np.ndarray, what: str) -> np.ndarray:
    """An orthonormal basis (n, columns) of what all rows are orthogonal to.

    Raises:
        InputError: Singular values without a gap, which it tells.
    """
    usual = _normalised(rows)
    if not usual.size:
        return np.eye(rows.shape[1])
    # The square factor has the same null space, and is smaller.
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
            # A law that the ε of a norm breaks by little is none.
            return more
        near = ", ".join(f"{each:.1e}" for each in relative[max(0, found - _SHOWN // 2) : found + _SHOWN // 2])
        raise InputError(
            f"the rank of {what} is ambiguous: its singular values go on {near} of the largest, without a gap",
            argument="apply",
            value=[float(each) for each in relative],
            remedy="compute in double precision, with inputs and parameters of order one, or try another seed",
        )
    return found
