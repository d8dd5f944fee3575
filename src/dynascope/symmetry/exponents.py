"""Solver for linear equations in unknown exponents, which eliminates unknowns as equations are added."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import reduce

import numpy as np

__all__ = ["MOST", "Exponents"]

MOST = 4_000_000  # elements of an array of expressions; above this, stronger (but sound) equations are imposed

Expression = dict[int, Fraction]
_ONE = Fraction(1)


class Exponents:
    """Linear expressions in unknowns, stored in arrays by number, and the equations solved so far.

    An array may have length one along an axis on which it is constant. Number 0 is the zero expression. If two unknowns
    are equated, the newer one is eliminated, so the remaining free unknowns are the oldest.
    """

    def __init__(self) -> None:
        self._unknowns = self._lasting = 0
        self._solved: dict[int, Expression] = {}
        self._table: list[Expression] = [{}]
        self._numbers: dict[tuple, int] = {(): 0}

    def fresh(self, shape: Sequence[int], *, lasting: bool = False) -> np.ndarray:
        """Create new unknowns; lasting unknowns have negative numbers and are kept when equated with others."""
        count = int(np.prod(shape, dtype=int))
        if lasting:
            new = range(-self._lasting - 1, -self._lasting - 1 - count, -1)
            self._lasting += count
        else:
            new = range(self._unknowns, self._unknowns + count)
            self._unknowns += count
        found = [self._number({unknown: _ONE}) for unknown in new]
        return np.asarray(found, dtype=np.int64).reshape(tuple(shape))

    def expression(self, number: int) -> Expression:
        """Write an expression in terms of the free unknowns."""
        return _sum((factor, self._known(unknown)) for unknown, factor in self._table[number].items())

    def combined(self, parts: Sequence[tuple[Fraction | int, np.ndarray]]) -> np.ndarray:
        """Compute Σ factor · array, elementwise with broadcasting."""
        arrays = list(np.broadcast_arrays(*(array for _, array in parts)))
        # The keys of two arrays fit into 64 bits.
        start = arrays[0].astype(np.int64 if len(arrays) <= 2 else object)
        keys = reduce(lambda key, array: key * len(self._table) + array, arrays[1:], start)
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        found = []
        for place in first:
            terms = zip(parts, arrays, strict=True)
            found.append(self._number(_sum((f, self.expression(int(array.flat[place]))) for (f, _), array in terms)))
        return np.asarray(np.asarray(found, dtype=np.int64)[inverse]).reshape(arrays[0].shape)

    def vanish(self, numbers: np.ndarray) -> None:
        """Impose that all given expressions are zero."""
        for number in np.unique(numbers):
            expression = self.expression(int(number))
            if expression:
                youngest = max(expression) if max(expression) >= 0 else min(expression)
                factor = expression.pop(youngest)
                self._solved[youngest] = {unknown: -each / factor for unknown, each in expression.items()}

    def sum_vanishes(self, terms: Sequence[tuple[Fraction | int, np.ndarray]]) -> None:
        """Impose that Σ factor · term is zero at every element, for terms that broadcast."""
        merged = self.merged(terms)
        if len(merged) == 1:
            self.vanish(merged[0])
            return
        # If functions of different indices sum to zero, each of them is constant.
        origins = []
        for each in merged:
            origin = each[tuple(slice(0, 1) for _ in each.shape)]
            self.vanish(self.combined([(1, each), (-1, origin)]) if each.size > 1 else np.zeros(1, int))
            origins.append((1, origin))
        if origins:
            self.vanish(self.combined(origins))

    def merged(self, terms: Sequence[tuple[Fraction | int, np.ndarray]]) -> list[np.ndarray]:
        """Return the same sum as terms that depend on disjoint sets of indices."""
        groups: list[tuple[frozenset[int], list[tuple[Fraction | int, np.ndarray]]]] = []
        for factor, term in terms:
            axes, members = _axes(term), [(factor, term)]
            touched = [group for group in groups if group[0] & axes]
            groups = [group for group in groups if not group[0] & axes]
            for known, others in touched:
                axes, members = axes | known, others + members
            groups.append((axes, members))
        scalars = [each for axes, members in groups if not axes for each in members]
        groups = [(axes, members) for axes, members in groups if axes]
        if not groups:
            return [self.combined(scalars)] if scalars else []
        groups[0][1].extend(scalars)
        found = []
        for _, members in groups:
            size = np.prod(np.broadcast_shapes(*(term.shape for _, term in members)), dtype=float)
            if size <= MOST:
                found.append(self.combined(members))
                continue
            for _, term in members:
                self.vanish(self.combined([(1, term), (-1, term[tuple(slice(0, 1) for _ in term.shape)])]))
            found.append(self.combined([(f, term[tuple(slice(0, 1) for _ in term.shape)]) for f, term in members]))
        return found

    def _known(self, unknown: int) -> Expression:
        solution = self._solved.get(unknown)
        if solution is None:
            return {unknown: _ONE}
        if any(each in self._solved for each in solution):
            self._solved[unknown] = solution = _sum((factor, self._known(each)) for each, factor in solution.items())
        return solution

    def _number(self, expression: Expression) -> int:
        key = tuple(sorted(expression.items()))
        if key not in self._numbers:
            self._numbers[key] = len(self._table)
            self._table.append(expression)
        return self._numbers[key]


def _sum(terms: Iterable[tuple[Fraction | int, Expression]]) -> Expression:
    """Compute Σ factor · expression, with a shortcut for factors of one, because fractions are slow."""
    total: Expression = {}
    for factor, expression in terms:
        for unknown, each in expression.items():
            part = each if factor == 1 else factor * each
            total[unknown] = total[unknown] + part if unknown in total else part
    return {unknown: each for unknown, each in total.items() if each}


def _axes(array: np.ndarray) -> frozenset[int]:
    return frozenset(axis for axis, length in enumerate(array.shape) if length > 1)
