"""Norms, cosines and singular directions that are robust to extreme values and accept leading time axes."""

from __future__ import annotations

from typing import Any

from dynascope.validation import array_namespace

__all__ = ["clipped", "frobenius_norm", "largest", "overlap", "ratio", "top_directions", "unit_vector", "vector_norm"]


def top_directions(matrix: Any) -> tuple[Any, Any, Any]:
    """Return the top left and right singular vectors (zero for a zero matrix) and the relative gap 1 − s₂/s₁."""
    xp = array_namespace(matrix)
    left, sizes, right = xp.linalg.svd(matrix, full_matrices=False)
    first = sizes[..., 0]
    there = xp.astype(first > 0, matrix.dtype)[..., None]
    second = sizes[..., 1] if sizes.shape[-1] > 1 else xp.zeros_like(first)
    return left[..., :, 0] * there, right[..., 0, :] * there, ratio(first - second, first)


def overlap(one: Any, other: Any) -> Any:
    """Return the absolute inner product of unit vectors."""
    xp = array_namespace(one)
    return clipped(xp.abs(xp.sum(one * other, axis=-1)))


def vector_norm(vectors: Any) -> Any:
    """Compute Euclidean norms without overflow or underflow in the squares."""
    xp = array_namespace(vectors)
    size = largest(vectors, -1)
    return size[..., 0] * xp.sqrt(xp.sum((vectors / size) ** 2, axis=-1))


def unit_vector(vectors: Any) -> Any:
    """Normalise vectors; zero vectors stay zero."""
    xp = array_namespace(vectors)
    scaled = vectors / largest(vectors, -1)
    size = xp.sqrt(xp.sum(scaled**2, axis=-1, keepdims=True))
    return scaled / xp.where(size > 0, size, xp.ones_like(size))


def frobenius_norm(matrices: Any) -> Any:
    """Compute the Frobenius norm √ΣM²."""
    xp = array_namespace(matrices)
    return xp.sqrt(xp.sum(matrices**2, axis=(-2, -1)))


def largest(values: Any, axis: int | tuple[int, ...]) -> Any:
    """Return the largest absolute value along the axes, which are kept; zero is replaced by one."""
    xp = array_namespace(values)
    size = xp.max(xp.abs(values), axis=axis, keepdims=True)
    return xp.where(size > 0, size, xp.ones_like(size))


def ratio(value: Any, total: Any) -> Any:
    """Compute a ratio; 0/0 is zero."""
    xp = array_namespace(total)
    return xp.where(total > 0, value / xp.where(total > 0, total, xp.ones_like(total)), xp.zeros_like(total))


def clipped(cosine: Any) -> Any:
    """Clip a cosine to [−1, 1] to remove rounding errors."""
    xp = array_namespace(cosine)
    return xp.minimum(xp.maximum(cosine, -xp.ones_like(cosine)), xp.ones_like(cosine))
