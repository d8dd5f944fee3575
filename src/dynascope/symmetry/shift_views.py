"""Propagates shifts through rearrangements of elements."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from dynascope.symmetry.operation import cuts_of, reshape_groups

__all__ = ["Axis", "Entry", "Evenness", "Other", "Pieces", "Region", "evenness", "moved", "numbered"]


class Pieces(NamedTuple):
    """An axis divided into equal pieces, on each of which the shift is constant.

    Attributes:
        axis: The axis of the unknown that has one element per piece.
        count: Number of pieces.
    """

    axis: int
    count: int


Axis: TypeAlias = int | Pieces | None
Evenness: TypeAlias = bool | Pieces
Region: TypeAlias = tuple[int, int, int]


class Entry(NamedTuple):
    """An unknown array that occurs in a shift.

    Attributes:
        name: Number of the unknown.
        axes: For each axis of the value, the axis of the unknown (as a whole or in pieces), or None if the unknown is
            constant along this axis.
        region: (axis, start, limit) outside which the unknown is zero; None if no region is known.
    """

    name: int
    axes: tuple[Axis, ...]
    region: Region | None = None


class Other(NamedTuple):
    """Properties of a new unknown that replaces another.

    Attributes:
        even: For each axis, whether the new unknown is constant along it.
        region: As in `Entry`.
        cut: The cuts of the axes of the first unknown, if they suffice to identify the new one.
    """

    even: list[Evenness]
    region: Region | None
    cut: tuple[tuple[Axis, tuple[int, int, int]], ...] = ()


def moved(
    name: str, params: Any, entry: Entry, old: tuple[int, ...], new: tuple[int, ...], place: int
) -> Entry | Other | None:
    """Propagate an unknown through a rearrangement.

    Returns:
        The same unknown along other axes, the properties of a new unknown, or None if it is zero.
    """
    region = entry.region
    if name == "transpose":
        order = params["permutation"]
        where = (order.index(region[0]), *region[1:]) if region else None
        return Entry(entry.name, tuple(entry.axes[axis] for axis in order), where)
    if name == "broadcast_in_dim":
        places = params["broadcast_dimensions"]
        axes: list[Axis] = [None] * len(new)
        for axis, target in enumerate(places):
            # An axis of length one that is broadcast becomes constant.
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
    """Map a region of the first axis of a reshape group to the first of the new axes; return None if impossible."""
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
    """Return how an unknown runs along the new axes of a reshape group, or None if a new unknown is needed."""
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
    # Pieces of an axis that is not cut are unchanged.
    even = [evenness(each) if not cut[axis] else each is None for axis, each in enumerate(entry.axes)]
    parts = [(axis, each) for axis, each in zip(entry.axes, cuts, strict=True) if axis is not None]
    whole = all(isinstance(axis, int) for axis, _ in parts)
    return Other(even, region, tuple(parts) if whole else ())


def evenness(over: Axis) -> Evenness:
    """Return how a new unknown varies along an axis that corresponds to the given axis of the old unknown."""
    return over if isinstance(over, Pieces) else over is None


def numbered(even: Sequence[Evenness]) -> tuple[Axis, ...]:
    """Return the axes of a new unknown, which runs over all axes along which it is not constant."""
    count = itertools.count()
    return tuple(
        Pieces(next(count), each.count) if isinstance(each, Pieces) else None if each else next(count) for each in even
    )
