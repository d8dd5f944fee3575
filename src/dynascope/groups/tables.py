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

LARGEST_ORDER = 1000  # representations require the eigenvectors of a matrix of this size


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """A finite group with the elements 0, 1, …, n − 1, where 0 is the identity.

    Attributes:
        name: Short name, such as "D5".
        table: Multiplication table, shape (n, n): `table[g, h]` is the element g·h.

    Raises:
        InputError: If the table is not a square array of element indices, if element 0 is not the identity, if a row or
            column does not contain every element exactly once, or if (g·h)·k ≠ g·(h·k) for some elements. The message
            names the elements.

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
        """A small set of generators."""
        return _generators(self.table)

    @property
    def commutative(self) -> bool:
        """Whether g·h = h·g for all elements."""
        return bool(np.array_equal(self.table, self.table.T))

    def product(self, elements: Sequence[Any]) -> np.ndarray | np.int64:
        """Compute the product g₁·g₂⋯ of elements, or the elementwise product of arrays of elements.

        Example:
            >>> int(group_from_table([[0, 1, 2], [1, 2, 0], [2, 0, 1]]).product([2, 2, 2]))
            0
        """
        return functools.reduce(lambda g, h: self.table[g, h], elements, np.int64(self.identity))

    def __eq__(self, other: object) -> bool:
        """Whether the names and tables are equal."""
        return isinstance(other, Group) and self.name == other.name and np.array_equal(self.table, other.table)

    def __hash__(self) -> int:
        return hash((self.name, self.table.tobytes()))

    def __repr__(self) -> str:
        return f"Group({self.name!r}, {self.order} elements)"


def group_from_table(table: ArrayLike, name: str = "group") -> Group:
    """Make a group from its multiplication table.

    Args:
        table: Shape (n, n); `table[g][h]` is the index of the element g·h, and element 0 is the identity.
        name: Short name.

    Raises:
        InputError: If the table does not define a group. The message states the violated axiom and the elements.

    Example:
        >>> group_from_table([[0, 1], [1, 1]])
        Traceback (most recent call last):
        ...
        dynascope.errors.InputError: row 1 of the table does not contain every element exactly once: give a table in \
which each element occurs exactly once in every row and column.
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
        f"the table has shape {given.shape} and type {given.dtype}"
        + (f", with values from {given.min()} to {given.max()}" if given.size and given.dtype.kind in "iu" else ""),
        argument="table",
        value=given.shape,
        remedy="give a square array of integers from 0 to n − 1, where n is the number of elements",
    )
    require(
        n <= LARGEST_ORDER,
        f"the table has {n} elements",
        argument="table",
        value=n,
        remedy=f"choose a group with at most {LARGEST_ORDER} elements",
    )
    values = np.array(given, dtype=np.int64)
    elements = np.arange(n)
    for line, lines in (("row", values), ("column", values.T)):
        moved = np.flatnonzero(lines[0] != elements)
        require(
            not len(moved),
            f"entry {_first(moved)} of {line} 0 of the table is not {_first(moved)}",
            argument="table",
            value=_first(moved),
            remedy="number the elements from 0, starting with the identity, so that row 0 and column 0 are in order",
        )
        incomplete = np.flatnonzero((np.sort(lines, axis=1) != elements).any(axis=1))
        require(
            not len(incomplete),
            f"{line} {_first(incomplete)} of the table does not contain every element exactly once",
            argument="table",
            value=_first(incomplete),
            remedy="give a table in which each element occurs exactly once in every row and column",
        )
    # The middle factors h with (g·h)·k = g·(h·k) are closed under products, so checking generators suffices.
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
    """Generators in increasing order; none is a product of the previous ones."""
    generators, reached = [], np.array([0])
    for element in range(1, len(table)):
        if element in reached:
            continue
        generators.append(element)
        grown = np.union1d(reached, element)
        while len(grown) > len(reached):
            reached, grown = grown, np.unique(table[np.ix_(grown, grown)])
    return tuple(generators)
