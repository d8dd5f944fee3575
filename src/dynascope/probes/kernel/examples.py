"""Inputs of a network: trees of arrays of any library, with the examples along the first axis of each."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

__all__ = ["count_rows", "rows_of"]


def rows_of(inputs: Any, rows: Any) -> Any:
    """Some of the examples: a slice or an array of places, or one without its axis."""
    return jax.tree.map(lambda each: each[rows], inputs)


def count_rows(inputs: Any) -> int:
    """The number of examples."""
    return np.shape(jax.tree.leaves(inputs)[0])[0]
