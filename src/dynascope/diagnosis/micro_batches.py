"""The gradients of the micro-batches of one step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dynascope.diagnosis.measurements.kernel import as_numpy
from dynascope.diagnosis.snapshot import MicroBatches
from dynascope.validation import require

__all__ = ["MicroBatchGradients", "dot"]


class MicroBatchGradients:
    """Sums the gradients of micro-batches and their squared norms, in double precision.

    Args:
        read: Returns the arrays of a gradient by name.

    Attributes:
        count: Number of micro-batches since the last call of `clear`.

    Example:
        >>> gradients = MicroBatchGradients(lambda each: each)
        >>> gradients.add({"w": np.array([3.0, 0.0])}, 8)
        >>> gradients.add({"w": np.array([1.0, 0.0])}, 8)
        >>> gradients.result()
        MicroBatches(squares=(9.0, 1.0), mean_square=4.0, size=8)
    """

    def __init__(self, read: Callable[[Any], Mapping[str, Any]]):
        self._read = read
        self.clear()

    def clear(self) -> None:
        """Remove the micro-batches of the previous step."""
        self.count, self._size = 0, 0
        self._squares: list[float] = []
        self._sum: dict[str, np.ndarray] = {}

    def add(self, gradients: Any, size: int) -> None:
        """Add the gradient of one micro-batch."""
        require(
            self._size in (0, size),
            f"size is {size}, but the size of the previous micro-batch was {self._size}",
            argument="size",
            value=size,
            remedy="use micro-batches of equal size, or omit micro_batch",
        )
        now = {name: as_numpy(each).astype(np.float64) for name, each in self._read(gradients).items()}
        self._squares.append(dot(now, now))
        self._sum = {name: each + self._sum.get(name, 0.0) for name, each in now.items()}
        self.count, self._size = self.count + 1, size

    def result(self) -> MicroBatches:
        """Return the squared norms of the gradients and of their mean."""
        return MicroBatches(tuple(self._squares), dot(self._sum, self._sum) / self.count**2, self._size)


def dot(one: Mapping[str, Any], other: Mapping[str, Any]) -> float:
    """Return the inner product of two sets of arrays, in double precision."""
    return float(sum(np.sum(as_numpy(one[name]).astype(np.float64) * as_numpy(other[name])) for name in one))
