"""What each operation does to a shift of its operands."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend.core import JaxprEqn

from dynascope.symmetry.shift_views import Entry, Evenness, Other, Region, evenness, moved, numbered
from dynascope.symmetry.views import shape_of

__all__ = ["KeptError", "ShiftRules", "Value", "entering"]

_INFINITE = 1e9  # what is so large in a mask is as good as infinite, beside which a shift is nothing
_LINEAR = ("neg", "copy", "copy_p", "stop_gradient", "reduce_precision", "convert_element_type", "real")
_ELEMENTWISE = {"add", "sub", "add_any", "mul", "div", "max", "min", "select_n", "gt", "ge", "lt", "le", "eq", "ne"}
_KEEP_EVEN = {*_ELEMENTWISE, *_LINEAR, "sqrt", "rsqrt", "exp", "log", "square", "integer_pow"}
_COMPARE = ("gt", "ge", "lt", "le", "eq", "ne")


class KeptError(Exception):
    """Something that is not linear sees the shift."""


@dataclasses.dataclass(frozen=True)
class Value:
    """What is known of a value.

    Attributes:
        name: Which one.
        shape: Its shape.
        shift: What is added to it: a factor for each unknown.
        even: Axes along which the value itself is constant.
        constant: Its value, where it is one known number.
        sure: Whether it is true.
    """

    name: int
    shape: tuple[int, ...]
    shift: dict[Entry, float]
    even: frozenset[int]
    constant: float | None = None
    sure: bool = False


def entering(value: Value, even: Sequence[Evenness], region: Region | None) -> Value:
    """A parameter with an unknown added to it that is even along some of its axes, and zero beyond a region."""
    axes = numbered(even)
    return dataclasses.replace(value, shift={Entry(-1, axes, region): 1.0})


class ShiftRules:
    """The rules; equal operations on equal unknowns give equal unknowns."""

    def __init__(self) -> None:
        self._names: dict[Any, int] = {}
        self._values = itertools.count()

    def unshifted(self, shape: Sequence[int], even: Iterable[int] = ()) -> Value:
        """A value without a shift."""
        single = {axis for axis, length in enumerate(shape) if length == 1}
        return Value(next(self._values), tuple(shape), {}, frozenset({*even} | single))

    def constant(self, value: Any) -> Value:
        """A value that is known."""
        shape = np.shape(value)
        found = self.unshifted(shape)
        if math.prod(shape) != 1 or not jnp.issubdtype(jnp.result_type(value), jnp.number):
            return found
        return dataclasses.replace(found, constant=float(np.asarray(value).ravel()[0]))

    def is_even(self, value: Value, axis: int) -> bool:
        """Whether its shift is constant along an axis."""
        return all(entry.axes[axis] is None for entry in value.shift)

    def row(self, value: Value, at: int) -> Value:
        """One of what is stacked."""
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

    def sliced(self, params: Any, value: Value, shape: tuple[int, ...]) -> list[Value]:
        """A piece of a value."""
        return [self._rearranged("slice", params, value, shape, 0)]

    def apply(self, equation: JaxprEqn, values: list[Value]) -> list[Value]:
        """What is known of the results."""
        name, params = equation.primitive.name, equation.params
        shapes = list(map(shape_of, equation.outvars))
        if name in _ELEMENTWISE:
            values = [_lifted(each, len(shapes[0])) for each in values]
        if not any(each.shift for each in values):
            return self._unshifted(name, params, values, shapes)
        first, shape = values[0], shapes[0]
        if name in _LINEAR:
            if name == "convert_element_type" and not jnp.issubdtype(params["new_dtype"], jnp.floating):
                raise KeptError
            return [self._shifted(shape, _times(first.shift, -1.0 if name == "neg" else 1.0), first.even)]
        if name in ("add", "sub", "add_any"):
            sign = -1.0 if name == "sub" else 1.0
            even = values[0].even & values[1].even
            if any(_is_infinite(each) for each in values):
                return [self.unshifted(shape, even)]
            return [self._shifted(shape, _plus(first.shift, _times(values[1].shift, sign)), even)]
        if name in ("mul", "div"):
            return [self._multiplied(name, values, shape)]
        if name == "is_finite":
            return [dataclasses.replace(self.unshifted(shape), sure=True)]
        if name in _COMPARE:
            _require(any(map(_is_infinite, values)) or values[0].shift == values[1].shift)
            return [self.unshifted(shape)]
        if name in ("max", "min", "select_n"):
            return [self._chosen(name, values, shape)]
        if name in ("reduce_sum", "reduce_max", "reduce_min"):
            return [self._reduced(name, params["axes"], first, shape)]
        if name == "dot_general":
            return [self._product(params, values, shape)]
        if name == "gather" and not values[1].shift:
            return [self._gathered(params, values, shape)]
        if name == "conv_general_dilated":
            return [self._convolved(params, values, shape)]
        if name in ("transpose", "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "slice", "split"):
            return [self._rearranged(name, params, first, each, place) for place, each in enumerate(shapes)]
        raise KeptError

    def _unshifted(self, name: str, params: Any, values: list[Value], shapes: list[tuple[int, ...]]) -> list[Value]:
        even: frozenset[int] = frozenset()
        if name == "broadcast_in_dim":
            places = params["broadcast_dimensions"]
            kept = {place for axis, place in enumerate(places) if axis not in values[0].even}
            even = frozenset(range(len(shapes[0]))) - kept
        elif name in _KEEP_EVEN:
            even = frozenset.intersection(*(each.even for each in values))
        found = [self.unshifted(shape, even) for shape in shapes]
        if name in ("broadcast_in_dim", "convert_element_type", "reshape") and values[0].constant is not None:
            found[0] = dataclasses.replace(found[0], constant=values[0].constant)
        if name == "is_finite":
            found[0] = dataclasses.replace(found[0], sure=True)
        return found

    def _multiplied(self, name: str, values: list[Value], shape: tuple[int, ...]) -> Value:
        one, other = values if values[0].shift else values[::-1]
        _require(not other.shift and (name == "mul" or one is values[0]))
        even = one.even & other.even
        if other.constant is not None and other.constant and math.isfinite(other.constant):
            factor = 1 / other.constant if name == "div" else other.constant
            return self._shifted(shape, _times(one.shift, factor), even)

        def evenly(entry: Entry) -> list[Evenness]:
            return [axis in other.even and evenness(entry.axes[axis]) for axis in range(len(shape))]

        return self._shifted(shape, self._renamed(one, (name, other.name), evenly, keep_region=True), even)

    def _chosen(self, name: str, values: list[Value], shape: tuple[int, ...]) -> Value:
        if name == "select_n":
            chooses, *values = values
            _require(not chooses.shift)
            if chooses.sure and len(values) == 2:
                return values[1]
        known = [each for each in values if not _is_infinite(each)]
        _require(bool(known) and all(each.shift == known[0].shift for each in known))
        return self._shifted(shape, known[0].shift, frozenset())

    def _reduced(self, name: str, axes: Sequence[int], value: Value, shape: tuple[int, ...]) -> Value:
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
        return self._shifted(shape, shift, frozenset())

    def _product(self, params: Any, values: list[Value], shape: tuple[int, ...]) -> Value:
        side = 0 if values[0].shift else 1
        one, other = values[side], values[1 - side]
        _require(not other.shift)
        contracted, batched = params["dimension_numbers"]
        free = [
            [a for a in range(len(v.shape)) if a not in (*contracted[s], *batched[s])] for s, v in enumerate(values)
        ]

        def even(entry: Entry) -> list[Evenness]:
            own = {axis: evenness(entry.axes[axis]) for axis in (*free[side], *batched[side])}
            theirs = {axis: axis in other.even for axis in (*free[1 - side], *batched[1 - side])}
            lead = [theirs[b] and own[a] for a, b in zip(batched[side], batched[1 - side], strict=True)]
            rows = [[own[a] for a in free[side]], [theirs[a] for a in free[1 - side]]]
            return lead + (rows[0] + rows[1] if side == 0 else rows[1] + rows[0])

        start = len(batched[0]) + (0 if side == 0 else len(free[0]))
        places = {axis: start + place for place, axis in enumerate(free[side])}
        shift = self._renamed(one, ("dot", str(params["dimension_numbers"]), side, other.name), even, places=places)
        return self._shifted(shape, shift, frozenset())

    def _gathered(self, params: Any, values: list[Value], shape: tuple[int, ...]) -> Value:
        numbers, value = params["dimension_numbers"], values[0]
        gone = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        kept = [axis for axis in range(len(value.shape)) if axis not in gone]
        over: list[int | None] = [None] * len(shape)
        for offset, axis in zip(numbers.offset_dims, kept, strict=True):
            _require(params["slice_sizes"][axis] == value.shape[axis])
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
            named = self._name(("gather", values[1].name, str(numbers), entry.name, entry.axes))
            shift = _plus(shift, {Entry(named, numbered(even)): factor})
        return self._shifted(shape, shift, frozenset())

    def _convolved(self, params: Any, values: list[Value], shape: tuple[int, ...]) -> Value:
        _require(not values[0].shift and params["batch_group_count"] == params["feature_group_count"] == 1)
        numbers = params["dimension_numbers"]

        def even(entry: Entry) -> list[Evenness]:
            along = evenness(entry.axes[numbers.rhs_spec[0]])
            return [axis == numbers.out_spec[1] and along for axis in range(len(shape))]

        return self._shifted(shape, self._renamed(values[1], ("conv", values[0].name), even), frozenset())

    def _rearranged(self, name: str, params: Any, value: Value, shape: tuple[int, ...], place: int) -> Value:
        shift: dict[Entry, float] = {}
        for entry, factor in value.shift.items():
            found = moved(name, params, entry, value.shape, shape, place)
            if isinstance(found, Other):
                # A part of an unknown is the same before and after it is broadcast.
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


def _lifted(value: Value, axes: int) -> Value:
    """A single number as an array of so many axes."""
    if value.shape or not axes:
        return value
    shift = {entry._replace(axes=(None,) * axes): factor for entry, factor in value.shift.items()}
    return dataclasses.replace(value, shape=(1,) * axes, even=frozenset(range(axes)), shift=shift)


def _plus(one: dict[Entry, float], other: dict[Entry, float]) -> dict[Entry, float]:
    total = dict(one)
    for entry, factor in other.items():
        # Rounding aside, n times 1/n is one.
        total[entry] = round(total.get(entry, 0.0) + factor, 12)
    return {entry: factor for entry, factor in total.items() if factor}


def _times(shift: dict[Entry, float], factor: float) -> dict[Entry, float]:
    return {entry: each * factor for entry, each in shift.items()}


def _is_infinite(value: Value) -> bool:
    return value.constant is not None and not abs(value.constant) < _INFINITE


def _require(condition: bool) -> None:
    if not condition:
        raise KeptError
