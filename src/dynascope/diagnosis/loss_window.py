"""The losses of a training loop since the previous row of its record."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynascope.diagnosis.measurements.kernel import as_numpy
from dynascope.validation import array_namespace, require

__all__ = ["LossWindow"]


class LossWindow:
    """Accumulates losses without reading their values, which would make a GPU wait at every step.

    Example:
        >>> window = LossWindow()
        >>> for loss in (3.0, 1.0):
        ...     window.add(loss)
        >>> window.take()
        {'loss': 1.0, 'mean_loss': 2.0, 'max_loss': 3.0, 'loss_count': 2.0}
    """

    def __init__(self) -> None:
        self._last: Any = None
        self._sum: Any = None
        self._most: Any = None
        self._count = 0

    def add(self, loss: Any) -> None:
        """Add the loss of one step: a number, or a scalar array of any library.

        Raises:
            InputError: If the loss has more than one entry.
        """
        shape = tuple(getattr(loss, "shape", ()))
        require(
            math.prod(shape) == 1,
            f"loss has shape {shape}",
            argument="loss",
            value=shape,
            remedy="give a number, such as the mean loss of the batch",
        )
        if shape:
            loss = loss.reshape(())
        if hasattr(loss, "detach"):  # PyTorch; a compiled step may reuse the memory of its loss
            loss = loss.detach().clone()
        elif not hasattr(loss, "shape"):
            loss = np.float64(loss)
        self._last = loss
        self._sum = loss if self._sum is None else self._sum + loss
        self._most = loss if self._most is None else array_namespace(loss).maximum(self._most, loss)
        self._count += 1

    def take(self) -> dict[str, float]:
        """Return the last, mean and largest loss since the previous call (NaN without a loss), and their number."""
        if self._count == 0:
            return {**dict.fromkeys(("loss", "mean_loss", "max_loss"), np.nan), "loss_count": 0.0}
        last, total, most = (float(as_numpy(each)) for each in (self._last, self._sum, self._most))
        self._last, self._sum, self._most, count = None, None, None, self._count
        self._count = 0
        return {"loss": last, "mean_loss": total / count, "max_loss": most, "loss_count": float(count)}
