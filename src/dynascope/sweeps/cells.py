"""The cells of a sweep: their positions in the grid, their settings, and the order in which they are computed."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["Cell", "blocks", "chunk_shape", "new_cells", "settings_of"]

Cell = tuple[int, ...]
_CELLS_PER_CHUNK = 1024


def settings_of(cell: Cell, axes: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The values of the arguments in a cell.

    Example:
        >>> settings_of((1, 0), {"scale": [0.1, 1.0], "seed": [7]})
        {'scale': 1.0, 'seed': 7}
    """
    return {name: values[place] for place, (name, values) in zip(cell, axes.items(), strict=True)}


def new_cells(shapes: Sequence[Sequence[int]]) -> Iterator[Cell]:
    """The cells of a grid that grew, in the order in which they are planned: those of the first shape come first.

    Args:
        shapes: The shape of the grid at the beginning and after each extension.

    Example:
        >>> list(new_cells([(1, 2), (2, 2)]))
        [(0, 0), (0, 1), (1, 0), (1, 1)]
        >>> list(new_cells([(2, 1), (2, 2)]))
        [(0, 0), (1, 0), (0, 1), (1, 1)]
    """
    before: Sequence[int] = ()
    for shape in shapes:
        for cell in itertools.product(*map(range, shape)):
            if not before or any(place >= size for place, size in zip(cell, before, strict=True)):
                yield cell
        before = shape


def blocks(cells: Sequence[Cell], names: Sequence[str], batched: Sequence[str], size: int) -> list[list[Cell]]:
    """Group cells that differ only in batched arguments into blocks, which are computed together.

    The blocks depend only on their arguments, so an interrupted sweep computes the same blocks when it continues.

    Args:
        cells: The cells in order.
        names: The names of the axes.
        batched: The names of the arguments in which the cells of a block may differ.
        size: Maximum number of cells in a block.

    Example:
        >>> blocks([(0, 0), (0, 1), (1, 0), (1, 1)], ["width", "seed"], ["seed"], 2)
        [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]
        >>> len(blocks([(0, 0), (0, 1), (1, 0), (1, 1)], ["width", "seed"], [], 2))
        4
    """
    kept = [place for place, name in enumerate(names) if name not in batched]
    groups: dict[tuple[int, ...], list[Cell]] = {}
    if len(kept) == len(names):
        return [[cell] for cell in cells]
    for cell in cells:
        groups.setdefault(tuple(cell[place] for place in kept), []).append(cell)
    return [group[start : start + size] for group in groups.values() for start in range(0, len(group), size)]


def chunk_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """The block of cells that is one chunk of the store: the whole grid, or a part of about a thousand cells.

    Example:
        >>> chunk_shape((17, 17, 16)), chunk_shape((4, 3))
        ((9, 9, 8), (4, 3))
    """
    sizes = list(shape)
    while math.prod(sizes) > _CELLS_PER_CHUNK:
        largest = sizes.index(max(sizes))
        sizes[largest] = -(-sizes[largest] // 2)
    return tuple(sizes)
