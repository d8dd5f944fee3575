"""Distance and relative change of a tangent kernel along a training trajectory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["KernelPath", "kernel_path", "kernel_sum_path", "layer_kernel_path"]

_CANCELLED = 4e-15  # a sum of terms of both signs below this relative size is a rounding error
_ROUNDING = 1e-29  # kernel distances below this are rounding errors


class KernelPath(NamedTuple):
    """The change of the kernels K(t) along a trajectory, relative to the first kernel.

    Attributes:
        distance: S = 1 − ⟨K(0), K(t)⟩/(‖K(0)‖ ‖K(t)‖), half the squared distance of the normalised kernels.
        change: ‖K(t) − K(0)‖/‖K(0)‖.
    """

    distance: np.ndarray
    change: np.ndarray


def kernel_path(kernels: np.ndarray) -> KernelPath:
    """Compute distance and relative change of kernels of shape (..., times, n, n)."""

    def size(each: np.ndarray) -> np.ndarray:
        return np.linalg.norm(each, axis=(-2, -1), keepdims=True)

    start, sizes = kernels[..., :1, :, :], size(kernels)
    units = kernels / sizes
    turned = size(units - units[..., :1, :, :]) ** 2 / 2
    moved = size(kernels - start) / sizes[..., :1, :, :]
    return _path(turned[..., 0, 0], moved[..., 0, 0])


def layer_kernel_path(layers: np.ndarray, input_moment: np.ndarray) -> KernelPath:
    """Compute distance and relative change of the kernels X M Xᵀ of a network that is linear in its inputs.

    Args:
        layers: M, shape (..., times, d, d).
        input_moment: E[x xᵀ], shape (d, d).
    """
    variances, axes = np.linalg.eigh(input_moment)
    root = (axes * np.sqrt(np.maximum(variances, 0))) @ axes.T
    return kernel_path(root @ layers @ root)


def kernel_sum_path(inner: np.ndarray, outer: np.ndarray) -> KernelPath:
    """Compute distance and relative change of the kernels I ⊗ A + B ⊗ I of a two-layer linear network.

    The inputs must be whitened. The kernels themselves are not formed.

    Args:
        inner: A, shape (..., times, inputs, inputs).
        outer: B, shape (..., times, outputs, outputs).
    """
    inputs, outputs = inner.shape[-1], outer.shape[-1]

    def size(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        trace = np.trace(a, axis1=-2, axis2=-1) * np.trace(b, axis1=-2, axis2=-1)
        parts = outputs * np.sum(a**2, axis=(-2, -1)) + inputs * np.sum(b**2, axis=(-2, -1))
        # If the two parts cancel, only rounding errors remain, which can be negative.
        nothing = parts + 2 * trace < _CANCELLED * (parts + 2 * np.abs(trace))
        return np.sqrt(np.where(nothing, 0.0, parts + 2 * trace))

    first = inner[..., :1, :, :], outer[..., :1, :, :]
    start, now = size(*first), size(inner, outer)
    moved = size(inner - first[0], outer - first[1]) / start
    start, now = start[..., None, None], now[..., None, None]
    return _path(size(inner / now - first[0] / start, outer / now - first[1] / start) ** 2 / 2, moved)


def _path(turned: np.ndarray, moved: np.ndarray) -> KernelPath:
    # Set rounding errors to zero, e.g. for kernels of a single number or direction.
    return KernelPath(np.where(turned < _ROUNDING, 0.0, turned), moved)
