"""Filters as images with one channel and mean zero."""

from __future__ import annotations

from typing import Any, NamedTuple

from dynascope.errors import InputError
from dynascope.validation import array_namespace, holds, require, require_finite_values

__all__ = ["Planes", "planes"]

_ROUNDING = 16  # a filter that varies by less than this multiple of the rounding error is constant


class Planes(NamedTuple):
    """Filters with one channel and mean zero, scaled to a largest absolute value of about one.

    Attributes:
        values: Shape (n, k, k).
        varies: Whether each filter varies over its pixels, shape (n,).
    """

    values: Any
    varies: Any


def planes(filters: Any, *, least: int, remedy: str) -> Planes:
    """Subtract the mean of each filter, and replace colour by its first principal component.

    Args:
        filters: Shape (n, k, k) or (n, k, k, channels).
        least: Smallest valid k.
        remedy: Advice for filters with a smaller k.

    Raises:
        InputError: If the filters have another shape, are smaller than `least`, have values that are not finite, or
            are all constant.
    """
    xp = array_namespace(filters=filters)
    shape = tuple(filters.shape)
    if len(shape) not in (3, 4) or min(shape) == 0 or shape[1] != shape[2]:
        remedy = "pass a non-empty array of shape (filters, k, k) or (filters, k, k, channels)"
        raise InputError(f"filters has shape {shape}", argument="filters", value=shape, remedy=remedy)
    side = shape[1]
    problem = f"filters has kernels of {side} × {side} pixels"
    require(side >= least, problem, argument="filters", value=side, remedy=remedy)
    require_finite_values("filters", filters, floating=True)
    count, pixels = shape[0], side * side
    values = xp.reshape(filters, (count, pixels, -1))
    # Rescale to order one, so that squares neither overflow nor underflow.
    largest = _largest(xp, values)
    values = values / xp.where(largest > 0, largest, xp.ones_like(largest))
    values = values - xp.mean(values, axis=1, keepdims=True)
    spread = _largest(xp, values)
    varies = spread > _ROUNDING * xp.finfo(values.dtype).eps
    problem, remedy = "every filter in filters is constant, so no score is defined", "pass filters that vary"
    require(holds(xp.any(varies)), problem, argument="filters", value=shape, remedy=remedy)
    values = xp.where(varies, values / xp.where(varies, spread, xp.ones_like(spread)), xp.zeros_like(values))
    if values.shape[2] > 1:
        covariance = xp.matrix_transpose(values) @ values
        _, axes = xp.linalg.eigh(covariance)
        values = values @ axes[:, :, -1:]
    return Planes(xp.reshape(values, (count, side, side)), varies[:, 0, 0])


def _largest(xp: Any, values: Any) -> Any:
    return xp.max(xp.abs(values), axis=(1, 2), keepdims=True)
