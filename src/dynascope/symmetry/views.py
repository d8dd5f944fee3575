"""Operations that rearrange elements, on arrays that may have one element in place of a whole axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynascope.symmetry.exponents import Exponents
from dynascope.symmetry.homogeneity import Degree, agreeing, invariant, require_invariant, viewed

__all__ = ["VIEWS", "reshape_groups", "reshaped", "shape_of", "view_of"]

VIEWS = (
    "reshape",
    "transpose",
    "broadcast_in_dim",
    "slice",
    "squeeze",
    "expand_dims",
    "rev",
    "split",
    "concatenate",
    "stack",
    "pad",
)


def shape_of(atom: Any) -> tuple[int, ...]:
    """The shape of a value in a program."""
    return tuple(getattr(atom.aval, "shape", ()))


def view_of(
    name: str, params: Any, degrees: list[Degree], shape: tuple[int, ...], solver: Exponents, number: int
) -> Degree:
    """The degree of a rearrangement; of `split` that of the part of this number."""
    degree = degrees[0]
    axes = degree.origin.axes if degree.origin else ()
    if name in ("reshape", "squeeze", "expand_dims"):
        groups = reshape_groups(degree.shape, shape)
        over = [frozenset[int]()] * len(shape)
        for olds, news in groups:
            for new in news:
                over[new] = frozenset().union(*(axes[old] for old in olds)) if axes else frozenset()
        return viewed(degree, shape, lambda each: reshaped(each, degree.shape, shape), _origin(degree, over))
    if name == "transpose":
        order = params["permutation"]
        return viewed(
            degree, shape, lambda each: each.transpose(order), _origin(degree, [axes[a] for a in order] if axes else [])
        )
    if name == "broadcast_in_dim":
        places = params["broadcast_dimensions"]

        def spread(each: np.ndarray) -> np.ndarray:
            lengths = [1] * len(shape)
            for axis, place in enumerate(places):
                lengths[place] = each.shape[axis]
            return each.reshape(lengths)

        over = [frozenset[int]()] * len(shape)
        for axis, place in enumerate(places):
            over[place] = axes[axis] if axes else frozenset()
        return viewed(degree, shape, spread, _origin(degree, over))
    if name == "rev":
        return viewed(degree, shape, lambda each: np.flip(each, params["dimensions"]), degree.origin)
    if name in ("slice", "split"):
        return viewed(degree, shape, _slicing(name, params, len(shape), number), _piece(name, params, degree, shape))
    if name == "stack":
        axis = params["axis"]
        lengths = (*shape[:axis], 1, *shape[axis + 1 :])
        rows = [viewed(each, lengths, lambda array: np.expand_dims(array, axis)) for each in degrees]
        return _joined("concatenate", {"dimension": axis}, rows, shape, solver)
    return _joined(name, params, degrees, shape, solver)


def reshape_groups(old: Sequence[int], new: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Which axes become which: the finest groups of neighbours of equal products."""
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


def reshaped(each: np.ndarray, old: Sequence[int], new: Sequence[int]) -> np.ndarray:
    """The array for the new shape; groups of axes along which it is the same stay so."""
    lengths = [1] * len(new)
    full = list(each.shape)
    for olds, news in reshape_groups(old, new):
        if any(each.shape[axis] > 1 for axis in olds):
            for axis in olds:
                full[axis] = old[axis]
            for axis in news:
                lengths[axis] = new[axis]
    return np.broadcast_to(each, full).reshape(lengths)


def _origin(degree: Degree, over: Sequence[frozenset[int]]) -> Any:
    return degree.origin._replace(axes=tuple(over)) if degree.origin else None


def _piece(name: str, params: Any, degree: Degree, shape: Sequence[int]) -> Any:
    """The origin of a slice, which may be one place along some axes."""
    if degree.origin is None or name != "slice":
        return degree.origin
    single = [axis for axis, (n, old) in enumerate(zip(shape, degree.shape, strict=True)) if n == 1 < old]
    more = tuple((degree.origin.axes[axis], int(params["start_indices"][axis])) for axis in single)
    return degree.origin._replace(piece=degree.origin.piece + more)


def _slicing(name: str, params: Any, axes: int, number: int) -> Any:
    if name == "slice":
        steps = params["strides"] or (1,) * axes
        starts, limits = params["start_indices"], params["limit_indices"]
        places = [slice(*each) for each in zip(starts, limits, steps, strict=True)]
    else:
        sizes = [int(each) for each in params["sizes"]]
        start = sum(sizes[:number])
        places = [slice(None)] * axes
        places[params["axis"]] = slice(start, start + sizes[number])

    def cut(each: np.ndarray) -> np.ndarray:
        return each[tuple(p if n > 1 else slice(None) for p, n in zip(places, each.shape, strict=True))]

    return cut


def _joined(name: str, params: Any, degrees: list[Degree], shape: tuple[int, ...], solver: Exponents) -> Degree:
    """Of `concatenate`, and of `pad`, which joins a value and the number that it is padded with."""
    if name == "pad":
        inside, number = degrees
        edges = params["padding_config"]
        padded = [axis for axis, edge in enumerate(edges) if any(edge)]
        if number.free.all() and not any(inside.terms[0].shape[axis] > 1 for axis in padded) and len(inside.terms) == 1:
            return Degree(shape, inside.terms, inside.free)
        for each in degrees:
            require_invariant(solver, each)
        return invariant(shape)
    axis = params["dimension"]
    if any(len(each.terms) > 1 for each in degrees):
        # Sums of terms are put side by side where they depend on the same axes only.
        degrees = [Degree(e.shape, (solver.combined([(1, t) for t in e.terms]),), e.free) for e in degrees]
    alike = {(e.terms[0].shape, e.terms[0].tobytes(), e.free.shape, e.free.tobytes()) for e in degrees}
    if len(alike) == 1 and degrees[0].terms[0].shape[axis] == degrees[0].free.shape[axis] == 1:
        return agreeing(solver, degrees, shape)
    others = np.broadcast_shapes(*(_without(each.terms[0].shape, axis) for each in degrees))
    free = np.broadcast_shapes(*(_without(each.free.shape, axis) for each in degrees))

    def whole(array: np.ndarray, lead: tuple[int, ...], length: int) -> np.ndarray:
        return np.broadcast_to(array, [length if a == axis else n for a, n in enumerate(lead)])

    terms = [whole(each.terms[0], others, each.shape[axis]) for each in degrees]
    masks = [whole(each.free, free, each.shape[axis]) for each in degrees]
    return Degree(shape, (np.concatenate(terms, axis),), np.concatenate(masks, axis))


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(1 if place == axis else length for place, length in enumerate(shape))
