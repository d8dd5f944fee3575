"""What becomes of a shift where elements are rearranged."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from dynascope.symmetry.operation import cuts_of, reshape_groups

__all__ = ["Axis", "Entry", "Evenness", "Other", "Pieces", "Region", "evenness", "moved", "numbered"]


class Pieces(NamedTuple):
    """An axis is cut into as many pieces as the unknown has elements along one of its own, and is even on each.

    Attributes:
        axis: The axis of the unknown.
        count: How many pieces.
    """

    axis: int
    count: int


Axis: TypeAlias = int | Pieces | None
Evenness: TypeAlias = bool | Pieces
Region: TypeAlias = tuple[int, int, int]


class Entry(NamedTuple):
    """An unknown array that is added.

    Attributes:
        name: Which one.
        axes: For each axis of the value the axis of the unknown, with pieces or not, or None where it is constant.
        region: (axis, start, limit) beyond which it is zero, if that is known.
    """

    name: int
    axes: tuple[Axis, ...]
    region: Region | None = None


class Other(NamedTuple):
    """What is known of an unknown that takes the place of another.

    Attributes:
        even: Along which axes it is constant.
        region: As of an entry.
        cut: What was cut of the axes of the first unknown, where that alone says which one it is.
    """

    even: list[Evenness]
    region: Region | None
    cut: tuple[tuple[Axis, tuple[int, int, int]], ...] = ()


def moved(
    name: str, params: Any, entry: Entry, old: tuple[int, ...], new: tuple[int, ...], place: int
) -> Entry | Other | None:
    """The same unknown along other axes; or what is known of a new one; or None where it is zero."""
    region = entry.region
    if name == "transpose":
        order = params["permutation"]
        where = (order.index(region[0]), *region[1:]) if region else None
        return Entry(entry.name, tuple(entry.axes[axis] for axis in order), where)
    if name == "broadcast_in_dim":
        places = params["broadcast_dimensions"]
        axes: list[Axis] = [None] * len(new)
        for axis, target in enumerate(places):
            # What had one element along an axis and has more is the same along it.
            axes[target] = entry.axes[axis] if old[axis] == new[target] else None
        return Entry(entry.name, tuple(axes), (places[region[0]], *region[1:]) if region else None)
    if name in ("slice", "split"):
        return _cut(name, params, entry, old, place)
    axes, kept = list[Axis]([None] * len(new)), True
    even = list[Evenness]([False] * len(new))
    where = None
    for olds, news in reshape_groups(old, new):
        runs = [axis for axis in olds if entry.axes[axis] is not None]
        targets = _regrouped(entry, old, new, olds, news)
        if targets is None:
            kept = False
        for axis in news:
            axes[axis] = targets[axis] if targets else None
            even[axis] = not runs or new[axis] == 1
        if region is not None and region[0] in olds:
            where = _regions(region, old, new, olds, news)
    return Entry(entry.name, tuple(axes), where) if kept else Other(even, where)


def _regions(
    region: Region, old: Sequence[int], new: Sequence[int], olds: Sequence[int], news: Sequence[int]
) -> Region | None:
    """Where a region of the first axis of one group of a reshape is along the first of the new axes."""
    wide, before = [a for a in news if new[a] > 1], [a for a in olds if old[a] > 1]
    axis, *bounds = region
    if not wide or before[0] != axis:
        return None
    inner = math.prod(new[a] for a in wide[1:])
    start, limit = (bound * math.prod(old[a] for a in before[1:]) for bound in bounds)
    return None if start % inner or limit % inner else (wide[0], start // inner, limit // inner)


def _regrouped(
    entry: Entry, old: Sequence[int], new: Sequence[int], olds: Sequence[int], news: Sequence[int]
) -> dict[int, Axis] | None:
    """How an unknown runs over the new axes of one group of a reshape, if it is still the same unknown."""
    wide, before = [a for a in news if new[a] > 1], [a for a in olds if old[a] > 1]
    runs = [axis for axis in before if entry.axes[axis] is not None]
    found: dict[int, Axis] = dict.fromkeys(news)
    if not runs:
        return found
    over = entry.axes[runs[0]]
    if len(runs) > 1 or over is None:
        return None
    if len(before) == len(wide) and [old[a] for a in before] == [new[a] for a in wide]:
        return found | {wide[before.index(runs[0])]: over}
    if isinstance(over, Pieces) and len(before) == 1 and len(wide) > 1 and new[wide[0]] == over.count:
        return found | {wide[0]: over.axis}
    if isinstance(over, int) and runs[0] == before[0] and len(wide) == 1:
        return found | {wide[0]: Pieces(over, old[runs[0]])}
    return None


def _cut(name: str, params: Any, entry: Entry, old: tuple[int, ...], place: int) -> Entry | Other | None:
    cuts = cuts_of(name, params, old, place)
    cut = [each != (0, length, 1) for each, length in zip(cuts, old, strict=True)]
    region = entry.region
    if region is not None:
        axis, start, limit = region
        first, last, step = cuts[axis]
        if limit <= first or start >= last:
            return None
        inside = max(start, first) - first, min(limit, last) - first
        region = None if step != 1 or inside == (0, last - first) else (axis, *inside)
    if not any(entry.axes[axis] is not None for axis in range(len(old)) if cut[axis]):
        return entry._replace(region=region)
    # Of an axis that is not cut, the pieces stay.
    even = [evenness(each) if not cut[axis] else each is None for axis, each in enumerate(entry.axes)]
    parts = [(axis, each) for axis, each in zip(entry.axes, cuts, strict=True) if axis is not None]
    whole = all(isinstance(axis, int) for axis, _ in parts)
    return Other(even, region, tuple(parts) if whole else ())


def evenness(over: Axis) -> Evenness:
    """What is known of how another unknown runs along an axis along which an unknown runs like this."""
    return over if isinstance(over, Pieces) else over is None


def numbered(even: Sequence[Evenness]) -> tuple[Axis, ...]:
    """The axes of a new unknown that runs over all axes along which it is not constant."""
    count = itertools.count()
    return tuple(
        Pieces(next(count), each.count) if isinstance(each, Pieces) else None if each else next(count) for each in even
    )
