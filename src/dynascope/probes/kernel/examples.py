"""Inputs of a network: trees of arrays of any library, with the examples along the first axis of each array."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from dynascope.validation import require

__all__ = ["count_rows", "require_examples", "require_independence", "rows_of"]


def rows_of(inputs: Any, rows: Any) -> Any:
    """Select examples by a slice, an array of indices, or one index (which removes the axis)."""
    return jax.tree.map(lambda each: each[rows], inputs)


def count_rows(inputs: Any) -> int:
    """Return the number of examples."""
    return np.shape(jax.tree.leaves(inputs)[0])[0]


def require_examples(argument: str, inputs: Any, *, kind: str) -> None:
    """Raise `InputError` unless all arrays, called `kind` in the message, have the same number of examples."""
    shapes = [tuple(np.shape(each)) for each in jax.tree.leaves(inputs)]
    lengths = {shape[:1] for shape in shapes}
    require(
        len(lengths) == 1 and lengths != {()} and lengths != {(0,)},
        f"{argument} contains {kind}s of shapes {sorted(shapes)}",
        argument=argument,
        value=shapes,
        remedy=f"give at least one example along the first axis of every {kind}",
    )


def require_independence(alone: Any, together: Any, epsilon: float, *, remedy: str) -> None:
    """Raise `InputError` unless examples have the same outputs alone and in a batch, to within epsilon."""
    same = math.prod(alone.shape) == math.prod(together.shape)
    if same:
        # Products of other shapes round differently; batch statistics change the outputs by far more.
        tolerance = epsilon**0.5 * abs(alone).max()
        same = bool((abs(together.reshape(alone.shape) - alone) <= tolerance).all())
    require(
        same, "the outputs for one example depend on the other examples in the batch", argument="apply", remedy=remedy
    )
