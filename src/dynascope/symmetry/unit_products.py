"""Sums over the units of a parameter (slices of it), and Gram matrices of blocks of units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dynascope.symmetry.layer_charges import row_products

__all__ = [
    "axes_of_labels",
    "gram_matrices",
    "means_of_pairs",
    "pairs_of_matrices",
    "unit_places",
    "unit_rows",
    "unit_sums",
]


def axes_of_labels(labels: np.ndarray, shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the axes on which the labels depend, and the other axes."""
    outer = [axis for axis, length in enumerate(labels.shape) if length > 1 or shape[axis] == 1]
    return outer, [axis for axis in range(len(shape)) if axis not in outer]


def unit_sums(labels: np.ndarray, values: Any, units: int, xp: Any) -> Any:
    """Compute the sum of the values of each unit, shape (units,)."""
    outer, inner = axes_of_labels(labels, values.shape)
    sums = xp.sum(values, axis=tuple(inner)).ravel()
    flat = np.broadcast_to(labels, [n if a in outer else 1 for a, n in enumerate(values.shape)]).ravel()
    there = np.flatnonzero(flat >= 0)
    if xp is np:
        return np.bincount(flat[there], weights=sums[there], minlength=units)
    if there.size == flat.size == units and (flat == np.arange(units)).all():
        return sums
    return jnp.zeros(units, sums.dtype).at[flat[there]].add(sums[there])


def unit_places(labels: np.ndarray, units: int) -> np.ndarray:
    """Return the flat indices of the elements of each unit along the axes on which the labels depend."""
    flat = labels.ravel()
    return np.argsort(flat, kind="stable")[int((flat < 0).sum()) :].reshape(units, -1)


def gram_matrices(labels: np.ndarray, one: Any, other: Any, units: int, block: int, xp: Any) -> Any:
    """Compute the products between the units of each block, shape (blocks, block, block)."""
    outer, inner = axes_of_labels(labels, one.shape)
    if xp is jnp and len(outer) == 1 and np.array_equal(labels.ravel(), np.arange(units)):
        kind = jnp.result_type(one, other)
        one, other = jnp.asarray(one, kind), jnp.asarray(other, kind)
        # Contract in the stored axis order, so that the compiler transposes only if it has to.
        (axis,) = outer
        if units == block:
            return jax.lax.dot_general(one, other, ((inner, inner), ((), ())))[None]
        shape = (*one.shape[:axis], units // block, block, *one.shape[axis + 1 :])
        rest = [each + (each > axis) for each in inner]
        return jax.lax.dot_general(one.reshape(shape), other.reshape(shape), ((rest, rest), ((axis,), (axis,))))
    first, second = (unit_rows(labels, each, units, block, xp) for each in (one, other))
    return row_products(first, second, xp)


def unit_rows(labels: np.ndarray, array: Any, units: int, block: int, xp: Any) -> Any:
    """Return the slices of the units as rows, shape (blocks, block, elements); a view if they are evenly spaced."""
    order = unit_places(labels, units)
    outer, _ = axes_of_labels(labels, array.shape)
    moved = xp.moveaxis(array, outer, range(len(outer)))
    rows = moved.reshape(labels.size, -1)
    if (order.ravel() == np.arange(order.size) + order[0, 0]).all():
        rows = rows[order[0, 0] : order[0, 0] + order.size]
    else:
        rows = rows[order.ravel()]
    return rows.reshape(units // block, block, -1)


def pairs_of_matrices(matrices: Any) -> Any:
    """Return the entries a ≤ b of the symmetric part of each matrix, flattened."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return ((matrices + matrices.transpose(0, 2, 1)) / 2)[:, rows, columns].reshape(-1)


def means_of_pairs(values: Any) -> Any:
    """Return the mean of the values (blocks, block) for each pair of units a ≤ b of the same block, flattened."""
    rows, columns = np.triu_indices(values.shape[-1])
    return ((values[:, rows] + values[:, columns]) / 2).reshape(-1)
