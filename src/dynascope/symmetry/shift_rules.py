"""Rules for the effect of each operation on shifts of its operands."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from dynascope.symmetry.operation import Operation, free_axes, window_axes
from dynascope.symmetry.shift_views import Entry, Evenness, Other, Region, evenness, moved, numbered

__all__ = ["KeptError", "ShiftRules", "Value", "entering"]

_INFINITE = 1e9  # a mask entry this large counts as infinite, so a shift of it is negligible


class KeptError(Exception):
    """Raised if the result of a nonlinear operation depends on the shift."""


@dataclasses.dataclass(frozen=True)
class Value:
    """Properties of a value of the program.

    Attributes:
        name: Number of the value.
        shape: Shape of the value.
        shift: The shift that is added to the value, as a factor for each unknown.
        even: Axes along which the value itself is constant.
        constant: The value itself, if all its elements are the same known number.
        sure: Whether the value is known to be true.
    """

    name: int
    shape: tuple[int, ...]
    shift: dict[Entry, float]
    even: frozenset[int]
    constant: float | None = None
    sure: bool = False


def entering(value: Value, even: Sequence[Evenness], region: Region | None) -> Value:
    """Return a parameter plus an unknown shift that is constant along some of its axes and zero outside a region."""
    axes = numbered(even)
    return dataclasses.replace(value, shift={Entry(-1, axes, region): 1.0})


class ShiftRules:
    """The rules for shifts; equal operations on equal unknowns yield equal unknowns."""

    def __init__(self) -> None:
        self._names: dict[Any, int] = {}
        self._values = itertools.count()

    def unshifted(self, shape: Sequence[int], even: Iterable[int] = ()) -> Value:
        """Create a value without a shift."""
        single = {axis for axis, length in enumerate(shape) if length == 1}
        return Value(next(self._values), tuple(shape), {}, frozenset({*even} | single))

    def constant(self, value: Any) -> Value:
        """Create a known value."""
        shape = np.shape(value)
        found = self.unshifted(shape)
        if math.prod(shape) != 1 or not jnp.issubdtype(jnp.result_type(value), jnp.number):
            return found
        return dataclasses.replace(found, constant=float(np.asarray(value).ravel()[0]))

    def row(self, value: Value, at: int) -> Value:
        """Return one row of a stacked value."""
        shift: dict[Entry, float] = {}
        for entry, factor in value.shift.items():
            over, region = entry.axes[1:], entry.region
            where = (region[0] - 1, *region[1:]) if region is not None and region[0] > 0 else None
            found = entry._replace(axes=over, region=where)
            if entry.axes[0] is not None:
                named = self._name(("row", at, entry.name, entry.axes))
                found = Entry(named, numbered([evenness(each) for each in over]), where)
            shift = _plus(shift, {found: factor})
        return dataclasses.replace(self.unshifted(value.shape[1:]), shift=shift)

    def lifted(self, value: Value, axes: int) -> Value:
        """Reshape a scalar to an array with the given number of axes; other values are unchanged."""
        if value.shape or not axes:
            return value
        shift = {entry._replace(axes=(None,) * axes): factor for entry, factor in value.shift.items()}
        return dataclasses.replace(value, shape=(1,) * axes, even=frozenset(range(axes)), shift=shift)

    def without(self, operation: Operation, values: list[Value], *, pointwise: bool) -> list[Value]:
        """Return the properties of the results if no operand is shifted."""
        name, shapes = operation.name, operation.shapes
        even: frozenset[int] = frozenset()
        if name == "broadcast_in_dim":
            places = operation.params["broadcast_dimensions"]
            kept = {place for axis, place in enumerate(places) if axis not in values[0].even}
            even = frozenset(range(len(shapes[0]))) - kept
        elif pointwise:
            even = frozenset.intersection(*(each.even for each in values))
        found = [self.unshifted(shape, even) for shape in shapes]
        if name in ("broadcast_in_dim", "convert_element_type", "reshape") and values[0].constant is not None:
            found[0] = dataclasses.replace(found[0], constant=values[0].constant)
        return self.finite(operation, values) if name == "is_finite" else found

    def unseen(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for nonlinear functions: they must not depend on a shift."""
        raise KeptError

    def linear(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for operations whose result has the shift of the operand or the negative of that shift."""
        sign = -1.0 if operation.name == "neg" else 1.0
        return [self._shifted(operation.shapes[0], _times(values[0].shift, sign), values[0].even)]

    def converted(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for type conversions, which are linear unless they round to integers."""
        _require(jnp.issubdtype(operation.params["new_dtype"], jnp.floating))
        return self.linear(operation, values)

    def added(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for sums and differences."""
        one, other = values
        shape, even = operation.shapes[0], one.even & other.even
        if any(map(_is_infinite, values)):
            return [self.unshifted(shape, even)]
        sign = -1.0 if operation.name == "sub" else 1.0
        return [self._shifted(shape, _plus(one.shift, _times(other.shift, sign)), even)]

    def finite(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for tests of finiteness, whose results are assumed to be true."""
        return [dataclasses.replace(self.unshifted(operation.shapes[0]), sure=True)]

    def compared(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for comparisons, which depend only on the difference between their operands."""
        _require(any(map(_is_infinite, values)) or values[0].shift == values[1].shift)
        return [self.unshifted(operation.shapes[0])]

    def multiplied(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for products and quotients."""
        name, shape = operation.name, operation.shapes[0]
        one, other = values if values[0].shift else values[::-1]
        _require(not other.shift and (name == "mul" or one is values[0]))
        even = one.even & other.even
        if other.constant is not None and other.constant and math.isfinite(other.constant):
            factor = 1 / other.constant if name == "div" else other.constant
            return [self._shifted(shape, _times(one.shift, factor), even)]

        def evenly(entry: Entry) -> list[Evenness]:
            return [axis in other.even and evenness(entry.axes[axis]) for axis in range(len(shape))]

        return [self._shifted(shape, self._renamed(one, (name, other.name), evenly, keep_region=True), even)]

    def chosen(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for operations that select one of their operands elementwise."""
        if operation.name == "select_n":
            chooses, *values = values
            _require(not chooses.shift)
            if chooses.sure and len(values) == 2:
                return [values[1]]
        known = [each for each in values if not _is_infinite(each)]
        _require(bool(known) and all(each.shift == known[0].shift for each in known))
        return [self._shifted(operation.shapes[0], known[0].shift, frozenset())]

    def reduced(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for sums and extrema along axes."""
        (value,), name, axes = values, operation.name, operation.params["axes"]
        length = math.prod(value.shape[axis] for axis in axes)
        shift: dict[Entry, float] = {}
        for entry, factor in value.shift.items():
            left = tuple(each for axis, each in enumerate(entry.axes) if axis not in axes)
            if all(entry.axes[axis] is None for axis in axes):
                shift = _plus(shift, {Entry(entry.name, left): factor * (length if name == "reduce_sum" else 1)})
            else:
                _require(name == "reduce_sum")
                named = self._name(("sum", entry.name, entry.axes, tuple(axes)))
                shift = _plus(shift, {Entry(named, numbered([evenness(each) for each in left])): factor})
        return [self._shifted(operation.shapes[0], shift, frozenset())]

    def product(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for `dot_general`: sums of products over axes."""
        side = 0 if values[0].shift else 1
        one, other = values[side], values[1 - side]
        _require(not other.shift)
        numbers = operation.params["dimension_numbers"]
        batched, free = numbers[1], free_axes(operation.params, [each.shape for each in values])

        def even(entry: Entry) -> list[Evenness]:
            own = {axis: evenness(entry.axes[axis]) for axis in (*free[side], *batched[side])}
            theirs = {axis: axis in other.even for axis in (*free[1 - side], *batched[1 - side])}
            lead = [theirs[b] and own[a] for a, b in zip(batched[side], batched[1 - side], strict=True)]
            rows = [[own[a] for a in free[side]], [theirs[a] for a in free[1 - side]]]
            return lead + (rows[0] + rows[1] if side == 0 else rows[1] + rows[0])

        start = len(batched[0]) + (0 if side == 0 else len(free[0]))
        places = {axis: start + place for place, axis in enumerate(free[side])}
        shift = self._renamed(one, ("dot", str(numbers), side, other.name), even, places=places)
        return [self._shifted(operation.shapes[0], shift, frozenset())]

    def gathered(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for slices whose positions are not shifted."""
        (value, places), shape = values, operation.shapes[0]
        _require(not places.shift)
        numbers = operation.params["dimension_numbers"]
        over: list[int | None] = [None] * len(shape)
        for axis, offset in window_axes(numbers, len(value.shape)).items():
            _require(operation.params["slice_sizes"][axis] == value.shape[axis])
            over[offset] = axis
        rest = [axis for axis in range(len(shape)) if axis not in numbers.offset_dims]
        for axis, place in zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True):
            over[rest[place]] = axis
        shift: dict[Entry, float] = {}
        for entry, factor in value.shift.items():
            if all(entry.axes[axis] is None for axis in numbers.collapsed_slice_dims):
                axes = tuple(None if axis is None else entry.axes[axis] for axis in over)
                shift = _plus(shift, {Entry(entry.name, axes): factor})
                continue
            even = [axis is not None and evenness(entry.axes[axis]) for axis in over]
            named = self._name(("gather", places.name, str(numbers), entry.name, entry.axes))
            shift = _plus(shift, {Entry(named, numbered(even)): factor})
        return [self._shifted(shape, shift, frozenset())]

    def convolved(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for convolutions with a shifted kernel."""
        params, shape = operation.params, operation.shapes[0]
        _require(not values[0].shift and params["batch_group_count"] == params["feature_group_count"] == 1)
        numbers = params["dimension_numbers"]

        def even(entry: Entry) -> list[Evenness]:
            along = evenness(entry.axes[numbers.rhs_spec[0]])
            return [axis == numbers.out_spec[1] and along for axis in range(len(shape))]

        return [self._shifted(shape, self._renamed(values[1], ("conv", values[0].name), even), frozenset())]

    def rearranged(self, operation: Operation, values: list[Value]) -> list[Value]:
        """Rule for operations that move, repeat or cut elements."""
        return [self._moved(operation, values[0], shape, place) for place, shape in enumerate(operation.shapes)]

    def _moved(self, operation: Operation, value: Value, shape: tuple[int, ...], place: int) -> Value:
        name, params = operation.name, operation.params
        shift: dict[Entry, float] = {}
        for entry, factor in value.shift.items():
            found = moved(name, params, entry, value.shape, shape, place)
            if isinstance(found, Other):
                # A part of an unknown is the same before and after a broadcast.
                how = ("cut", found.cut) if found.cut else (name, str(params), place, entry.axes)
                named = self._name((*how, entry.name))
                found = Entry(named, numbered(found.even), found.region)
            if found is not None:
                shift = _plus(shift, {found: factor})
        return self._shifted(shape, shift, frozenset())

    def _renamed(
        self,
        value: Value,
        key: tuple,
        even: Callable[[Entry], list[Evenness]],
        *,
        places: dict[int, int] | None = None,
        keep_region: bool = False,
    ) -> dict[Entry, float]:
        shift: dict[Entry, float] = {}
        for entry, factor in value.shift.items():
            region = entry.region
            if region is not None and not keep_region:
                region = (places[region[0]], *region[1:]) if places and region[0] in places else None
            named = self._name((*key, entry.name, entry.axes))
            shift = _plus(shift, {Entry(named, numbered(even(entry)), region): factor})
        return shift

    def _name(self, key: Any) -> int:
        return self._names.setdefault(key, len(self._names))

    def _shifted(self, shape: tuple[int, ...], shift: dict[Entry, float], even: frozenset[int]) -> Value:
        return dataclasses.replace(self.unshifted(shape, even), shift=shift)


def _plus(one: dict[Entry, float], other: dict[Entry, float]) -> dict[Entry, float]:
    total = dict(one)
    for entry, factor in other.items():
        # Without this rounding, n · (1/n) could differ from one.
        total[entry] = round(total.get(entry, 0.0) + factor, 12)
    return {entry: factor for entry, factor in total.items() if factor}


def _times(shift: dict[Entry, float], factor: float) -> dict[Entry, float]:
    return {entry: each * factor for entry, each in shift.items()}


def _is_infinite(value: Value) -> bool:
    return value.constant is not None and not abs(value.constant) < _INFINITE


def _require(condition: bool) -> None:
    if not condition:
        raise KeptError
