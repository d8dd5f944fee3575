"""Homogeneity degrees: how each element of a value scales when the parameters are rescaled."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from dynascope.symmetry.exponents import MOST, Exponents

__all__ = [
    "Degree",
    "Origin",
    "agreeing",
    "even_along",
    "invariant",
    "multiplied",
    "raised",
    "require_invariant",
    "viewed",
]


class Origin(NamedTuple):
    """A parameter, and how a value views it.

    Attributes:
        parameter: Number of the parameter.
        axes: For each axis of the view, the axes of the parameter along which it runs.
        piece: Axes along which the view is a single index of the parameter, with these indices.
    """

    parameter: int
    axes: tuple[frozenset[int], ...]
    piece: tuple[tuple[frozenset[int], int], ...] = ()


@dataclasses.dataclass(frozen=True)
class Degree:
    """The exponents d of a value: if parameters are multiplied by exp(t a), the value is multiplied by exp(t d).

    Attributes:
        shape: Shape of the value.
        terms: Arrays of expressions in a that broadcast to `shape`; d is their sum.
        free: Mask of elements that are zero or infinite, for which every exponent is valid; broadcasts to `shape`.
        constant: The value itself, if all its elements are the same known number.
        origin: The parameter that the value views, or None.
    """

    shape: tuple[int, ...]
    terms: tuple[np.ndarray, ...]
    free: np.ndarray
    constant: float | None = None
    origin: Origin | None = None


def invariant(shape: Sequence[int], *, constant: float | None = None) -> Degree:
    """Return the degree of a value that does not change, such as data."""
    ones = (1,) * len(shape)
    free = constant is not None and (constant == 0 or not np.isfinite(constant))
    return Degree(tuple(shape), (np.zeros(ones, np.int64),), np.full(ones, free), constant)


def viewed(
    degree: Degree, shape: Sequence[int], view: Callable[[np.ndarray], np.ndarray], origin: Any = None
) -> Degree:
    """Return the degree of a rearrangement of the value's elements; the function `view` rearranges each array."""
    terms = tuple(view(term) for term in degree.terms)
    return Degree(tuple(shape), terms, view(degree.free), degree.constant, origin)


def raised(solver: Exponents, degree: Degree, power: Fraction | int) -> Degree:
    """Return the degree of a power of the value."""
    if power == 1:
        return dataclasses.replace(degree, constant=None, origin=None)
    terms = tuple(solver.combined([(power, term)]) for term in degree.terms)
    return Degree(degree.shape, terms, degree.free if power > 0 else np.zeros_like(degree.free))


def multiplied(solver: Exponents, one: Degree, other: Degree, shape: Sequence[int]) -> Degree:
    """Return the degree of a product of values that broadcast to the shape."""
    free = one.free | other.free
    terms: list[np.ndarray] = []
    # Large terms come first so that smaller terms can be merged into them.
    for term in sorted((*one.terms, *other.terms), key=lambda each: -each.size):
        for place, known in enumerate(terms):
            if np.broadcast_shapes(known.shape, term.shape) == known.shape:
                terms[place] = solver.combined([(1, known), (1, term)])
                break
        else:
            terms.append(term)
    return Degree(tuple(shape), tuple(terms), free)


def require_invariant(solver: Exponents, degree: Degree) -> None:
    """Set the exponents to zero so that the value does not change; zeros stay zero for every exponent."""
    if degree.free.all():
        return
    if degree.free.any() and (single := _single(solver, degree)) is not None:
        solver.vanish(single[~np.broadcast_to(degree.free, single.shape)])
        return
    solver.sum_vanishes([(1, term) for term in degree.terms])


def agreeing(solver: Exponents, degrees: Sequence[Degree], shape: Sequence[int]) -> Degree:
    """Return the degree of a sum of values, or of a choice among them, after equating their degrees."""
    known = [each for each in degrees if not each.free.all()]
    if not known:
        return dataclasses.replace(invariant(shape), free=np.ones((1,) * len(shape), bool))
    first, *others = known
    for other in others:
        first = _agreed(solver, first, other)
    return dataclasses.replace(first, shape=tuple(shape), constant=None, origin=None)


def even_along(solver: Exponents, degree: Degree, axes: Sequence[int]) -> Degree:
    """Impose equal exponents along the axes, and return the degree with length one along each of them."""
    shape = tuple(1 if axis in axes else length for axis, length in enumerate(degree.shape))
    if not axes:
        return dataclasses.replace(degree, constant=None, origin=None)
    if degree.free.any() and not degree.free.all() and (single := _single(solver, degree)) is not None:
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        numbers, free = np.broadcast_arrays(single, degree.free)
        ordered = [each.transpose([*kept, *axes]) for each in (numbers, free)]
        lead = ordered[0].shape[: len(kept)]
        numbers, free = (each.reshape(*lead, -1) for each in ordered)
        known = np.take_along_axis(numbers, free.argmin(-1)[..., None], -1)
        solver.vanish(solver.combined([(1, numbers), (-1, known)])[~free])
        back = [lead[kept.index(axis)] if axis in kept else 1 for axis in range(len(shape))]
        return Degree(shape, (known.reshape(back),), np.asarray(free.all(-1)).reshape(back))
    origin = tuple(slice(0, 1) if axis in axes else slice(None) for axis in range(len(shape)))
    uneven = [term for term in degree.terms if any(term.shape[axis] > 1 for axis in axes)]
    if not uneven or degree.free.all():
        return Degree(shape, tuple(term[origin] for term in degree.terms), degree.free[origin])
    # The common exponent along the axes is a new unknown, so that no single element along them is preferred.
    whole = solver.fresh(
        [1 if a in axes else n for a, n in enumerate(np.broadcast_shapes(*(t.shape for t in uneven)))], lasting=True
    )
    solver.sum_vanishes([*((1, term) for term in uneven), (-1, whole)])
    rest = [term for term in degree.terms if not any(term is each for each in uneven)]
    return Degree(shape, (*rest, whole), degree.free[origin])


def _agreed(solver: Exponents, one: Degree, other: Degree) -> Degree:
    if not (one.free.any() or other.free.any()):
        solver.sum_vanishes([*((1, term) for term in one.terms), *((-1, term) for term in other.terms)])
        return one if len(one.terms) <= len(other.terms) else other
    first, second = _single(solver, one), _single(solver, other)
    if first is None or second is None:
        for each in (one, other):
            solver.sum_vanishes([(1, term) for term in each.terms])
        return dataclasses.replace(invariant(one.shape), free=one.free & other.free)
    numbers = np.broadcast_arrays(first, second, one.free, other.free)
    both = ~(numbers[2] | numbers[3])
    solver.vanish(solver.combined([(1, numbers[0]), (-1, numbers[1])])[both])
    return Degree(one.shape, (np.where(numbers[2], numbers[1], numbers[0]),), numbers[2] & numbers[3])


def _single(solver: Exponents, degree: Degree) -> np.ndarray | None:
    """Combine all terms into one array, or return None if it is too large."""
    if np.prod(np.broadcast_shapes(*(term.shape for term in degree.terms)), dtype=float) > MOST:
        return None
    return solver.combined([(1, term) for term in degree.terms])
