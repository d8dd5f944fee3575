"""Rows of a growing record, buffered in memory until they are written."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynascope.results.growing_layout import fitted, power_of_two
from dynascope.validation import require

__all__ = ["RowBuffer"]

_BYTES = 2**22


class RowBuffer:
    """A block of rows in memory, with an array for each growing variable.

    Args:
        shapes: The dimensions and sizes of each variable.
        dtypes: The type of each variable.
        axis: The growing dimension.

    Attributes:
        length: The capacity in rows, a power of two.
        rows: The number of buffered rows.
    """

    def __init__(self, shapes: Mapping[str, Mapping[str, int]], dtypes: Mapping[str, np.dtype], axis: str) -> None:
        self._shapes = {name: tuple(n for each, n in shape.items() if each != axis) for name, shape in shapes.items()}
        self._places = {name: list(shape).index(axis) for name, shape in shapes.items()}
        rows = {name: tuple(n for each, n in shape.items() if each != axis) for name, shape in shapes.items()}
        size = sum(math.prod(shape) * dtypes[name].itemsize for name, shape in rows.items())
        # Chunks also have a power of two rows, so that a full buffer is a multiple or a fraction of a chunk.
        self.length, self.rows = power_of_two(_BYTES / max(1, size)), 0
        self._values = {name: np.empty((self.length, *shape), dtypes[name]) for name, shape in rows.items()}
        self._layout = [(name, values, values.dtype, values.shape[1:]) for name, values in self._values.items()]

    @property
    def bytes_of_a_row(self) -> int:
        """The size of a row in bytes."""
        return sum(values[0].nbytes for values in self._values.values())

    def add_row(self, values: Mapping[str, Any]) -> bool:
        """Add the values if they are one row, with minimal overhead, because training loops add a row at every step."""
        if values.keys() != self._values.keys():
            return False
        place = self.rows
        for name, buffer, dtype, shape in self._layout:
            value = np.asarray(values[name])
            if value.dtype != dtype:
                value = fitted(name, value, dtype)
            if value.shape != shape:
                return False  # the values written so far are not counted
            buffer[place] = value
        self.rows = place + 1
        return True

    def put(self, blocks: Sequence[np.ndarray], start: int, stop: int) -> None:
        """Add the rows from `start` to `stop` of blocks, which must fit into the buffer."""
        end = self.rows + stop - start
        for buffer, block in zip(self._values.values(), blocks, strict=True):
            buffer[self.rows : end] = block[start:stop]
        self.rows = end

    def waiting(self) -> dict[str, np.ndarray]:
        """Return the buffered rows, with the growing axis moved to its position in each variable."""
        return {name: np.moveaxis(each[: self.rows], 0, self._places[name]) for name, each in self._values.items()}

    def blocks(self, values: Mapping[str, Any]) -> tuple[list[np.ndarray], int]:
        """Return the values of several rows with the growing axis first, and the number of rows.

        Raises:
            InputError: As for `GrowingRecord.append`.
        """
        require(
            values.keys() == self._values.keys(),
            f"a row contains {sorted(values)}, but the record has {sorted(self._values)}",
            argument="values",
            remedy="give exactly the growing variables",
        )
        arrays = [fitted(name, values[name], buffer.dtype) for name, buffer in self._values.items()]
        blocks = []
        for (name, buffer), value in zip(self._values.items(), arrays, strict=True):
            fits = value.ndim == buffer.ndim
            block = np.moveaxis(value, self._places[name], 0) if fits else value
            require(
                fits and block.shape[1:] == buffer.shape[1:],
                f"{name!r} has shape {value.shape}, but a row has shape {buffer.shape[1:]}",
                argument=name,
                value=value.shape,
                remedy="give one row, or the same number of rows for all variables",
            )
            blocks.append(block)
        lengths = {len(block) for block in blocks}
        require(
            len(lengths) == 1,
            f"the variables have different numbers of rows ({', '.join(map(str, sorted(lengths)))})",
            argument="values",
            remedy="give all variables the same number of rows",
        )
        return blocks, lengths.pop()
