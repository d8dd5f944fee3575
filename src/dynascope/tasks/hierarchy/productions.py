"""The production rules of a random hierarchy, the derivation of strings by these rules, and the parsing of strings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["checked_productions", "derived", "drawn_productions", "parsed"]

Productions = Sequence[Int[np.ndarray, "_ m s"]]


def checked_productions(
    rules: Sequence[Any], shapes: Sequence[tuple[int, ...]], symbols: int
) -> tuple[Int[np.ndarray, "_ m s"], ...]:
    """Convert rules to integer arrays.

    Raises:
        InputError: If the rules have other shapes, contain an unknown symbol, or repeat a production within a level.
    """
    remedy = f"give integer arrays of the shapes {', '.join(map(str, shapes))}, from level L to level 1"
    try:
        found = tuple(np.asarray(rule) for rule in rules)
    except ValueError:
        raise InputError("rules cannot be converted to arrays", argument="rules", remedy=remedy) from None
    given = [rule.shape for rule in found]
    integers = all(rule.dtype.kind in "iu" for rule in found)
    require(given == list(shapes) and integers, f"rules have shapes {given}", argument="rules", remedy=remedy)
    known = all(bool(np.all((rule >= 0) & (rule < symbols))) for rule in found)
    remedy = f"number the symbols from 0 to {symbols - 1}"
    require(known, "rules contain an unknown symbol", argument="rules", remedy=remedy)
    different = all(len(np.unique(_tuple_numbers(rule, symbols))) == rule[..., 0].size for rule in found)
    remedy = "give each production of a level only once, so that every string has one derivation"
    require(different, "rules repeat a production", argument="rules", remedy=remedy)
    return found


def drawn_productions(
    shapes: Sequence[tuple[int, int, int]], symbols: int, draw: np.random.Generator
) -> tuple[Int[np.ndarray, "_ m s"], ...]:
    """Draw the productions of all levels, shapes (parents, m, s), uniformly and without repetition within a level."""
    found = []
    for parents, multiplicity, branching in shapes:
        numbers = draw.choice(symbols**branching, size=(parents, multiplicity), replace=False)
        found.append(numbers[..., None] // _places(symbols, branching) % symbols)
    return tuple(found)


def derived(productions: Productions, labels: Int[np.ndarray, " n"], choices: Int[np.ndarray, " n"]) -> np.ndarray:
    """Derive strings, shape (n, d), from labels and from the choices at all nodes as the digits of one number.

    The highest digit in base m is the choice of the first node, that of the label.
    """
    multiplicity, rest = productions[0].shape[1], sum(_nodes(productions))
    symbols = labels[:, None]
    for rule, nodes in zip(productions, _nodes(productions), strict=True):
        rest -= nodes
        digits = choices[:, None] // multiplicity ** (rest + np.arange(nodes - 1, -1, -1)) % multiplicity
        symbols = rule[symbols, digits].reshape(len(labels), -1)
    return symbols


def parsed(
    productions: Productions, strings: Int[np.ndarray, "n d"], symbols: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Parse strings from the bottom up into labels and choices, the inverse of `derived`; None if a string has none."""
    if not np.all((strings >= 0) & (strings < symbols)):
        return None
    choices, weight = np.zeros(len(strings), int), 1
    for rule in reversed(productions):
        parents, multiplicity, branching = rule.shape
        production = np.full(symbols**branching, -1)
        production[_tuple_numbers(rule, symbols)] = np.arange(parents * multiplicity).reshape(parents, multiplicity)
        found = production[_tuple_numbers(strings.reshape(len(strings), -1, branching), symbols)]
        if np.any(found < 0):
            return None
        strings, digits = np.divmod(found, multiplicity)
        for node in reversed(range(digits.shape[1])):
            choices, weight = choices + weight * digits[:, node], weight * multiplicity
    return strings[:, 0], choices


def _tuple_numbers(tuples: Int[np.ndarray, "... s"], symbols: int) -> np.ndarray:
    """Number tuples of symbols in base v, with the first symbol in the highest place."""
    return tuples @ _places(symbols, tuples.shape[-1])


def _nodes(productions: Productions) -> list[int]:
    return [rule.shape[2] ** level for level, rule in enumerate(productions)]


def _places(symbols: int, branching: int) -> np.ndarray:
    return symbols ** np.arange(branching - 1, -1, -1)
