"""Rules for the effect of each operation on the scaling exponents of its operands."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np

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
from dynascope.symmetry.operation import Operation, free_axes, window_axes
from dynascope.symmetry.views import rearranged

__all__ = ["ScalingRules"]

_SMALL = 1e-2  # a positive constant up to this size that is added counts as the ε of a norm
_POWERS = {"square": 2, "sqrt": Fraction(1, 2), "rsqrt": Fraction(-1, 2), "cbrt": Fraction(1, 3)}


class ScalingRules:
    """The scaling rules, with one method per kind of operation.

    Args:
        solver: The solver that collects the equations between exponents.
        exact: Whether the ε of a normalisation layer breaks rescalings. If False, an added small positive number is
            treated as zero.
    """

    def __init__(self, solver: Exponents, *, exact: bool):
        self.solver = solver
        self.exact = exact
        self.split: dict[int, list[tuple[frozenset[int], ...]]] = {}
        self.stacked: dict[int, set[int]] = {}
        self.loose: set[int] = set()
        self.chosen_pieces: set[tuple[int, Any]] = set()
        self.met_epsilon = False

    def fixed(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for functions that are not homogeneous: operands and results must not change."""
        for degree in degrees:
            require_invariant(self.solver, degree)
        return self.scaleless(operation, degrees)

    def scaleless(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for functions that are invariant under positive rescaling of their operands, such as signs."""
        return [invariant(shape) for shape in operation.shapes]

    def kept(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for operations whose results scale like their operands."""
        return [raised(self.solver, each, 1) for each in degrees]

    def converted(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for type conversions; integers must not change."""
        is_floating = jnp.issubdtype(operation.params["new_dtype"], jnp.floating)
        return degrees if is_floating else self.fixed(operation, degrees)

    def agreeing(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for sums and for choices among operands: all operands have the same exponents."""
        kept = [each for each in degrees if each.constant is None or not 0 < each.constant <= _SMALL]
        self.met_epsilon |= 0 < len(kept) < len(degrees)
        return [agreeing(self.solver, degrees if self.exact else kept or degrees, operation.shapes[0])]

    def chosen(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for selections; the first operand selects one of the others."""
        require_invariant(self.solver, degrees[0])
        return [agreeing(self.solver, degrees[1:], operation.shapes[0])]

    def compared(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for operations that depend only on the ratio of their operands."""
        agreeing(self.solver, degrees, operation.shapes[0])
        return self.scaleless(operation, degrees)

    def multiplied(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for products and quotients."""
        shape = operation.shapes[0]
        for number, other in ((degrees[1], degrees[0]), *([degrees] if operation.name == "mul" else [])):
            if number.constant is not None and number.constant and math.isfinite(number.constant):
                return [dataclasses.replace(other, shape=shape, constant=None)]
        second = degrees[1] if operation.name == "mul" else raised(self.solver, degrees[1], -1)
        return [multiplied(self.solver, degrees[0], second, shape)]

    def power(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for powers with a known exponent."""
        if operation.name == "pow":
            number = degrees[1].constant
            if number is None or not math.isfinite(number):
                return self.fixed(operation, degrees)
            power = Fraction(number).limit_denominator(10**6)
        else:
            power = operation.params["y"] if operation.name == "integer_pow" else _POWERS[operation.name]
        return [raised(self.solver, degrees[0], power)]

    def rearranged(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for operations that move, repeat, cut or join elements."""
        if operation.name == "slice":
            for axis, (size, length) in enumerate(zip(operation.shapes[0], degrees[0].shape, strict=True)):
                if size == 1 < length:
                    self.note_stack(degrees[0], axis)
        return rearranged(operation, degrees, self.solver)

    def reduced(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for sums, products and extrema along axes, and for the positions of extrema."""
        (degree,), name, shape = degrees, operation.name, operation.shapes[0]
        axes = tuple(map(int, operation.params["axes"]))  # `vmap` gives NumPy integers
        even = even_along(self.solver, degree, axes)
        if name == "reduce_prod":
            even = raised(self.solver, even, math.prod(degree.shape[axis] for axis in axes))
        if name.startswith("arg"):
            return self.scaleless(operation, degrees)
        left = [axis for axis in range(len(degree.shape)) if axis not in axes]
        return [viewed(even, shape, lambda each: each.reshape([each.shape[axis] for axis in left]))]

    def accumulated(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for cumulative sums and extrema along an axis."""
        return self._even(operation, degrees, [operation.params["axis"]])

    def windowed(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for sums and extrema in windows."""
        lengths = operation.params["window_dimensions"]
        return self._even(operation, degrees[:1], [axis for axis, length in enumerate(lengths) if length > 1])

    def sorted(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for sorting; the first operand is the key."""
        return self._even(operation, degrees, [operation.params["dimension"]])

    def largest(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for the largest elements along the last axis and their positions."""
        return [*self._even(operation, degrees, [len(degrees[0].shape) - 1]), invariant(operation.shapes[1])]

    def _even(self, operation: Operation, degrees: list[Degree], axes: Sequence[int]) -> list[Degree]:
        """Impose equal exponents along axes, which may have any length in the results."""
        evens = [even_along(self.solver, each, axes) for each in degrees]
        return [Degree(shape, each.terms, each.free) for each, shape in zip(evens, operation.shapes, strict=False)]

    def sliced(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for a slice with unknown start."""
        return self._even(operation, [self._picked(operation, degrees)], [])

    def gathered(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for slices at unknown positions."""
        picked, shape = self._picked(operation, degrees), operation.shapes[0]
        places = window_axes(operation.params["dimension_numbers"], len(picked.shape))
        even = even_along(self.solver, picked, [a for a, n in enumerate(picked.shape) if a not in places and n > 1])
        return [viewed(even, shape, _placing(places, len(shape)))]

    def _picked(self, operation: Operation, degrees: list[Degree]) -> Degree:
        """Impose equal exponents along the axes that are only partly selected."""
        operand, *indices = degrees
        for index in indices:
            require_invariant(self.solver, index)
        sizes = enumerate(zip(operation.params["slice_sizes"], operand.shape, strict=True))
        return even_along(self.solver, operand, [axis for axis, (size, length) in sizes if size < length])

    def scattered(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for writing or adding slices to an array at unknown positions."""
        into, index, rows = degrees
        numbers = operation.params["dimension_numbers"]
        gone = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        places = [axis for axis in range(len(into.shape)) if axis not in gone]
        return self._written(into, rows, [index], dict(zip(places, numbers.update_window_dims, strict=True)))

    def updated(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for writing one slice with unknown start to an array."""
        into, rows, *indices = degrees
        return self._written(into, rows, indices, {axis: axis for axis in range(len(into.shape))})

    def _written(self, into: Degree, rows: Degree, indices: list[Degree], window: dict[int, int]) -> list[Degree]:
        """Equate the exponents of the array and the slices, constant along the axes that are only partly written."""
        for each in indices:
            require_invariant(self.solver, each)
        shape = into.shape
        whole = {axis: own for axis, own in window.items() if rows.shape[own] == shape[axis]}
        into = even_along(self.solver, into, [axis for axis in range(len(shape)) if axis not in whole])
        rows = even_along(self.solver, rows, [axis for axis in range(len(rows.shape)) if axis not in whole.values()])
        back = _placing({own: axis for axis, own in whole.items()}, len(shape))
        return [agreeing(self.solver, [into, viewed(rows, shape, back)], shape)]

    def product(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for `dot_general`: sums of products over axes."""
        contracted, batched = operation.params["dimension_numbers"]
        free = free_axes(operation.params, [each.shape for each in degrees])
        for side, each in enumerate(degrees):
            self._note(each, [(*contracted[side], *batched[side]), (*free[side], *batched[side])])
        # Order of the axes: batch, left, right, contracted.
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
        shape = operation.shapes[0]
        return [viewed(even, shape, lambda each: each.reshape(each.shape[: len(shape)]))]

    def convolved(self, operation: Operation, degrees: list[Degree]) -> list[Degree]:
        """Rule for convolutions, with or without feature groups."""
        params, shape = operation.params, operation.shapes[0]
        if params["batch_group_count"] != 1:
            return self.fixed(operation, degrees)
        numbers, groups = params["dimension_numbers"], params["feature_group_count"]
        inputs, kernel = degrees
        self._note(kernel, [numbers.rhs_spec[:2]] if groups > 1 else [numbers.rhs_spec[1:2], numbers.rhs_spec[:1]])
        inputs = even_along(self.solver, inputs, numbers.lhs_spec[2:])
        kernel = even_along(self.solver, kernel, numbers.rhs_spec[2:])
        batch, features = numbers.lhs_spec[:2]
        out, into = numbers.rhs_spec[:2]
        n, total = inputs.shape[batch], inputs.shape[features]

        # Order of the axes: batch, group, outputs of the group, inputs of the group.
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
            # The batch axis comes before or after the feature axis.
            flat = grouped.reshape(rows, -1)
            return (flat if numbers.out_spec[0] < numbers.out_spec[1] else flat.T).reshape(lengths)

        return [viewed(even, shape, back)]

    def _contracted(
        self, product: Degree, axes: Sequence[int], shared: Sequence[int], operands: list[Degree]
    ) -> Degree:
        """Return the degree of the sum over axes; at the first use of a parameter, also fix its gauge.

        Exponents of the form f(k) + g(j) do not change if a constant is moved from f to g. The constant is chosen such
        that f and the exponents of the other factor add up to zero. Then g is the exponent of the sum.
        """
        even = even_along(self.solver, product, axes)
        for operand in operands:
            if operand.origin is None or operand.origin.parameter not in self.loose:
                continue
            piece = operand.origin.parameter, operand.origin.piece
            if piece not in self.chosen_pieces:
                uneven = any(term.shape[axis] > 1 for term in product.terms for axis in axes)
                if product.free.all() or not uneven:
                    continue
                self.chosen_pieces.add(piece)
                whole = even.terms[-1]
                self.solver.vanish(whole[tuple(slice(None if a in shared else 1) for a in range(whole.ndim))])
        return even

    def note_stack(self, degree: Degree, axis: int) -> None:
        """Record that a parameter is read piece by piece along an axis, so that each piece has separate exponents."""
        if degree.origin is not None:
            self.stacked.setdefault(degree.origin.parameter, set()).update(degree.origin.axes[axis])

    def _note(self, degree: Degree, sets: list[tuple[int, ...]]) -> None:
        """Record sets of axes of a parameter; its exponents are sums of one function for each set."""
        if degree.origin is None:
            return
        axes = degree.origin.axes
        found = tuple(frozenset().union(*(axes[axis] for axis in each)) for each in sets)
        self.split.setdefault(degree.origin.parameter, []).append(found)


def _placing(places: dict[int, int], axes: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that moves axes of an array to given axes of a new array whose other axes have length one."""

    def place(each: np.ndarray) -> np.ndarray:
        lengths = [1] * axes
        for own, axis in places.items():
            lengths[axis] = each.shape[own]
        return each.reshape(lengths)

    return place
