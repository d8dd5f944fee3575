"""Finite groups as multiplication tables."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int
from numpy.typing import ArrayLike

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["LARGEST_ORDER", "Group", "group_from_table"]

LARGEST_ORDER = 1000  # the representations need the eigenvectors of a matrix of this size


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """A finite group of n elements 0, 1, …, n − 1, of which 0 is the identity.

    Attributes:
        name: Short name, such as "D5".
        table: Multiplication table, shape (n, n): `table[g, h]` is the element g·h.

    Raises:
        InputError: The table is not a square of element numbers, the element 0 is not the identity, a row or column
            does not hold every element once, or (g·h)·k ≠ g·(h·k) for some three elements. The message says which.

    Example:
        >>> group = Group("C3", [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
        >>> group.order, group.inverse
        (3, array([0, 2, 1]))
    """

    name: str
    table: Int[np.ndarray, "n n"]

    def __init__(self, name: str, table: ArrayLike):
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "table", _valid_table(table))
        self.table.setflags(write=False)

    @property
    def order(self) -> int:
        """Number of elements n."""
        return len(self.table)

    @property
    def identity(self) -> int:
        """The identity, always 0."""
        return 0

    @functools.cached_property
    def inverse(self) -> Int[np.ndarray, " n"]:
        """The inverse of each element, shape (n,)."""
        return np.argmin(self.table, axis=1)

    @functools.cached_property
    def generators(self) -> tuple[int, ...]:
        """A few elements whose products are all elements."""
        return _generators(self.table)

    @property
    def commutative(self) -> bool:
        """Whether g·h = h·g for all elements."""
        return bool(np.array_equal(self.table, self.table.T))

    def product(self, elements: Sequence[Any]) -> np.ndarray | np.int64:
        """The product g₁·g₂⋯ of elements, or elementwise of arrays of elements.

        Example:
            >>> int(group_from_table([[0, 1, 2], [1, 2, 0], [2, 0, 1]]).product([2, 2, 2]))
            0
        """
        return functools.reduce(lambda g, h: self.table[g, h], elements, np.int64(self.identity))

    def __eq__(self, other: object) -> bool:
        """Whether the names and the tables are the same."""
        return isinstance(other, Group) and self.name == other.name and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash((self.name, self.table.tobytes()))

    def __repr__(self) -> str:
        return f"Group({self.name!r}, {self.order} elements)"


def group_from_table(table: ArrayLike, name: str = "group") -> Group:
    """The group with a given multiplication table.

    Args:
        table: Shape (n, n); `table[g][h]` is the number of the element g·h, and element 0 is the identity.
        name: Short name.

    Raises:
        InputError: The table is not that of a group; the message says why and where.

    Example:
        >>> group_from_table([[0, 1], [1, 1]])
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: row 1 of the table does not hold every element once: give a table in which each \
element occurs once in every row and every column.
    """
    return Group(name, table)


def _valid_table(table: ArrayLike) -> np.ndarray:
    try:
        given = np.asarray(table)
    except ValueError:
        given = np.empty(0, dtype=object)
    n = len(given) if given.ndim else 0
    require(
        given.dtype.kind in "iu" and n > 0 and given.shape == (n, n) and given.min() >= 0 and given.max() < n,
        f"the table has shape {given.shape} and type {given.dtype}" + (f", for {n} elements" if n else ""),
        argument="table",
        value=given.shape,
        remedy="give a square of whole numbers from 0 to the number of elements less one",
    )
    require(
        n <= LARGEST_ORDER,
        f"the table has {n} elements",
        argument="table",
        value=n,
        remedy=f"choose a group of at most {LARGEST_ORDER}",
    )
    values = np.array(given, dtype=np.int64)
    elements = np.arange(n)
    for line, lines in (("row", values), ("column", values.T)):
        moved = np.flatnonzero(lines[0] != elements)
        require(
            not len(moved),
            f"{line} 0 of the table does not keep element {_first(moved)}",
            argument="table",
            value=_first(moved),
            remedy="number the identity 0, so that the first row and column are 0, 1, 2, …",
        )
        incomplete = np.flatnonzero((np.sort(lines, axis=1) != elements).any(axis=1))
        require(
            not len(incomplete),
            f"{line} {_first(incomplete)} of the table does not hold every element once",
            argument="table",
            value=_first(incomplete),
            remedy="give a table in which each element occurs once in every row and every column",
        )
    # The middle factors that associate with everything are closed under products: generators are enough.
    for h in _generators(values):
        wrong = np.argwhere(values[values[:, h]] != values[:, values[h]])
        if len(wrong):
            g, k = wrong[0].tolist()
            raise InputError(
                f"(g·h)·k is not g·(h·k) for g = {g}, h = {h}, k = {k}",
                argument="table",
                value=(g, h, k),
                remedy="give the table of an associative product",
            )
    return values


def _first(places: np.ndarray) -> int | None:
    return int(places[0]) if len(places) else None


def _generators(table: np.ndarray) -> tuple[int, ...]:
    """Elements, smallest first, of which each is no product of those before."""
    generators, reached = [], np.array([0])
    for element in range(1, len(table)):
        if element in reached:
            continue
        generators.append(element)
        grown = np.union1d(reached, element)
        while len(grown) > len(reached):
            reached, grown = grown, np.unique(table[np.ix_(grown, grown)])
    return tuple(generators)
