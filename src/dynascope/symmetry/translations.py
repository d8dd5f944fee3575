"""Shifts of parameters that leave a function as it is, read off its program: what becomes of a shift on its way."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal

from dynascope.symmetry.charge import Charge, Part
from dynascope.symmetry.program_loops import LONGEST, bodies, body_of, folded, scanned, sliced
from dynascope.symmetry.shift_rules import KeptError, ShiftRules, Value, entering
from dynascope.symmetry.shift_views import Evenness, Pieces
from dynascope.symmetry.views import reshape_groups, shape_of

__all__ = ["is_used", "translations"]

_SAME = 1e-8  # rounding of a derivative along a shift, relative to the gradient


def translations(
    program: ClosedJaxpr, paths: Sequence[str], gradients: Sequence[tuple[np.ndarray, ...]] = ()
) -> list[Charge]:
    """Shifts of a parameter by arrays that are constant along some of its axes, which the outputs do not see.

    The shift of every value is a sum of unknown arrays, each constant along known axes. A sum over such an axis, its
    maximum and what is broadcast along it have the same unknown, so that what is normalised subtracts it. Through a
    product with something else it becomes another unknown; what is not linear must not see it.

    Args:
        program: Its first arguments are the parameters.
        paths: The path of each.
        gradients: Of outputs at random points; pairs of parameters that they tell apart are not tried.

    Returns:
        One symmetry for each parameter, or pair of parameters, and largest family of shifts.
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
    """Shifts of one parameter that those of another undo, as of embeddings of tokens and of positions.

    Of axes that are cut somewhere also those of a part, as of the gates of a recurrent layer with two biases.
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
    # Of parts that lie within each other the largest counts.
    for length, start, limit in sorted(places, key=lambda place: place[1] - place[2]):
        # What undoes one of several shifts that undo each other undoes all: so one of them is tried.
        first: list[tuple[int, int]] = []
        for slot in [(number, axis) for number, axis, own in slots if own == length]:
            within = slice(start, limit)
            partners = [
                one for one in first if one[0] != slot[0] and _is_same(sums[one][..., within], sums[slot][..., within])
            ]
            pairs = [_undoing(walk, paths, one, slot, (start, limit)) for one in partners]
            found += [pair for pair in pairs if pair is not None and not any(_holds(own, pair) for own in found)]
            if all(pair is None for pair in pairs):
                first.append(slot)
    return found


def _undoing(
    walk: _Walk, paths: Sequence[str], one: tuple[int, int], other: tuple[int, int], place: tuple[int, int]
) -> Charge | None:
    """The shifts of a part of one axis of each of two parameters, if they undo each other."""
    program = walk.program
    moved = {number: _even_but(program, number, axis, place) for number, axis in (one, other)}
    numbers = one[0], other[0]
    if not _is_unseen(walk, numbers[0], moved[numbers[0]], (numbers[1], moved[numbers[1]])):
        return None
    parts = [_charge(paths[n], shape_of(program.jaxpr.invars[n]), moved[n]).parts[0] for n in numbers]
    signed = dataclasses.replace(parts[0], factor=-1.0), parts[1]
    return Charge("translation", signed, int(parts[0].labels.max()) + 1)


def _holds(large: Charge, small: Charge) -> bool:
    """Whether the shifts of two parameters are among those of a larger part of them."""
    return large.paths == small.paths and all(
        one.labels.shape == other.labels.shape and bool(np.all((one.labels >= 0) | (other.labels < 0)))
        for one, other in zip(large.parts, small.parts, strict=True)
    )


def _is_same(one: np.ndarray, other: np.ndarray) -> bool:
    return bool(np.abs(one - other).max(initial=0.0) < _SAME)


def _sums(gradients: Sequence[tuple[np.ndarray, ...]], number: int, axis: int) -> np.ndarray:
    """The derivatives along shifts that are even along all axes but one, relative to the gradient (points, length)."""
    rows = [np.moveaxis(each[number], axis, 0).reshape(each[number].shape[axis], -1).sum(1) for each in gradients]
    sizes = [np.sqrt(sum(float(np.vdot(g, g)) for g in each)) for each in gradients]
    return np.array([row / (size or 1.0) for row, size in zip(rows, sizes, strict=True)])


class _Shift(NamedTuple):
    """Arrays that are constant along some axes, or on each of so many pieces of one, or zero beyond a part of one."""

    even: frozenset[int]
    pieces: tuple[int, int] | None = None
    region: tuple[int, int, int] | None = None

    def covers(self, other: _Shift) -> bool:
        whole = self.region is None and self.even <= other.even
        return whole and (self.pieces in (None, other.pieces) or self.pieces[0] in other.even)


def _even_but(program: ClosedJaxpr, number: int, axis: int, place: tuple[int, int] | None = None) -> _Shift:
    """That of a parameter which varies along one axis only, or on a part of it."""
    shape = shape_of(program.jaxpr.invars[number])
    region = None if place in (None, (0, shape[axis])) else (axis, *place)
    return _Shift(frozenset(range(len(shape))) - {axis}, region=region)


class _Cuts(NamedTuple):
    """Lengths of axes that are cut somewhere: into (length, start, limit), or by a reshape into (length, pieces)."""

    parts: set[tuple[int, int, int]]
    pieces: set[tuple[int, int]]


def _candidates(shape: tuple[int, ...], cuts: _Cuts) -> Iterator[_Shift]:
    """What may be unseen, the larger families first."""
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
    """Whether an output may depend on an argument."""

    def reach(jaxpr: Jaxpr, known: set[int]) -> set[int]:
        for equation in jaxpr.eqns:
            if any(id(atom) in known for atom in equation.invars):
                body = body_of(equation)
                if body is None:
                    known.update(map(id, equation.outvars))
                    continue
                inner = {id(b) for a, b in zip(equation.invars, body[0].invars, strict=True) if id(a) in known}
                reached = reach(body[0], inner)
                known.update(id(a) for a, b in zip(equation.outvars, body[0].outvars, strict=True) if id(b) in reached)
        return known

    jaxpr = program.jaxpr
    reached = reach(jaxpr, {id(jaxpr.invars[number])})
    return any(id(atom) in reached for atom in jaxpr.outvars)


def _cuts(jaxpr: Jaxpr) -> _Cuts:
    found = _Cuts(set(), set())
    for equation in jaxpr.eqns:
        name, params = equation.primitive.name, equation.params
        for body in bodies(equation):
            inner = _cuts(body)
            found.parts.update(inner.parts)
            found.pieces.update(inner.pieces)
        if name == "split":
            sizes = [int(each) for each in params["sizes"]]
            limits = np.cumsum(sizes)
            length = int(limits[-1])
            found.parts.update((length, int(b) - size, int(b)) for size, b in zip(sizes, limits, strict=True))
        elif name == "slice":
            shape = shape_of(equation.invars[0])
            found.parts.update(zip(shape, params["start_indices"], params["limit_indices"], strict=True))
        elif name == "reshape":
            old, new = shape_of(equation.invars[0]), shape_of(equation.outvars[0])
            for olds, news in reshape_groups(old, new):
                wide = [new[axis] for axis in news if new[axis] > 1]
                if len(olds) == 1 and len(wide) > 1:
                    found.pieces.add((old[olds[0]], wide[0]))
    return found


def _joint(cuts: _Cuts) -> _Cuts:
    """With the parts of an axis that are parts of the first axis that a reshape makes of it."""
    parts = {
        (length, start * length // count, limit * length // count)
        for length, pieces in cuts.pieces
        for count, start, limit in cuts.parts
        if count == pieces
    }
    return cuts._replace(parts=cuts.parts | parts)


class _Walk:
    """A program along which shifts are followed; what it computes without them is known from the first time on."""

    def __init__(self, program: ClosedJaxpr) -> None:
        self.rules, self.program = ShiftRules(), program
        self.entering = [self.rules.unshifted(shape_of(each)) for each in program.jaxpr.invars]
        self._constants: dict[int, Value] = {}
        self._unshifted: dict[tuple[int, ...], list[Value]] = {}
        self._begins = True
        self.run(program.jaxpr, program.consts, self.entering)
        self._begins = False

    def run(self, jaxpr: Jaxpr, consts: Sequence[Any], values: Sequence[Value]) -> list[Value]:
        known = dict(zip(jaxpr.invars, values, strict=True))
        known.update(zip(jaxpr.constvars, map(self._constant, consts), strict=True))

        def value(atom: Any) -> Value:
            return self._constant(atom.val) if isinstance(atom, Literal) else known[atom]

        for equation in jaxpr.eqns:
            operands = [value(each) for each in equation.invars]
            known.update(zip(equation.outvars, self._results(equation, operands), strict=True))
        return [value(each) for each in jaxpr.outvars]

    def _constant(self, value: Any) -> Value:
        if id(value) not in self._constants:
            self._constants[id(value)] = self.rules.constant(value)
        return self._constants[id(value)]

    def _results(self, equation: JaxprEqn, values: list[Value]) -> list[Value]:
        if any(each.shift for each in values):
            return self._equation(equation, values)
        key = id(equation), *(each.name for each in values)
        results = self._unshifted.get(key)
        if results is None:
            results = self._equation(equation, values)
            if self._begins:
                self._unshifted[key] = results
        return results

    def _equation(self, equation: JaxprEqn, values: list[Value]) -> list[Value]:
        if (body := body_of(equation)) is not None:
            return self.run(*body, values)
        if (number := folded(equation, [each.constant for each in values])) is not None:
            return [dataclasses.replace(self.rules.unshifted(()), constant=number)]
        name, params = equation.primitive.name, equation.params
        if name == "scan" and any(each.shift for each in values):
            return self._scan(equation, values)
        if name == "cond" and (which := values[0].constant) is not None:
            branch = params["branches"][min(max(int(which), 0), len(params["branches"]) - 1)]
            return self.run(branch.jaxpr, branch.consts, values[1:])
        if name == "dynamic_slice" and values[0].shift:
            starts = [each.constant for each in values[1:]]
            if (known := sliced(values[0].shape, params["slice_sizes"], starts)) is not None:
                return self.rules.sliced(known, values[0], shape_of(equation.outvars[0]))
        return self.rules.apply(equation, values)

    def _scan(self, equation: JaxprEqn, values: list[Value]) -> list[Value]:
        params = equation.params
        fixed, state, rows = scanned(params, values)
        carried = len(state)
        body, length = params["jaxpr"], params["length"]
        uneven = any(not self.rules.is_even(each, 0) for each in rows)
        for step in range(length):
            if step == LONGEST:
                raise KeptError
            at = length - 1 - step if params["reverse"] else step
            seen = [self.rules.row(each, at) for each in rows]
            found = self.run(body.jaxpr, body.consts, [*fixed, *state, *seen])
            if any(each.shift for each in found[carried:]):
                raise KeptError
            before, state = state, found[:carried]
            if not uneven and _pattern(fixed, before) == _pattern(fixed, state):
                # So are all that come.
                break
        written = [self.rules.unshifted(shape_of(each)) for each in equation.outvars[carried:]]
        return [*state, *written]


def _pattern(fixed: list[Value], state: list[Value]) -> list[tuple]:
    """What is known of values, and which of them are the same."""
    names = [each.name for each in (*fixed, *state)]
    return [(each.shift, each.even, each.constant, each.sure, names.index(each.name)) for each in state]
