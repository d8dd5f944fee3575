"""How far a tangent kernel has moved along its path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["KernelPath", "kernel_path", "kernel_sum_path", "layer_kernel_path"]

_CANCELLED = 4e-15  # share of terms of both signs that is their rounding
_ROUNDING = 1e-29  # half the square of a distance between units of a few roundings


class KernelPath(NamedTuple):
    """How the kernels K(t) of a path differ from the first one.

    Attributes:
        distance: Half the squared distance of unit kernels, S = 1 − ⟨K(0), K(t)⟩/(‖K(0)‖ ‖K(t)‖).
        change: ‖K(t) − K(0)‖/‖K(0)‖.
    """

    distance: np.ndarray
    change: np.ndarray


def kernel_path(kernels: np.ndarray) -> KernelPath:
    """How far kernels have turned and moved, for kernels of shape (..., times, n, n)."""

    def size(each: np.ndarray) -> np.ndarray:
        return np.linalg.norm(each, axis=(-2, -1), keepdims=True)

    start, sizes = kernels[..., :1, :, :], size(kernels)
    units = kernels / sizes
    turned = size(units - units[..., :1, :, :]) ** 2 / 2
    moved = size(kernels - start) / sizes[..., :1, :, :]
    return _path(turned[..., 0, 0], moved[..., 0, 0])


def layer_kernel_path(layers: np.ndarray, input_moment: np.ndarray) -> KernelPath:
    """The same of the kernels X M Xᵀ of a network that is linear in its inputs.

    Args:
        layers: M, shape (..., times, d, d).
        input_moment: E[x xᵀ], shape (d, d).
    """
    variances, axes = np.linalg.eigh(input_moment)
    root = (axes * np.sqrt(np.maximum(variances, 0))) @ axes.T
    return kernel_path(root @ layers @ root)


def kernel_sum_path(inner: np.ndarray, outer: np.ndarray) -> KernelPath:
    """The same of the kernels I ⊗ A + B ⊗ I of a two-layer linear network on whitened inputs, which are not formed.

    Args:
        inner: A, shape (..., times, inputs, inputs).
        outer: B, shape (..., times, outputs, outputs).
    """
    inputs, outputs = inner.shape[-1], outer.shape[-1]

    def size(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        trace = np.trace(a, axis1=-2, axis2=-1) * np.trace(b, axis1=-2, axis2=-1)
        parts = outputs * np.sum(a**2, axis=(-2, -1)) + inputs * np.sum(b**2, axis=(-2, -1))
        # Two opposite parts leave nothing but their rounding, which may be negative.
        nothing = parts + 2 * trace < _CANCELLED * (parts + 2 * np.abs(trace))
        return np.sqrt(np.where(nothing, 0.0, parts + 2 * trace))

    first = inner[..., :1, :, :], outer[..., :1, :, :]
    start, now = size(*first), size(inner, outer)
    moved = size(inner - first[0], outer - first[1]) / start
    start, now = start[..., None, None], now[..., None, None]
    return _path(size(inner / now - first[0] / start, outer / now - first[1] / start) ** 2 / 2, moved)


def _path(turned: np.ndarray, moved: np.ndarray) -> KernelPath:
    # Kernels of one number, or of one direction, do not turn, whatever rounding says.
    return KernelPath(np.where(turned < _ROUNDING, 0.0, turned), moved)
