"""Operations that rearrange elements, on arrays that may have length one along an axis on which they are constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynascope.symmetry.exponents import Exponents
from dynascope.symmetry.homogeneity import Degree, agreeing, invariant, require_invariant, viewed
from dynascope.symmetry.operation import Operation, cuts_of, reshape_groups

__all__ = ["rearranged", "reshaped"]


def rearranged(operation: Operation, degrees: list[Degree], solver: Exponents) -> list[Degree]:
    """Return the degrees of a rearrangement; for a `split`, one degree per part."""
    return [_view(operation, degrees, shape, solver, number) for number, shape in enumerate(operation.shapes)]


def _view(
    operation: Operation, degrees: list[Degree], shape: tuple[int, ...], solver: Exponents, number: int
) -> Degree:
    name, params = operation.name, operation.params
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
        places = [slice(*each) for each in cuts_of(name, params, degree.shape, number)]

        def cut(each: np.ndarray) -> np.ndarray:
            return each[tuple(p if n > 1 else slice(None) for p, n in zip(places, each.shape, strict=True))]

        return viewed(degree, shape, cut, _piece(name, params, degree, shape))
    if name == "stack":
        axis = params["axis"]
        lengths = (*shape[:axis], 1, *shape[axis + 1 :])
        rows = [viewed(each, lengths, lambda array: np.expand_dims(array, axis)) for each in degrees]
        return _joined("concatenate", {"dimension": axis}, rows, shape, solver)
    return _joined(name, params, degrees, shape, solver)


def reshaped(each: np.ndarray, old: Sequence[int], new: Sequence[int]) -> np.ndarray:
    """Reshape an array; groups of axes along which it is constant keep length one."""
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
    """Return the origin of a slice, which can be a single index along some axes."""
    if degree.origin is None or name != "slice":
        return degree.origin
    single = [axis for axis, (n, old) in enumerate(zip(shape, degree.shape, strict=True)) if n == 1 < old]
    more = tuple((degree.origin.axes[axis], int(params["start_indices"][axis])) for axis in single)
    return degree.origin._replace(piece=degree.origin.piece + more)


def _joined(name: str, params: Any, degrees: list[Degree], shape: tuple[int, ...], solver: Exponents) -> Degree:
    """Return the degree of a `concatenate`, or of a `pad`, which joins the operand and the padding value."""
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
        # Sums of terms can be concatenated only if the terms depend on the same axes, so they are combined first.
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
