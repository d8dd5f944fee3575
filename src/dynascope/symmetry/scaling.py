"""Rescalings of parameters that leave a function unchanged, computed from the scaling exponents of every value."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, JaxprEqn

from dynascope.symmetry.exponents import Exponents
from dynascope.symmetry.homogeneity import Degree, Origin, agreeing, even_along, invariant, require_invariant, viewed
from dynascope.symmetry.operation import Operation, shape_of
from dynascope.symmetry.primitives import Primitive
from dynascope.symmetry.program_loops import LONGEST, scanned
from dynascope.symmetry.program_reader import RuleReader
from dynascope.symmetry.scaling_rules import ScalingRules
from dynascope.symmetry.views import rearranged

__all__ = ["Rescaling", "exact_and_relaxed", "rescalings"]

_SMALL_PARAMETER = 4096  # largest parameter whose elements each get a separate exponent
_STACKED = 200_000  # the same for parameters from which a loop reads one layer per step
_SETTLES = 32  # iterations to find a fixed point of the exponents of a loop's state

# For one parameter: the shape of an array of exponents that broadcasts to it, flat indices, and the exponent there.
_Places = tuple[tuple[int, ...], tuple[int, ...], Fraction]


class Rescaling(NamedTuple):
    """A one-parameter group of rescalings: each element is multiplied by exp(t · exponent).

    Attributes:
        places: For each parameter, by number: shapes that broadcast to its shape, flat indices in these shapes, and
            exponents.
        order: The parameters in the order in which the program reads them.
    """

    places: dict[int, list[_Places]]
    order: tuple[int, ...]


def rescalings(program: ClosedJaxpr, parameters: int, *, exact: bool = True) -> list[Rescaling]:
    """Compute a basis of all elementwise rescalings of the parameters that leave the outputs of a program unchanged.

    Each value of the program has exponents that are linear in the exponents of the parameters. An addition equates the
    exponents of its operands, and a product adds them. A contraction requires exponents that are constant along the
    contracted axes. A function that is not homogeneous requires zero exponents. The unknowns that remain free are the
    rescalings, so every rescaling found this way is exact.

    Args:
        program: A program whose first arguments are the parameters.
        parameters: Number of parameters.
        exact: Whether the ε of a normalisation layer breaks rescalings.
    """
    return _read(program, parameters, exact=exact).found()


def exact_and_relaxed(program: ClosedJaxpr, parameters: int) -> tuple[list[Rescaling], list[Rescaling]]:
    """Return the rescalings for the actual ε of normalisation layers and for ε = 0; without ε, both are the same.

    Args:
        program: A program whose first arguments are the parameters.
        parameters: Number of parameters.
    """
    reader = _read(program, parameters, exact=True)
    exact = reader.found()
    return exact, rescalings(program, parameters, exact=False) if reader.rules.met_epsilon else exact


def _read(program: ClosedJaxpr, parameters: int, *, exact: bool) -> _Reader:
    trial = _Reader(Exponents(), exact=exact)
    trial.read(program, parameters)
    reader = _Reader(Exponents(), exact=exact, trial=trial.rules)
    reader.read(program, parameters)
    return reader


class _Parameter:
    """A parameter that the program has not read yet."""

    constant = None

    def __init__(self, number: int, shape: tuple[int, ...]):
        self.number, self.shape = number, shape


class _Reader(RuleReader):
    def __init__(self, solver: Exponents, *, exact: bool, trial: ScalingRules | None = None):
        self.solver = solver
        self.rules = ScalingRules(solver, exact=exact)
        self.trial = trial or ScalingRules(solver, exact=exact)
        self.met: dict[int, Degree] = {}

    def read(self, program: ClosedJaxpr, parameters: int) -> None:
        inputs = list(map(shape_of, program.jaxpr.invars))
        entering = [_Parameter(i, s) if i < parameters else invariant(s) for i, s in enumerate(inputs)]
        for degree in map(self._degree, self.run(program.jaxpr, program.consts, entering)):
            require_invariant(self.solver, degree)

    def found(self) -> list[Rescaling]:
        """Return the rescalings, one for each unknown that is still free."""
        for number in self.rules.loose - {each for each, _ in self.rules.chosen_pieces}:
            # No sum has fixed how the exponents are divided among the terms.
            *terms, last = self.met[number].terms
            for term in terms:
                shared = zip(term.shape, last.shape, strict=True)
                self.solver.vanish(term[tuple(slice(None) if both > 1 < n else slice(0, 1) for n, both in shared)])
        by_unknown: dict[int, dict[int, list[_Places]]] = {}
        for number, degree in self.met.items():
            for unknown, places in self._places(degree).items():
                by_unknown.setdefault(unknown, {})[number] = places
        order = tuple(self.met)
        return [Rescaling(by_unknown[unknown], order) for unknown in sorted(by_unknown)]

    def constant(self, value: Any) -> Degree:
        """The degree of a literal or constant array."""
        if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return invariant(np.shape(value))
        array = np.asarray(value)
        if array.size == 1 and array.dtype.kind in "iufb":
            return invariant(array.shape, constant=float(array.ravel()[0]))
        degree = invariant(array.shape)
        if array.dtype.kind != "f":
            return degree
        free = ~np.isfinite(array) | (array == 0)
        return Degree(degree.shape, degree.terms, free if free.any() else degree.free)

    def apply(self, primitive: Primitive, operation: Operation, values: list[Any]) -> list[Degree]:
        degrees = list(map(self._degree, values))
        if primitive.pointwise:
            degrees = [_lifted(each, len(operation.shapes[0])) for each in degrees]
        return primitive.scaling(self.rules, operation, degrees)

    def loop(self, equation: JaxprEqn, values: list[Any]) -> list[Degree] | None:
        name, params = equation.primitive.name, equation.params
        if name == "cond":
            return self._branches(equation, values)
        if name == "scan" and params["length"]:
            return self._scan(params, list(map(self._degree, values)))
        return self._while(params, list(map(self._degree, values))) if name == "while" else None

    def _branches(self, equation: JaxprEqn, values: list[Any]) -> list[Degree]:
        require_invariant(self.solver, self._degree(values[0]))
        found = [self.run(each.jaxpr, each.consts, values[1:]) for each in equation.params["branches"]]
        shapes = list(map(shape_of, equation.outvars))
        return [agreeing(self.solver, list(map(self._degree, r)), s) for *r, s in zip(*found, shapes, strict=True)]

    def _scan(self, params: Any, degrees: list[Degree]) -> list[Degree]:
        fixed, state, rows = scanned(params, degrees)
        body, length = params["jaxpr"], params["length"]
        if length > LONGEST:
            rows = [even_along(self.solver, each, [0]) for each in rows]
        uneven = any(array.shape[0] > 1 for each in rows for array in (*each.terms, each.free))
        for each in rows if uneven else ():
            self.rules.note_stack(each, 0)

        def as_rows(wrote: list[Degree]) -> list[Degree]:
            return [viewed(each, (1, *each.shape), lambda array: array[None]) for each in wrote]

        written: list[list[Degree]] = []
        steps = self.steps(params, fixed, state, rows, uneven=uneven)
        for after, wrote in itertools.islice(steps, LONGEST):
            state = after
            written.append(as_rows(wrote))
        if len(written) == LONGEST < length:
            seen = [self.row(each, 0) for each in rows]
            state, found = self._fixed_point(
                state, lambda each: self.run(body.jaxpr, body.consts, [*fixed, *each, *seen])
            )
            written = [as_rows(found[len(state) :])]
        written += written[-1:] * (length - len(written))
        if params["reverse"]:
            written.reverse()
        joined = zip(*written, strict=True)
        shapes = [(length, *each.shape[1:]) for each in written[0]]
        lines = [Operation("concatenate", {"dimension": 0}, [shape]) for shape in shapes]
        stacks = [rearranged(line, list(rows), self.solver)[0] for line, rows in zip(lines, joined, strict=True)]
        return [*state, *stacks]

    def _while(self, params: Any, degrees: list[Degree]) -> list[Degree]:
        tested, fixed = params["cond_nconsts"], params["body_nconsts"]
        known, fixed, state = degrees[:tested], degrees[tested : tested + fixed], degrees[tested + fixed :]
        goes_on, body = params["cond_jaxpr"], params["body_jaxpr"]

        def step(state: list[Degree]) -> list[Degree]:
            for each in self.run(goes_on.jaxpr, goes_on.consts, [*known, *state]):
                require_invariant(self.solver, each)
            return self.run(body.jaxpr, body.consts, [*fixed, *state])

        return self._fixed_point(state, step)[0]

    def _fixed_point(
        self, state: list[Degree], step: Callable[[list[Degree]], list[Degree]]
    ) -> tuple[list[Degree], list[Degree]]:
        """Equate exponents until a loop step no longer changes the state's exponents; return its state and outputs."""
        state = [dataclasses.replace(each, constant=None, origin=None) for each in state]
        for _ in range(_SETTLES):
            found = step(state)
            both = zip(state, found[: len(state)], strict=True)
            tied = [agreeing(self.solver, pair, pair[0].shape) for pair in both]
            if self.are_same([], state, tied):
                return state, found
            state = tied
        for each in state:
            require_invariant(self.solver, each)
        return state, step(state)

    def row(self, value: Degree, at: int) -> Degree:
        origin = value.origin
        if origin is not None:
            piece = () if value.shape[0] == 1 else ((origin.axes[0], at),)
            origin = origin._replace(axes=origin.axes[1:], piece=origin.piece + piece)
        row = viewed(value, value.shape[1:], lambda each: each[at if len(each) > 1 else 0], origin)
        return row if value.shape[0] == 1 else dataclasses.replace(row, constant=None)

    def are_same(self, fixed: list[Degree], before: list[Degree], after: list[Degree]) -> bool:
        def key(each: Degree) -> tuple:
            # Compare after substituting all equations.
            terms = [self.solver.combined([(1, term)]) for term in (*each.terms,)]
            arrays = [*terms, each.free]
            return each.constant, [(array.shape, array.tobytes()) for array in arrays]

        return all(key(one) == key(other) for one, other in zip(before, after, strict=True))

    def _degree(self, value: Any) -> Degree:
        if not isinstance(value, _Parameter):
            return value
        if value.number not in self.met:
            shape, axes = value.shape, range(len(value.shape))
            long = frozenset(axis for axis in axes if shape[axis] > 1)
            stacked = frozenset(self.trial.stacked.get(value.number, ()))
            uses = [(each | stacked) & long for use in self.trial.split.get(value.number, ()) for each in use]
            wanted = list(dict.fromkeys(each for each in uses if each))
            # A subset of another set adds no freedom.
            sets = [each for each in wanted if not any(each < other for other in wanted)]
            if not sets:
                small = math.prod(shape) <= (_STACKED if stacked else _SMALL_PARAMETER)
                sets = [frozenset(axes)] if small else [frozenset({a}) for a in axes]
            terms = [self.solver.fresh([n if axis in each else 1 for axis, n in enumerate(shape)]) for each in sets]
            if len(sets) > 1:
                self.rules.loose.add(value.number)
            free = np.zeros((1,) * len(shape), bool)
            origin = Origin(value.number, tuple(frozenset({axis}) for axis in axes))
            self.met[value.number] = Degree(shape, tuple(terms), free, origin=origin)
        return self.met[value.number]

    def _places(self, degree: Degree) -> dict[int, list[_Places]]:
        """For each free unknown, find the elements of a parameter on which it acts."""
        found: dict[int, list[dict[int, Fraction]]] = {}
        for number, term in enumerate(degree.terms):
            flat = term.ravel()
            order = np.argsort(flat, kind="stable")
            kinds, starts = np.unique(flat[order], return_index=True)
            for kind, places in zip(kinds, np.split(order, starts[1:]), strict=True):
                for unknown, factor in self.solver.expression(int(kind)).items():
                    terms = found.setdefault(unknown, [{} for _ in degree.terms])
                    terms[number].update(dict.fromkeys(places.tolist(), factor))
        shapes = [term.shape for term in degree.terms]
        sparse = {unknown: _sparsest(terms, shapes, degree.shape) for unknown, terms in found.items()}
        return {unknown: places for unknown, places in sparse.items() if places}


