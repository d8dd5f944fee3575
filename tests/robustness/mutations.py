"""What can go wrong with one argument, by the name of the mistake."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from documented import is_numeric, is_row

try:
    import torch
except ImportError:  # it is an extra
    torch = None

__all__ = ["Mutant", "mutants"]


class Mutant(NamedTuple):
    """An argument in place of a valid one.

    Attributes:
        kind: What is wrong, or other, about it.
        value: The argument.
        same: Whether it says the same as the valid one.
    """

    kind: str
    value: Any
    same: bool = False


def mutants(valid: Any) -> Iterator[Mutant]:
    """The mutants of a valid argument; none has another shape that is valid too, for which much would be compiled."""
    yield Mutant("None", None)
    yield Mutant("text", "frob")
    yield Mutant("complex", 1j)
    yield Mutant("empty", [])
    yield Mutant("integer of 400 digits", 10**399)
    if isinstance(valid, bool):
        yield Mutant("two", 2)
    elif isinstance(valid, str):
        yield Mutant("no text", "")
        yield Mutant("long text", 1000 * "x")
    elif is_numeric(valid):
        yield from _of_a_number(valid) if np.ndim(valid) == 0 else _of_an_array(np.asarray(valid))
    elif is_row(valid):
        yield from _of_a_row(valid)


def _of_a_number(valid: Any) -> Iterator[Mutant]:
    whole = isinstance(valid, int | np.integer)
    for kind, value in {"NaN": np.nan, "∞": np.inf, "−∞": -np.inf, "zero": 0, "negative": -1}.items():
        yield Mutant(kind, value if whole or not np.isfinite(value) else float(value))
    for kind, size in {"huge": 1e300, "tiny": 1e-300}.items():
        yield Mutant(kind, size)
    yield Mutant("text of a number", str(valid))
    yield Mutant("truth", True)
    yield Mutant("of NumPy", np.asarray(valid)[()], same=True)
    if whole:
        yield Mutant("whole float", float(valid))
    yield Mutant("array without axes", np.array(valid), same=True)


def _of_an_array(valid: np.ndarray) -> Iterator[Mutant]:
    numbers = valid.astype(float)
    for kind, value in {"NaN": np.nan, "∞": np.inf, "zero": 0.0, "huge": 1e300, "tiny": 1e-300}.items():
        one = numbers.copy()
        one.flat[0] = value
        yield Mutant(f"one {kind}", one)
    yield Mutant("all zero", np.zeros_like(numbers))
    yield Mutant("all negative", -np.abs(numbers) - 0.5)
    yield Mutant("complex array", numbers * (1 + 1j))
    yield Mutant("an axis more", numbers[None])
    yield Mutant("text in an array", valid.astype(str))
    yield Mutant("ragged", [[1.0], [1.0, 2.0]])
    yield Mutant("dates", np.full(valid.shape, "2020-01-01", "M8[D]"))
    kept = valid.copy()
    kept.flags.writeable = False
    yield Mutant("read-only", kept, same=True)
    yield Mutant("list", valid.tolist(), same=True)
    yield Mutant("array of objects", valid.astype(object), same=True)
    yield Mutant("strided", np.repeat(valid, 2, axis=0)[::2], same=True)
    if valid.ndim == 1:
        yield Mutant("series", pd.Series(valid, index=np.arange(valid.size)[::-1]), same=True)
    elif valid.ndim == 2:
        yield Mutant("frame", pd.DataFrame(valid), same=True)
    if torch is not None:
        yield Mutant("tensor", torch.tensor(valid.tolist(), dtype=torch.float64), same=True)


def _of_a_row(valid: Any) -> Iterator[Mutant]:
    yield Mutant("row with None", [*valid[:-1], None])
    yield Mutant("row with text", [*valid[:-1], "x"])
    first = np.array(valid[0], float)
    first.flat[0] = np.nan
    yield Mutant("row with NaN", [first, *valid[1:]])
    yield Mutant("row of zeros", [np.zeros(np.shape(each)) for each in valid])
    yield Mutant("tuple", tuple(valid), same=True)
