"""Shifts of parameters that leave a function unchanged, found by propagating them through its program."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn

from dynascope.symmetry.charge import Charge, Part
from dynascope.symmetry.operation import Operation, cuts_of, reshape_groups, shape_of
from dynascope.symmetry.primitives import Primitive
from dynascope.symmetry.program_loops import LONGEST, bodies, scanned
from dynascope.symmetry.program_reader import ProgramReader, RuleReader
from dynascope.symmetry.shift_rules import KeptError, ShiftRules, Value, entering
from dynascope.symmetry.shift_views import Evenness, Pieces

__all__ = ["is_used", "translations"]

_SAME = 1e-8  # rounding error of a derivative along a shift, relative to the gradient


def translations(
    program: ClosedJaxpr, paths: Sequence[str], gradients: Sequence[tuple[np.ndarray, ...]] = ()
) -> list[Charge]:
    """Find shifts of a parameter, constant along some of its axes, that leave the outputs unchanged.

    The shift of every value is a sum of unknown arrays, each constant along known axes. If an unknown is constant along
    an axis, then a sum, a maximum and a broadcast along this axis contain the same unknown, so a normalisation layer
    cancels the unknown. A product with another value turns an unknown into a new one. Functions that are not linear
    must not depend on any unknown.

    Args:
        program: A program whose first arguments are the parameters.
        paths: The path of each parameter.
        gradients: Gradients of the outputs at random points; pairs of parameters whose derivatives differ are excluded.

    Returns:
        One symmetry for each maximal family of shifts of a parameter or of a pair of parameters.
    """
    found = []
    walk, cuts = _Walk(program), _joint(_cuts(program.jaxpr))
    alone: dict[int, list[_Shift]] = {}
    for number, path in enumerate(paths):
        if not is_used(program, number):
            continue
        shape = shape_of(program.jaxpr.invars[number])
        accepted = alone[number] = []
        for shift in _candidates(shape, cuts):
            if not any(known.covers(shift) for known in accepted) and _is_unseen(walk, number, shift):
                accepted.append(shift)
                found.append(_charge(path, shape, shift))
    return found + _compensated(walk, paths, alone, gradients, cuts.parts)


def _compensated(
    walk: _Walk,
    paths: Sequence[str],
    alone: dict[int, list[_Shift]],
    gradients: Sequence[tuple[np.ndarray, ...]],
    parts: set[tuple[int, int, int]],
) -> list[Charge]:
    """Find shifts of pairs of parameters that cancel each other, e.g. of token and position embeddings.

    If the program cuts an axis, shifts of its parts are also tested, e.g. the gates of a recurrent layer with two
    biases.
    """
    program = walk.program
    slots = [
        (number, axis, length)
        for number in alone
        for axis, length in enumerate(shape_of(program.jaxpr.invars[number]))
        if not any(known.covers(_even_but(program, number, axis)) for known in alone[number])
    ]
    sums = {(number, axis): _sums(gradients, number, axis) for number, axis, _ in slots}
    places = {*((length, 0, length) for *_, length in slots), *parts}
    found: list[Charge] = []
    # Of nested parts, only the largest counts.
    for length, start, limit in sorted(places, key=lambda place: place[1] - place[2]):
        # A shift that undoes one of several mutually undoing shifts undoes all of them, so one test is enough.
        first: list[tuple[int, int]] = []
        for slot in [(number, axis) for number, axis, own in slots if own == length]:
            within = slice(start, limit)
            partners = [
                one for one in first if one[0] != slot[0] and _is_same(sums[one][..., within], sums[slot][..., within])
            ]
            pairs = [_undoing(walk, paths, one, slot, (start, limit)) for one in partners]
            found += [pair for pair in pairs if pair is not None and not any(_contains(own, pair) for own in found)]
            if all(pair is None for pair in pairs):
                first.append(slot)
    return found


def _undoing(
    walk: _Walk, paths: Sequence[str], one: tuple[int, int], other: tuple[int, int], place: tuple[int, int]
) -> Charge | None:
    """Return the shifts of a part of one axis of each of two parameters if they cancel each other; otherwise None."""
    program = walk.program
    moved = {number: _even_but(program, number, axis, place) for number, axis in (one, other)}
    numbers = one[0], other[0]
    if not _is_unseen(walk, numbers[0], moved[numbers[0]], (numbers[1], moved[numbers[1]])):
        return None
    parts = [_charge(paths[n], shape_of(program.jaxpr.invars[n]), moved[n]).parts[0] for n in numbers]
    signed = dataclasses.replace(parts[0], factor=-1.0), parts[1]
    return Charge("translation", signed, int(parts[0].labels.max()) + 1)


def _contains(large: Charge, small: Charge) -> bool:
    """Whether the shifts of two parameters are contained in the shifts of a larger part of these parameters."""
    return large.paths == small.paths and all(
        one.labels.shape == other.labels.shape and bool(np.all((one.labels >= 0) | (other.labels < 0)))
        for one, other in zip(large.parts, small.parts, strict=True)
    )


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.abs(one - other).max(initial=0.0) < _SAME)


def _sums(gradients: Sequence[tuple[np.ndarray, ...]], number: int, axis: int) -> np.ndarray:
    """Compute the relative derivatives along shifts that vary along one axis only, shape (points, length)."""
    rows = [np.moveaxis(each[number], axis, 0).reshape(each[number].shape[axis], -1).sum(1) for each in gradients]
    sizes = [np.sqrt(sum(float(np.vdot(g, g)) for g in each)) for each in gradients]
    return np.array([row / (size or 1.0) for row, size in zip(rows, sizes, strict=True)])


class _Shift(NamedTuple):
    """A shift that is constant along some axes, and optionally on pieces of an axis, or zero outside a part of it."""

    even: frozenset[int]
    pieces: tuple[int, int] | None = None
    region: tuple[int, int, int] | None = None

    def covers(self, other: _Shift) -> bool:
        whole = self.region is None and self.even <= other.even
        return whole and (self.pieces in (None, other.pieces) or self.pieces[0] in other.even)


def _even_but(program: ClosedJaxpr, number: int, axis: int, place: tuple[int, int] | None = None) -> _Shift:
    """Return the shift of a parameter that varies along one axis only, or only on a part of this axis."""
    shape = shape_of(program.jaxpr.invars[number])
    region = None if place in (None, (0, shape[axis])) else (axis, *place)
    return _Shift(frozenset(range(len(shape))) - {axis}, region=region)


class _Cuts(NamedTuple):
    """Axes that the program cuts, by length: into (length, start, limit), or by a reshape into (length, pieces)."""

    parts: set[tuple[int, int, int]]
    pieces: set[tuple[int, int]]


def _candidates(shape: tuple[int, ...], cuts: _Cuts) -> Iterator[_Shift]:
    """Yield the shifts to test, with larger families first."""
    axes = [axis for axis, length in enumerate(shape) if length > 1]
    yield _Shift(frozenset())
    for axis in axes:
        for length, start, limit in sorted(cuts.parts):
            if length == shape[axis] and (start, limit) != (0, length):
                yield _Shift(frozenset(), region=(axis, start, limit))
        for length, count in sorted(cuts.pieces, reverse=True):
            if length == shape[axis]:
                yield _Shift(frozenset(), pieces=(axis, count))
    for size in range(1, 3 if len(axes) < 4 else 2):
        for even in itertools.combinations(axes, size):
            yield _Shift(frozenset(even))


def _is_unseen(walk: _Walk, number: int, shift: _Shift, undoing: tuple[int, _Shift] | None = None) -> bool:
    values = list(walk.entering)
    even: list[Evenness] = [axis in shift.even for axis in range(len(values[number].shape))]
    if shift.pieces is not None:
        even[shift.pieces[0]] = Pieces(0, shift.pieces[1])
    values[number] = entering(values[number], even, shift.region)
    if undoing is not None:
        other, along = undoing
        same = entering(values[other], [axis in along.even for axis in range(len(values[other].shape))], along.region)
        values[other] = dataclasses.replace(same, shift={entry: -each for entry, each in same.shift.items()})
    try:
        results = walk.run(walk.program.jaxpr, walk.program.consts, values)
    except KeptError:
        return False
    return not any(each.shift for each in results)


def _charge(path: str, shape: tuple[int, ...], shift: _Shift) -> Charge:
    form = [1 if axis in shift.even else length for axis, length in enumerate(shape)]
    labels = np.full(form, -1)
    places = [slice(None)] * len(shape)
    if shift.region is not None:
        places[shift.region[0]] = slice(*shift.region[1:])
    if shift.pieces is not None:
        axis, count = shift.pieces
        fewer = [count if a == axis else length for a, length in enumerate(form)]
        units = np.arange(int(np.prod(fewer, dtype=int))).reshape(fewer)
        labels = np.repeat(units, form[axis] // count, axis)
    else:
        inside = labels[tuple(places)]
        labels[tuple(places)] = np.arange(inside.size).reshape(inside.shape)
    return Charge("translation", (Part(path, labels, 1.0),), int(labels.max()) + 1)


def is_used(program: ClosedJaxpr, number: int) -> bool:
    """Whether an output can depend on an argument."""
    entering = [place == number for place in range(len(program.jaxpr.invars))]
    return any(_Reached().run(program.jaxpr, program.consts, entering))


class _Reached(ProgramReader):
    """Determines whether values can depend on an argument."""

    def constant(self, value: Any) -> bool:
        return False

    def operation(self, equation: JaxprEqn, values: list[bool]) -> list[bool]:
        return [any(values)] * len(equation.outvars)


def _cuts(jaxpr: Jaxpr) -> _Cuts:
    found = _Cuts(set(), set())
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        for body in bodies(equation):
            inner = _cuts(body)
            found.parts.update(inner.parts)
            found.pieces.update(inner.pieces)
        if name in ("slice", "split"):
            shape = shape_of(equation.invars[0])
            axes = range(len(shape)) if name == "slice" else [params["axis"]]
            cuts = [cuts_of(name, params, shape, number) for number in range(len(equation.outvars))]
            found.parts.update((shape[axis], *each[axis][:2]) for each in cuts for axis in axes)
        elif name == "reshape":
            old, new = shape_of(equation.invars[0]), shape_of(equation.outvars[0])
            for olds, news in reshape_groups(old, new):
                wide = [new[axis] for axis in news if new[axis] > 1]
                if len(olds) == 1 and len(wide) > 1:
                    found.pieces.add((old[olds[0]], wide[0]))
    return found


def _joint(cuts: _Cuts) -> _Cuts:
    """Add the parts of an axis that correspond to parts of the first axis into which a reshape splits it."""
    parts = {
        (length, start * length // count, limit * length // count)
        for length, pieces in cuts.pieces
        for count, start, limit in cuts.parts
        if count == pieces
    }
    return cuts._replace(parts=cuts.parts | parts)


class _Walk(RuleReader):
    """Propagates shifts through a program; values without a shift are computed only once."""

    def __init__(self, program: ClosedJaxpr) -> None:
        self.rules, self.program = ShiftRules(), program
        self.entering = [self.rules.unshifted(shape_of(each)) for each in program.jaxpr.invars]
        self._constants: dict[int, tuple[Any, Value]] = {}
        self._unshifted: dict[tuple[int, ...], list[Value]] = {}
        self._begins = True
        self.run(program.jaxpr, program.consts, self.entering)
        self._begins = False

    def constant(self, value: Any) -> Value:
        # The value is stored too, so that its id is not reused by another object.
        return self._constants.setdefault(id(value), (value, self.rules.constant(value)))[1]

    def line(self, equation: JaxprEqn, values: list[Value]) -> list[Value]:
        if any(each.shift for each in values):
            return super().line(equation, values)
        key = id(equation), *(each.name for each in values)
        results = self._unshifted.get(key)
        if results is None:
            results = super().line(equation, values)
            if self._begins:
                self._unshifted[key] = results
        return results

    def apply(self, primitive: Primitive, operation: Operation, values: list[Value]) -> list[Value]:
        if primitive.pointwise:
            values = [self.rules.lifted(each, len(operation.shapes[0])) for each in values]
        if any(each.shift for each in values):
            return primitive.shift(self.rules, operation, values)
        return self.rules.without(operation, values, pointwise=primitive.pointwise)

    def row(self, value: Value, at: int) -> Value:
        return self.rules.row(value, at)

    def are_same(self, fixed: list[Value], before: list[Value], after: list[Value]) -> bool:
        return _pattern(fixed, before) == _pattern(fixed, after)

    def loop(self, equation: JaxprEqn, values: list[Value]) -> list[Value] | None:
        if equation.primitive.name != "scan" or not any(each.shift for each in values):
            return None
        fixed, state, rows = scanned(equation.params, values)
        carried = len(state)
        uneven = any(entry.axes[0] is not None for each in rows for entry in each.shift)
        for number, (after, wrote) in enumerate(self.steps(equation.params, fixed, state, rows, uneven=uneven)):
            if number == LONGEST or any(each.shift for each in wrote):
                raise KeptError
            state = after
        return [*state, *(self.rules.unshifted(shape_of(each)) for each in equation.outvars[carried:])]


def _pattern(fixed: list[Value], state: list[Value]) -> list[tuple]:
    """Return the properties of values, and which of these values are identical."""
    names = [each.name for each in (*fixed, *state)]
    return [(each.shift, each.even, each.constant, each.sure, names.index(each.name)) for each in state]
