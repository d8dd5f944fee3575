"""Layers of PyTorch (ATen operations) as JAX functions: convolutions, pooling, normalisation and softmax."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["LAYERS"]


def _convolution(
    x: Any,
    kernel: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """Convolution in the layout (batch, channels, spatial axes), the default in PyTorch and JAX."""
    axes = kernel.ndim - 2
    stride, padding, dilation, output_padding = (
        _each(each, axes) for each in (stride, padding, dilation, output_padding)
    )
    single = x.ndim == kernel.ndim - 1
    x = x[None] if single else x
    if transposed:
        into, out, *window = kernel.shape
        kernel = jnp.swapaxes(kernel.reshape(groups, into // groups, out, *window), 1, 2)
        kernel = jax.lax.rev(kernel.reshape(groups * out, into // groups, *window), range(2, 2 + axes))
        reach = [d * (n - 1) - p for d, n, p in zip(dilation, window, padding, strict=True)]
        edges = [(r, r + o) for r, o in zip(reach, output_padding, strict=True)]
        spread, step = stride, (1,) * axes
    else:
        edges, spread, step = [(p, p) for p in padding], (1,) * axes, stride
    y = jax.lax.conv_general_dilated(
        x, kernel, step, edges, lhs_dilation=spread, rhs_dilation=dilation, feature_group_count=groups
    )
    y = y if bias is None else y + bias.reshape(-1, *(1,) * axes)
    return y[0] if single else y


def _each(value: int | Sequence[int], axes: int) -> tuple[int, ...]:
    """Return one value for each axis; a single value stands for all axes."""
    row = [value] if isinstance(value, int) else list(value)
    return tuple(row * axes if len(row) == 1 else row)


def _window(
    lengths: Sequence[int],
    window: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil: bool,
) -> list[tuple[int, int]]:
    """Return the padding before and after each axis that fits the windows of PyTorch."""
    edges = []
    for n, w, s, p, d in zip(lengths, window, stride, padding, dilation, strict=True):
        reach = d * (w - 1) + 1
        count = (n + 2 * p - reach + (s - 1 if ceil else 0)) // s + 1
        # The last window must start inside the input or the padding before it.
        count -= ceil and (count - 1) * s >= n + p
        edges.append((p, (count - 1) * s + reach - n - p))
    return edges


def _padded(x: Any, value: float, edges: Sequence[tuple[int, int]]) -> Any:
    """Pad the last axes; negative widths crop."""
    widths = [(0, 0, 0)] * (x.ndim - len(edges)) + [(*edge, 0) for edge in edges]
    return jax.lax.pad(x, jnp.asarray(value, x.dtype), widths)


def _max_pool(axes: int) -> Callable[..., Any]:
    def pool(x: Any, window: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False) -> Any:
        window, padding, dilation = (_each(each, axes) for each in (window, padding, dilation))
        stride = _each(stride, axes) if stride else window
        x = _padded(x, -jnp.inf, _window(x.shape[-axes:], window, stride, padding, dilation, ceil))
        ones = (1,) * (x.ndim - axes)
        if set(dilation) == {1}:
            # JAX recognises a plain number as the neutral element of `max`.
            return jax.lax.reduce_window(x, -np.inf, jax.lax.max, (*ones, *window), (*ones, *stride), "VALID"), None
        # JAX has no gradient of dilated windows.
        last = [n - d * (w - 1) for n, w, d in zip(x.shape[-axes:], window, dilation, strict=True)]

        def shifted(offset: tuple[int, ...]) -> Any:
            starts = [o * d for o, d in zip(offset, dilation, strict=True)]
            cuts = [slice(o, o + n, s) for o, n, s in zip(starts, last, stride, strict=True)]
            return x[(..., *cuts)]

        return functools.reduce(jnp.maximum, map(shifted, np.ndindex(*window))), None

    return pool


def _average_pool(axes: int) -> Callable[..., Any]:
    def pool(
        x: Any,
        window: Any,
        stride: Any = (),
        padding: Any = 0,
        ceil: bool = False,
        count_padding: bool = True,
        divisor: int | None = None,
    ) -> Any:
        window, padding = _each(window, axes), _each(padding, axes)
        stride = _each(stride, axes) if stride else window
        edges = _window(x.shape[-axes:], window, stride, padding, (1,) * axes, ceil)
        ones = (1,) * (x.ndim - axes)
        padded = _padded(x, 0.0, edges)
        total = jax.lax.reduce_window(padded, 0.0, jax.lax.add, (*ones, *window), (*ones, *stride), "VALID")
        counts: Any = np.ones(())
        for n, w, s, p, length in zip(x.shape[-axes:], window, stride, padding, total.shape[-axes:], strict=True):
            first = np.arange(length) * s - p
            last = np.minimum(first + w, n + p)
            if not count_padding:
                first, last = np.maximum(first, 0), np.minimum(last, n)
            counts = counts[..., None] * (last - first)
        if divisor or (counts == counts.flat[0]).all():
            return total / float(divisor or counts.flat[0])
        return total / counts

    return pool


def _adaptive(axes: int, pooled: Callable[..., Any], *places: None) -> Callable[..., Any]:
    """Pool over windows from ⌊i n / m⌋ to ⌈(i + 1) n / m⌉.

    Windows are products of intervals, so one axis can be pooled after the other.
    """

    def pool(x: Any, lengths: Any) -> Any:
        for axis, length in zip(range(x.ndim - axes, x.ndim), _each(lengths, axes), strict=True):
            n = x.shape[axis]
            bounds = [(i * n // length, -(-(i + 1) * n // length)) for i in range(length)]
            parts = [pooled(jax.lax.slice_in_dim(x, a, b, 1, axis), axis=axis, keepdims=True) for a, b in bounds]
            x = jnp.concatenate(parts, axis)
        return (x, *places) if places else x

    return pool


def _normed(x: Any, axes: Sequence[int], epsilon: float) -> Any:
    centred = x - x.mean(tuple(axes), keepdims=True)
    return centred * jax.lax.rsqrt(jnp.mean(centred**2, tuple(axes), keepdims=True) + epsilon)


def _affine(x: Any, gain: Any, shift: Any) -> Any:
    x = x if gain is None else x * gain
    return x if shift is None else x + shift


def _by_channel(x: Any, each: Any) -> Any:
    return None if each is None else each.reshape(-1, *(1,) * (x.ndim - 2))


def _batch_norm(
    x: Any, gain: Any, shift: Any, mean: Any, variance: Any, training: bool, momentum: float, epsilon: float
) -> Any:
    if training:
        found = _normed(x, [axis for axis in range(x.ndim) if axis != 1], epsilon)
    else:
        found = (x - _by_channel(x, mean)) * jax.lax.rsqrt(_by_channel(x, variance) + epsilon)
    return _affine(found, _by_channel(x, gain), _by_channel(x, shift)), None, None, None, None


def _layer_norm(x: Any, shape: Sequence[int], gain: Any, shift: Any, epsilon: float) -> Any:
    return _affine(_normed(x, range(x.ndim - len(shape), x.ndim), epsilon), gain, shift), None, None


def _group_norm(x: Any, gain: Any, shift: Any, n: int, channels: int, pixels: int, groups: int, epsilon: float) -> Any:
    parts = x.reshape(n, groups, channels // groups, *x.shape[2:])
    found = _normed(parts, range(2, parts.ndim), epsilon).reshape(x.shape)
    return _affine(found, _by_channel(x, gain), _by_channel(x, shift)), None, None


def _enlarged(axes: int) -> Callable[..., Any]:
    """Nearest-neighbour upsampling."""

    def enlarge(x: Any, size: Sequence[int] | None, factors: Sequence[float] | None) -> Any:
        for place, axis in enumerate(range(x.ndim - axes, x.ndim)):
            ratio, length = _ratio(x.shape[axis], place, size, factors)
            x = jnp.take(x, np.minimum(np.floor(np.arange(length) * ratio).astype(int), x.shape[axis] - 1), axis)
        return x

    return enlarge


def _interpolated(axes: int) -> Callable[..., Any]:
    """Linear interpolation, one axis after the other."""

    def enlarge(x: Any, size: Sequence[int] | None, aligned: bool, factors: Sequence[float] | None = None) -> Any:
        for place, axis in enumerate(range(x.ndim - axes, x.ndim)):
            n = x.shape[axis]
            ratio, length = _ratio(n, place, size, factors)
            if aligned:
                at = np.arange(length) * ((n - 1) / (length - 1) if length > 1 else 0.0)
            else:
                at = np.maximum((np.arange(length) + 0.5) * ratio - 0.5, 0.0)
            first = np.minimum(at.astype(int), n - 1)
            share = np.minimum(at - first, 1.0).reshape(-1, *(1,) * (x.ndim - 1 - axis))
            last = jnp.take(x, np.minimum(first + 1, n - 1), axis)
            x = jnp.take(x, first, axis) * (1 - share) + last * share
        return x

    return enlarge


def _ratio(n: int, place: int, size: Sequence[int] | None, factors: Sequence[float] | None) -> tuple[float, int]:
    """Return the number of input pixels per output pixel along an axis, and the number of output pixels."""
    if size is not None:
        return n / size[place], size[place]
    factor = (factors or ())[place]
    return 1 / factor, int(n * factor)


def _embedding_bag(
    table: Any,
    places: Any,
    offsets: Any,
    _: bool = False,
    mode: int = 0,
    __: bool = False,
    weights: Any = None,
    include_last: bool = False,
    padding: int = -1,
) -> Any:
    """Return the sum, mean or maximum of the table rows in each bag.

    Bags begin at the offsets. The aggregated values are the first of four results, as in ATen.
    """
    starts = jnp.asarray(offsets[:-1] if include_last else offsets)
    bags = starts.shape[0]
    of = (jnp.arange(places.shape[0])[:, None] >= starts[None, :]).sum(1) - 1
    rows = jnp.take(table, places, 0, mode="clip")
    # Padding entries belong to no bag.
    of = jnp.where(places == padding, bags, of) if padding >= 0 else of
    count = jax.ops.segment_sum(jnp.ones_like(of), of, bags + 1)[:bags, None]
    if mode == 2:
        found = jnp.where(count > 0, jax.ops.segment_max(rows, of, bags + 1)[:bags], 0)
    else:
        rows = rows if weights is None else rows * weights[:, None]
        found = jax.ops.segment_sum(rows, of, bags + 1)[:bags]
        found = found / jnp.maximum(count, 1) if mode == 1 else found
    return found, of, count, count


LAYERS: dict[str, Callable[..., Any]] = {
    "convolution": _convolution,
    **{f"max_pool{axes}d_with_indices": _max_pool(axes) for axes in (2, 3)},
    **{f"avg_pool{axes}d": _average_pool(axes) for axes in (2, 3)},
    **{f"_adaptive_avg_pool{axes}d": _adaptive(axes, jnp.mean) for axes in (2, 3)},
    **{f"adaptive_max_pool{axes}d": _adaptive(axes, jnp.max, None) for axes in (2, 3)},
    **{f"upsample_nearest{axes}d": _enlarged(axes) for axes in (1, 2, 3)},
    **{f"upsample_{kind}linear{axes}d": _interpolated(axes) for axes, kind in ((1, ""), (2, "bi"), (3, "tri"))},
    "_native_batch_norm_legit_functional": _batch_norm,
    "_native_batch_norm_legit_no_training": lambda x, a, b, m, v, *rest: _batch_norm(x, a, b, m, v, False, *rest),
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit.no_stats": lambda x, a, b, _, *rest: _batch_norm(x, a, b, None, None, True, *rest),
    "native_batch_norm": _batch_norm,
    "native_layer_norm": _layer_norm,
    "native_group_norm": _group_norm,
    "_embedding_bag": _embedding_bag,
    "_softmax": lambda x, axis, *_: jax.nn.softmax(x, axis),
    "_log_softmax": lambda x, axis, *_: jax.nn.log_softmax(x, axis),
}
