"""Named groups: cyclic, dihedral, symmetric, alternating, quaternion, octahedral, and direct products."""

from __future__ import annotations

import functools
import itertools
import re
from typing import Annotated

import numpy as np
from annotated_types import Interval

from dynascope.errors import InputError
from dynascope.groups.tables import LARGEST_ORDER, Group
from dynascope.validation import checked, require_kind

__all__ = [
    "alternating",
    "cyclic",
    "dihedral",
    "find_group",
    "symmetric",
]


@checked
def cyclic(n: Annotated[int, Interval(ge=1, le=LARGEST_ORDER)]) -> Group:
    """The cyclic group Cₙ: g·h = g + h mod n.

    Example:
        >>> cyclic(3).table
        array([[0, 1, 2],
               [1, 2, 0],
               [2, 0, 1]])
    """
    return Group(f"C{n}", np.add.outer(np.arange(n), np.arange(n)) % n)


def _direct_product(first: Group, second: Group) -> Group:
    """The direct product; the pair (g, h) has index g·|second| + h."""
    n = second.order
    require_kind(Annotated[int, Interval(ge=1, le=LARGEST_ORDER)], order=first.order * n)
    table = first.table[:, None, :, None] * n + second.table[None, :, None, :]
    return Group(f"{first.name}x{second.name}", table.reshape(first.order * n, first.order * n))


@checked
def dihedral(n: Annotated[int, Interval(ge=1, le=LARGEST_ORDER // 2)]) -> Group:
    """The dihedral group Dₙ of the 2n symmetries of a regular n-gon: s·r = r⁻¹·s.

    The element rᵃ sᵇ has index a + n b.

    Example:
        >>> group = dihedral(3)
        >>> r, s = 1, 3
        >>> bool(group.table[s, r] == group.table[group.inverse[r], s])
        True
    """
    flip, turn = np.divmod(np.arange(2 * n), n)
    turned = (turn[:, None] + (1 - 2 * flip[:, None]) * turn[None, :]) % n
    return Group(f"D{n}", turned + n * ((flip[:, None] + flip[None, :]) % 2))


@checked
def symmetric(n: Annotated[int, Interval(ge=1, le=6)]) -> Group:
    """The symmetric group Sₙ of the permutations of n objects, in lexicographic order: (π·π′)(i) = π(π′(i)).

    Example:
        >>> symmetric(4).order
        24
    """
    return Group(f"S{n}", _permutation_table(list(itertools.permutations(range(n)))))


@checked
def alternating(n: Annotated[int, Interval(ge=1, le=6)]) -> Group:
    """The alternating group Aₙ of even permutations, in lexicographic order: (π·π′)(i) = π(π′(i)).

    Example:
        >>> alternating(5).order
        60
    """
    return Group(f"A{n}", _permutation_table([each for each in itertools.permutations(range(n)) if _even(each)]))


def _quaternion() -> Group:
    """The quaternion group Q₈ in the order 1, −1, i, −i, j, −j, k, −k."""
    unit, minus = np.divmod(np.arange(8), 2)
    units = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 0, 1], [3, 2, 1, 0]])
    minuses = np.array([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 1, 0], [0, 0, 1, 1]])
    pair = np.ix_(unit, unit)
    return Group("Q8", 2 * units[pair] + (minuses[pair] + minus[:, None] + minus[None, :]) % 2)


def _octahedral(*, full: bool = True) -> Group:
    """The symmetries of the cube: all 48 symmetries (Oₕ = S₄ × C₂), or the 24 rotations (O = S₄).

    Rotations are permutations of the four diagonals, numbered as in `symmetric(4)`. An element of Oₕ has index
    2·rotation + inversion.
    """
    rotations = symmetric(4)
    return Group("Oh", _direct_product(rotations, cyclic(2)).table) if full else Group("O", rotations.table)


def find_group(name: str) -> Group:
    """Look up a group by name.

    Quaternions are in the order 1, −1, i, −i, j, −j, k, −k. An element of Oh has index 2·rotation + inversion. The pair
    (g, h) of a direct product has index g·n + h, where n is the order of the second group.

    Args:
        name: "C7" (cyclic), "D5" (dihedral, 10 elements), "S4" (symmetric), "A5" (alternating), "Q8" (quaternion), "O"
            (rotations of the cube), "Oh" (all symmetries of the cube), or a direct product such as "C5xC5".

    Raises:
        InputError: If the name is unknown, or if the group has more than 1000 elements.

    Example:
        >>> find_group("C5xD3")
        Group('C5xD3', 30 elements)
    """
    families = {"C": cyclic, "D": dihedral, "S": symmetric, "A": alternating}
    special = {"Q8": _quaternion, "O": lambda: _octahedral(full=False), "Oh": _octahedral}
    factors = []
    for part in name.split("x"):
        parsed = re.fullmatch(r"([CDSA])([1-9][0-9]{0,3})", part)
        if part in special:
            factors.append(special[part]())
        elif parsed:
            factors.append(families[parsed[1]](int(parsed[2])))
        else:
            raise InputError(
                f"there is no group {name!r}",
                argument="group",
                value=name,
                remedy="use a name such as C7, D5, S4, A5, Q8, O or Oh, or a product such as C5xC5",
            )
    return functools.reduce(_direct_product, factors)


def _permutation_table(permutations: list[tuple[int, ...]]) -> np.ndarray:
    images = np.array(permutations)
    radix = images.shape[1] ** np.arange(images.shape[1])
    codes = images @ radix
    order = np.argsort(codes)
    composed = images[:, images] @ radix
    return order[np.searchsorted(codes[order], composed)]


def _even(permutation: tuple[int, ...]) -> bool:
    return sum(a > b for a, b in itertools.combinations(permutation, 2)) % 2 == 0
