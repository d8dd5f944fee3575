"""What each operation does to the exponents of its operands."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.extend.core import JaxprEqn

from dynascope.symmetry.exponents import Exponents
from dynascope.symmetry.homogeneity import (
    Degree,
    agreeing,
    even_along,
    invariant,
    multiplied,
    raised,
    require_invariant,
    viewed,
)
from dynascope.symmetry.program_loops import sliced
from dynascope.symmetry.views import VIEWS, shape_of, view_of

__all__ = ["Rules"]

_SMALL = 1e-2  # a positive number added below it is taken for the ε of a norm
_POWERS = {"square": 2, "sqrt": Fraction(1, 2), "rsqrt": Fraction(-1, 2), "cbrt": Fraction(1, 3)}
_UNCHANGED = ("copy", "copy_p", "neg", "abs", "stop_gradient", "reduce_precision", "optimization_barrier")
_UNCHANGED += ("real", "imag", "conj")
_EVEN = {"reduce_sum": "axes", "reduce_max": "axes", "reduce_min": "axes", "cumsum": "axis", "cummax": "axis"}
_EVEN |= {"cummin": "axis", "reduce_prod": "axes", "argmax": "axes", "argmin": "axes"}
_AGREE = ("add", "sub", "max", "min", "add_any", "clamp", "nextafter", "rem", "complex")
_COMPARE = ("gt", "ge", "lt", "le", "eq", "ne", "atan2")
_ELEMENTWISE = {*_AGREE, *_COMPARE, "mul", "div", "pow", "select_n"}
_WINDOWS = ("reduce_window_max", "reduce_window_min", "reduce_window_sum", "reduce_window")


class Rules:
    """One method a kind of operation; what none of them knows does not change, and neither may its operands.

    Args:
        solver: What the exponents are tied in.
        exact: Whether the ε of a norm counts; if not, a small positive number that is added counts as zero.
    """

    def __init__(self, solver: Exponents, *, exact: bool):
        self.solver = solver
        self.exact = exact
        self.split: dict[int, list[tuple[frozenset[int], ...]]] = {}
        self.stacked: dict[int, set[int]] = {}
        self.loose: set[int] = set()
        self.chosen: set[tuple[int, Any]] = set()
        self.met_epsilon = False

    def apply(self, equation: JaxprEqn, degrees: list[Degree]) -> list[Degree]:
        """The degrees of the results."""
        name, params = equation.primitive.name, equation.params
        shapes = list(map(shape_of, equation.outvars))
        solver = self.solver
        if name in _ELEMENTWISE:
            degrees = [_lifted(each, len(shapes[0])) for each in degrees]
        if name == "slice":
            self._note_pieces(degrees[0], shapes[0])
        if name in VIEWS:
            return [view_of(name, params, degrees, shape, solver, i) for i, shape in enumerate(shapes)]
        if name == "convert_element_type":
            if jnp.issubdtype(params["new_dtype"], jnp.floating):
                return degrees
        elif name in _UNCHANGED:
            return [raised(solver, each, 1) for each in degrees]
        elif name in _AGREE:
            return [agreeing(solver, self._without_epsilon(degrees), shapes[0])]
        elif name == "select_n":
            require_invariant(solver, degrees[0])
            return [agreeing(solver, degrees[1:], shapes[0])]
        elif name in _COMPARE:
            agreeing(solver, degrees, shapes[0])
            return [invariant(shapes[0])]
        elif name in ("sign", "is_finite"):
            return [invariant(shapes[0])]
        elif name in ("mul", "div"):
            for number, other in ((degrees[1], degrees[0]), *([degrees] if name == "mul" else [])):
                if number.constant is not None and number.constant and math.isfinite(number.constant):
                    return [dataclasses.replace(other, shape=shapes[0], constant=None)]
            second = degrees[1] if name == "mul" else raised(solver, degrees[1], -1)
            return [multiplied(solver, degrees[0], second, shapes[0])]
        elif name in _POWERS:
            return [raised(solver, degrees[0], _POWERS[name])]
        elif name == "integer_pow":
            return [raised(solver, degrees[0], params["y"])]
        elif name == "pow" and degrees[1].constant is not None and math.isfinite(degrees[1].constant):
            return [raised(solver, degrees[0], Fraction(degrees[1].constant).limit_denominator(10**6))]
        elif name in _EVEN:
            return [self._reduced(name, params[_EVEN[name]], degrees[0], shapes[0])]
        elif name in ("sort", "top_k"):
            return self._sorted(name, params, degrees, shapes)
        elif name in _WINDOWS:
            wide = [axis for axis, length in enumerate(params["window_dimensions"]) if length > 1]
            return [self._resized(even_along(solver, degrees[0], wide), shapes[0])]
        elif name in ("dynamic_slice", "gather"):
            return [self._picked(name, params, degrees, shapes[0])]
        elif name in ("scatter", "scatter-add", "scatter-max", "scatter-min", "dynamic_update_slice"):
            return [self._written(name, params, degrees, shapes[0])]
        elif name == "dot_general":
            return [self._product(params, degrees, shapes[0])]
        elif name == "conv_general_dilated" and params["batch_group_count"] == 1:
            return [self._convolution(params, degrees, shapes[0])]
        for degree in degrees:
            require_invariant(solver, degree)
        return [invariant(shape) for shape in shapes]

    def _without_epsilon(self, degrees: list[Degree]) -> list[Degree]:
        kept = [each for each in degrees if each.constant is None or not 0 < each.constant <= _SMALL]
        self.met_epsilon |= 0 < len(kept) < len(degrees)
        return degrees if self.exact else kept or degrees

    def _reduced(self, name: str, axes: Any, degree: Degree, shape: tuple[int, ...]) -> Degree:
        gone = (axes,) if isinstance(axes, int) else tuple(axes)
        even = even_along(self.solver, degree, gone)
        if name.startswith("cum"):
            return self._resized(even, shape)
        if name == "reduce_prod":
            even = raised(self.solver, even, math.prod(degree.shape[axis] for axis in gone))
        if name.startswith("arg"):
            return invariant(shape)
        return viewed(even, shape, lambda each: each.reshape([n for i, n in enumerate(each.shape) if i not in gone]))

    def _sorted(self, name: str, params: Any, degrees: list[Degree], shapes: list[tuple[int, ...]]) -> list[Degree]:
        if name == "top_k":
            even = even_along(self.solver, degrees[0], [len(degrees[0].shape) - 1])
            return [self._resized(even, shapes[0]), invariant(shapes[1])]
        evens = [even_along(self.solver, each, [params["dimension"]]) for each in degrees]
        return [self._resized(each, shape) for each, shape in zip(evens, shapes, strict=True)]

    def _picked(self, name: str, params: Any, degrees: list[Degree], shape: tuple[int, ...]) -> Degree:
        operand, *indices = degrees
        if name == "dynamic_slice":
            known = sliced(operand.shape, params["slice_sizes"], [each.constant for each in indices])
            if known is not None:
                self._note_pieces(operand, shape)
                return view_of("slice", known, [operand], shape, self.solver, 0)
        for index in indices:
            require_invariant(self.solver, index)
        partial = [a for a, (n, all) in enumerate(zip(params["slice_sizes"], operand.shape, strict=True)) if n < all]
        even = even_along(self.solver, operand, partial)
        if name == "dynamic_slice":
            return self._resized(even, shape)
        numbers = params["dimension_numbers"]
        gone = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
        even = even_along(self.solver, even, [axis for axis in gone if even.shape[axis] > 1])
        kept = [axis for axis in range(len(operand.shape)) if axis not in gone]

        def place(each: np.ndarray) -> np.ndarray:
            lengths = [1] * len(shape)
            for axis, offset in zip(kept, numbers.offset_dims, strict=True):
                lengths[offset] = each.shape[axis]
            return each.reshape(lengths)

        return viewed(even, shape, place)

    def _written(self, name: str, params: Any, degrees: list[Degree], shape: tuple[int, ...]) -> Degree:
        """Of an array into which others are written or added somewhere along some axes: the same for all of them."""
        into, *others = degrees
        if name == "dynamic_update_slice":
            rows, *indices = others
            window = list(range(len(shape)))
            places = window
        else:
            index, rows = others
            indices, numbers = [index], params["dimension_numbers"]
            window = list(numbers.update_window_dims)
            gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
            places = [axis for axis in range(len(shape)) if axis not in gone]
        for each in indices:
            require_invariant(self.solver, each)
        whole = {p: w for p, w in zip(places, window, strict=True) if rows.shape[w] == shape[p]}
        into = even_along(self.solver, into, [axis for axis in range(len(shape)) if axis not in whole])
        rows = even_along(self.solver, rows, [axis for axis in range(len(rows.shape)) if axis not in whole.values()])

        def place(each: np.ndarray) -> np.ndarray:
            lengths = [1] * len(shape)
            for axis, where in whole.items():
                lengths[axis] = each.shape[where]
            return each.reshape(lengths)

        return agreeing(self.solver, [into, viewed(rows, shape, place)], shape)

    def _product(self, params: Any, degrees: list[Degree], shape: tuple[int, ...]) -> Degree:
        contracted, batched = params["dimension_numbers"]
        free = [
            [axis for axis in range(len(each.shape)) if axis not in (*contracted[side], *batched[side])]
            for side, each in enumerate(degrees)
        ]
        for side, each in enumerate(degrees):
            self._note(each, [(*contracted[side], *batched[side]), (*free[side], *batched[side])])
        # Indices in the order batch, left, right, contracted.
        counts = len(batched[0]), len(free[0]), len(free[1]), len(contracted[0])
        placed = []
        for side, each in enumerate(degrees):
            order = [*batched[side], *free[side], *contracted[side]]

            def spread(array: np.ndarray, order: list[int] = order, side: int = side) -> np.ndarray:
                lengths = array.transpose(order).shape
                b, f = counts[0], counts[0] + counts[1 + side]
                lead, own, last = lengths[:b], lengths[b:f], lengths[f:]
                before = own if side == 0 else (1,) * counts[1]
                after = own if side == 1 else (1,) * counts[2]
                return array.transpose(order).reshape(*lead, *before, *after, *last)

            placed.append(viewed(each, spread(np.empty(each.shape, bool)).shape, spread))
        whole = np.broadcast_shapes(*(each.shape for each in placed))
        product = multiplied(self.solver, placed[0], placed[1], whole)
        even = self._contracted(product, range(len(whole) - counts[3], len(whole)), range(counts[0]), degrees)
        return viewed(even, shape, lambda each: each.reshape(each.shape[: len(shape)]))

    def _convolution(self, params: Any, degrees: list[Degree], shape: tuple[int, ...]) -> Degree:
        numbers, groups = params["dimension_numbers"], params["feature_group_count"]
        inputs, kernel = degrees
        self._note(kernel, [numbers.rhs_spec[:2]] if groups > 1 else [numbers.rhs_spec[1:2], numbers.rhs_spec[:1]])
        inputs = even_along(self.solver, inputs, numbers.lhs_spec[2:])
        kernel = even_along(self.solver, kernel, numbers.rhs_spec[2:])
        batch, features = numbers.lhs_spec[:2]
        out, into = numbers.rhs_spec[:2]
        n, total = inputs.shape[batch], inputs.shape[features]

        # Indices in the order batch, group, outputs of the group, inputs of the group.
        def of_inputs(each: np.ndarray) -> np.ndarray:
            each = each.transpose([batch, features, *numbers.lhs_spec[2:]]).reshape(each.shape[batch], -1)
            return each.reshape(len(each), *((groups, 1, total // groups) if each.shape[1] > 1 else (1, 1, 1)))

        def of_kernel(each: np.ndarray) -> np.ndarray:
            rows = each.shape[out]
            each = each.transpose([out, into, *numbers.rhs_spec[2:]]).reshape(rows, each.shape[into])
            return each.reshape(1, *((groups, rows // groups) if rows > 1 else (1, 1)), each.shape[1])

        whole = n, groups, shape[numbers.out_spec[1]] // groups, total // groups
        first = viewed(inputs, (n, groups, 1, total // groups), of_inputs)
        second = viewed(kernel, (1, *whole[1:]), of_kernel)
        even = self._contracted(multiplied(self.solver, first, second, whole), [3], [1], [degrees[1]])

        def back(each: np.ndarray) -> np.ndarray:
            rows = each.shape[0]
            grouped = each[..., 0]
            if grouped.shape[1:] != (1, 1):
                grouped = np.broadcast_to(grouped, (rows, *whole[1:3]))
            lengths = [1] * len(shape)
            lengths[numbers.out_spec[0]] = rows
            lengths[numbers.out_spec[1]] = grouped[0].size
            # Batch stands before the features or after them.
            flat = grouped.reshape(rows, -1)
            return (flat if numbers.out_spec[0] < numbers.out_spec[1] else flat.T).reshape(lengths)

        return viewed(even, shape, back)

    def _contracted(
        self, product: Degree, axes: Sequence[int], shared: Sequence[int], operands: list[Degree]
    ) -> Degree:
        """The degree of the sum over axes, of which no part is left to the first use of a parameter.

        A parameter of the exponents f(k) + g(j) may have a number added to one and taken from the other: f is chosen so
        that with what the parameter is multiplied by it is zero, and g is the exponent of the sum.
        """
        even = even_along(self.solver, product, axes)
        for operand in operands:
            if operand.origin is None or operand.origin.parameter not in self.loose:
                continue
            piece = operand.origin.parameter, operand.origin.piece
            if piece not in self.chosen:
                uneven = any(term.shape[axis] > 1 for term in product.terms for axis in axes)
                if product.free.all() or not uneven:
                    continue
                self.chosen.add(piece)
                whole = even.terms[-1]
                self.solver.vanish(whole[tuple(slice(None if a in shared else 1) for a in range(whole.ndim))])
        return even

    def _note_pieces(self, degree: Degree, shape: Sequence[int]) -> None:
        for axis, (size, length) in enumerate(zip(shape, degree.shape, strict=True)):
            if size == 1 < length:
                self.note_stack(degree, axis)

    def note_stack(self, degree: Degree, axis: int) -> None:
        """Remember that a parameter is read piece by piece along an axis, so that each has its own exponents."""
        if degree.origin is not None:
            self.stacked.setdefault(degree.origin.parameter, set()).update(degree.origin.axes[axis])

    def _note(self, degree: Degree, sets: list[tuple[int, ...]]) -> None:
        """Remember on which axes of a parameter its exponents have to depend together."""
        if degree.origin is None:
            return
        axes = degree.origin.axes
        found = tuple(frozenset().union(*(axes[axis] for axis in each)) for each in sets)
        self.split.setdefault(degree.origin.parameter, []).append(found)

    def _resized(self, degree: Degree, shape: tuple[int, ...]) -> Degree:
        """The same along axes of another length, along which it is even."""
        return Degree(shape, degree.terms, degree.free)


def _lifted(degree: Degree, axes: int) -> Degree:
    """A single number as an array of so many axes, which it broadcasts to."""
    if degree.shape or not axes:
        return degree
    return viewed(degree, (1,) * axes, lambda each: each.reshape((1,) * axes))
