"""One operation of a program, and its effect on axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

__all__ = ["Operation", "cuts_of", "free_axes", "reshape_groups", "shape_of", "window_axes"]


class Operation(NamedTuple):
    """An equation of a program.

    Attributes:
        name: Name of the primitive.
        params: Parameters of the primitive.
        shapes: Shapes of the results.
    """

    name: str
    params: Any
    shapes: list[tuple[int, ...]]


def shape_of(atom: Any) -> tuple[int, ...]:
    """Return the shape of a value in a program."""
    return tuple(getattr(atom.aval, "shape", ()))


def cuts_of(name: str, params: Any, shape: Sequence[int], number: int = 0) -> list[tuple[int, int, int]]:
    """Return the start, limit and stride along each axis for a `slice`, or for one part of a `split`."""
    if name == "slice":
        strides = params["strides"] or (1,) * len(shape)
        return list(zip(params["start_indices"], params["limit_indices"], strides, strict=True))
    sizes = [int(each) for each in params["sizes"]]
    cuts = [(0, length, 1) for length in shape]
    cuts[params["axis"]] = (sum(sizes[:number]), sum(sizes[: number + 1]), 1)
    return cuts


def free_axes(params: Any, shapes: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the axes of each operand of a `dot_general` that are neither contracted nor batched."""
    contracted, batched = params["dimension_numbers"]
    taken = [(*contracted[side], *batched[side]) for side in range(2)]
    return [[axis for axis in range(len(shape)) if axis not in taken[side]] for side, shape in enumerate(shapes)]


def window_axes(numbers: Any, axes: int) -> dict[int, int]:
    """Map the operand axes that the windows of a `gather` cover to axes of the result."""
    gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    return dict(zip([axis for axis in range(axes) if axis not in gone], numbers.offset_dims, strict=True))


def reshape_groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Split the axes of a reshape into the smallest groups of neighbouring axes with equal products."""
    groups, i, j = [], 0, 0
    while i < len(old) or j < len(new):
        olds, news, left, right = [], [], 1, 1
        while (not olds and not news) or left != right:
            if left <= right and i < len(old) and (left < right or not olds):
                olds, left, i = [*olds, i], left * old[i], i + 1
            elif j < len(new):
                news, right, j = [*news, j], right * new[j], j + 1
            else:
                olds, left, i = [*olds, i], left * old[i], i + 1
        groups.append((olds, news))
    return groups