def _sparsest(terms: list[dict[int, Fraction]], shapes: list[tuple[int, ...]], shape: tuple[int, ...]) -> list[_Places]:
    """Return the sum of terms; constants are moved between the terms so that few elements have an exponent."""
    sizes = [math.prod(each) for each in shapes]
    choices = []
    for term, size in zip(terms, sizes, strict=True):
        values = set(term.values()) | ({Fraction(0)} if len(term) < size else set())
        choices.append(sorted(values, key=abs) if len(values) <= 3 else [Fraction(0)])

    def cost(moved: tuple[Fraction, ...]) -> float:
        total = math.prod(shape) if sum(moved) else 0
        for term, size, each in zip(terms, sizes, moved, strict=True):
            same = sum(value == each for value in term.values()) + (size - len(term) if each == 0 else 0)
            total += (size - same) * (math.prod(shape) // size)
        return total

    best = min(itertools.product(*choices), key=cost)
    places: list[_Places] = []
    for term, size, form, moved in zip(terms, sizes, shapes, best, strict=True):
        values = {place: term.get(place, Fraction(0)) - moved for place in (range(size) if moved else term)}
        for exponent in sorted(set(values.values()) - {Fraction(0)}):
            there = tuple(sorted(place for place, value in values.items() if value == exponent))
            places.append((form, there, exponent))
    if sum(best):
        places.append(((1,) * len(shape), (0,), Fraction(sum(best))))
    return places


def _lifted(degree: Degree, axes: int) -> Degree:
    """Reshape a scalar to an array with the given number of axes; other arrays are unchanged."""
    if degree.shape or not axes:
        return degree
    return viewed(degree, (1,) * axes, lambda each: each.reshape((1,) * axes))
