"""The gradients of the micro-batches of an accumulated step."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch

from dynascope.diagnosis.snapshot import MicroBatches
from dynascope.validation import require

__all__ = ["MicroBatchGradients"]


class MicroBatchGradients:
    """Finds the gradient of each micro-batch as the increase of the accumulated gradient.

    Args:
        read: Returns the accumulated gradients by name, or None.

    Attributes:
        count: Number of micro-batches since the last call of `clear`.
    """

    def __init__(self, read: Callable[[], dict[str, torch.Tensor] | None]):
        self._read = read
        self.clear()

    def clear(self) -> None:
        """Remove the micro-batches of the previous step."""
        self.count, self._size = 0, 0
        self._squares: list[float] = []
        self._before: dict[str, torch.Tensor] = {}

    def add(self, size: int) -> None:
        """Read the gradient of one micro-batch."""
        require(
            self._size in (0, size),
            f"size is {size}, but the size of the previous micro-batch was {self._size}",
            argument="size",
            value=size,
            remedy="use micro-batches of equal size, or omit micro_batch",
        )
        now = self._read() or {}
        before = self._before
        self._squares.append(_square(each - before[name] if before else each for name, each in now.items()))
        self._before = {name: each.clone() for name, each in now.items()}
        self.count, self._size = self.count + 1, size

    def result(self) -> MicroBatches:
        """Return squared norms of gradients, scaled so that the mean of the gradients is the gradient of the step."""
        # The accumulated gradient is the sum of the increases, and the mean of k times the increases.
        squares = tuple(self.count**2 * each for each in self._squares)
        return MicroBatches(squares, _square(self._before.values()), self._size)


def _square(tensors: Iterable[torch.Tensor]) -> float:
    return float(sum(torch.sum(each.double() ** 2) for each in tensors))
