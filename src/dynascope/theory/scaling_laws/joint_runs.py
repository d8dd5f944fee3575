"""Validate the runs to which a joint law is fitted."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dynascope.validation import require

__all__ = ["checked_runs"]

_FEWEST = 8


def checked_runs(
    parameters: ArrayLike, data: ArrayLike, losses: ArrayLike
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """N, D and L of each run, in three arrays of one axis.

    Args:
        parameters: Of the shape of the losses, or of one that fits; of a table of losses its rows.
        data: Likewise; its columns.
        losses: Of any shape, in whose order the runs are.
    """
    n, d, values = np.asarray(parameters), np.asarray(data), np.asarray(losses)
    if values.ndim == 2 and n.ndim == d.ndim == 1 and values.shape == (n.size, d.size):
        n = n[:, None]
    for name, each in (("parameters", n), ("data", d)):
        fits = each.ndim <= values.ndim and all(
            have in (1, want) for have, want in zip(each.shape[::-1], values.shape[::-1], strict=False)
        )
        require(
            fits,
            f"{name} has shape {each.shape} and losses {values.shape}",
            argument=name,
            value=each.shape,
            remedy="give one for every loss, or a table of losses with one N for every row and one D for every column",
        )
    n, d, values = (each.ravel() for each in np.broadcast_arrays(n, d, values))
    require(
        values.size >= _FEWEST,
        f"there are {values.size} losses",
        argument="losses",
        value=values.size,
        remedy=f"give at least {_FEWEST}, for a law of five numbers",
    )
    for name, each in (("parameters", n), ("data", d)):
        different = len(np.unique(each))
        require(
            different >= 3,
            f"{name} has {different} different values",
            argument=name,
            value=different,
            remedy="give runs with at least three, or fit one resource alone with fit",
        )
    return n, d, values
