"""PyTorch (ATen) operations that rearrange or select elements, as JAX functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["ARRANGEMENTS"]


def _expand(x: Any, shape: Sequence[int], **_: Any) -> Any:
    own = (1,) * (len(shape) - x.ndim) + x.shape
    return jnp.broadcast_to(x, [have if want == -1 else want for want, have in zip(shape, own, strict=True)])


def _squeeze(x: Any, axes: int | Sequence[int] | None = None) -> Any:
    axes = range(x.ndim) if axes is None else (axes,) if isinstance(axes, int) else axes
    return jax.lax.squeeze(x, [axis % x.ndim for axis in axes if x.shape[axis] == 1])


def _bounds(x: Any, axis: int, start: int | None, end: int | None) -> tuple[int, int]:
    first, last, _ = slice(start, end).indices(x.shape[axis])
    return first, max(first, last)


def _slice(x: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Any:
    return jax.lax.slice_in_dim(x, *_bounds(x, axis, start, end), step, axis)


def _pad(x: Any, widths: Sequence[int], value: Any = 0.0) -> Any:
    """Pad an array; the widths are listed from the last axis to the first, and negative widths crop."""
    edges = [(0, 0, 0)] * x.ndim
    for place in range(len(widths) // 2):
        edges[x.ndim - 1 - place] = (widths[2 * place], widths[2 * place + 1], 0)
    return jax.lax.pad(x, jnp.asarray(value, x.dtype), edges)


def _index(x: Any, places: Sequence[Any]) -> Any:
    return jnp.asarray(x)[tuple(slice(None) if each is None else each for each in places)]


def _index_put(x: Any, places: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    first = places[0]
    if len(places) == 1 and first.dtype == bool and values.ndim == 0 and not accumulate:
        return jnp.where(first.reshape(first.shape + (1,) * (x.ndim - first.ndim)), values, x)
    where = jnp.asarray(x).at[tuple(slice(None) if each is None else each for each in places)]
    return where.add(values) if accumulate else where.set(values)


def _scatter(x: Any, axis: int, places: Any, values: Any) -> Any:
    """Scatter a number, or an array cropped to the shape of the indices."""
    values = values[tuple(map(slice, places.shape))] if jnp.ndim(values) else values
    return jnp.asarray(x).at[_along(x, axis, places)].set(values)


def _scatter_add(x: Any, axis: int, places: Any, values: Any) -> Any:
    return jnp.asarray(x).at[_along(x, axis, places)].add(values[tuple(map(slice, places.shape))])


def _along(x: Any, axis: int, places: Any) -> tuple[Any, ...]:
    grid = list(jnp.meshgrid(*(jnp.arange(length) for length in places.shape), indexing="ij", sparse=True))
    grid[axis % x.ndim] = places
    return tuple(grid)


def _embedding(table: Any, places: Any, padding: int = -1, *_: bool) -> Any:
    rows = jnp.take(table, places, 0, mode="clip")
    # The padding row has no gradient.
    return rows if padding < 0 else jnp.where((places == padding)[..., None], jax.lax.stop_gradient(rows), rows)


def _gather(x: Any, axis: int, places: Any, **_: Any) -> Any:
    return jnp.asarray(x)[_along(x, axis, places)]


def _slice_scatter(
    x: Any, values: Any, axis: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    first, last = _bounds(x, axis, start, end)
    return jnp.asarray(x).at[(slice(None),) * (axis % x.ndim) + (slice(first, last, step),)].set(values)


def _sort(x: Any, axis: int = -1, descending: bool = False, **_: Any) -> Any:
    places = jnp.argsort(x, axis=axis, descending=descending, stable=True)
    return jnp.sort(x, axis=axis, descending=descending), places


def _topk(x: Any, count: int, axis: int = -1, largest: bool = True, ordered: bool = True) -> Any:
    del ordered
    found, places = jax.lax.top_k(jnp.moveaxis(x if largest else -x, axis, -1), count)
    return jnp.moveaxis(found if largest else -found, -1, axis), jnp.moveaxis(places, -1, axis)


def _as_strided(x: Any, shape: Sequence[int], strides: Sequence[int], offset: int | None = 0) -> Any:
    steps = np.ix_(*(np.arange(length) * stride for length, stride in zip(shape, strides, strict=True)))
    return x.reshape(-1)[np.asarray(sum(steps, np.array(offset or 0)))]


def _unfold(x: Any, axis: int, size: int, step: int) -> Any:
    """Return windows along one axis; the elements of a window are along a new last axis."""
    axis %= x.ndim
    starts = np.arange((x.shape[axis] - size) // step + 1) * step
    return jnp.moveaxis(jnp.take(x, starts[:, None] + np.arange(size), axis, mode="clip"), axis + 1, -1)


ARRANGEMENTS: dict[str, Callable[..., Any]] = {
    "view": jnp.reshape,
    "permute": jnp.transpose,
    "expand": _expand,
    "squeeze": _squeeze,
    "unsqueeze": jnp.expand_dims,
    "select": lambda x, axis, place: jax.lax.index_in_dim(x, place, axis, keepdims=False),
    "slice": _slice,
    "split_with_sizes": lambda x, sizes, axis=0: jax.lax.split(x, sizes, axis % x.ndim),
    "cat": lambda parts, axis=0: jnp.concatenate([each for each in parts if each.shape != (0,)], axis),
    "repeat": jnp.tile,
    "flip": jnp.flip,
    "diagonal": jnp.diagonal,
    "constant_pad_nd": _pad,
    "as_strided": _as_strided,
    "unfold": _unfold,
    "index": _index,
    "index_select": lambda x, axis, places: jnp.take(x, places, axis, mode="clip"),
    "index_put": _index_put,
    "embedding": _embedding,
    "gather": _gather,
    "scatter.value": _scatter,
    "scatter.src": _scatter,
    "scatter_add": _scatter_add,
    "slice_scatter": _slice_scatter,
    "sort": _sort,
    "topk": _topk,
}
