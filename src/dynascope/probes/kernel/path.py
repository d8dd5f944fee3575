"""How far a tangent kernel has moved along its path."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["KernelPath", "kernel_path"]


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
    return KernelPath(turned[..., 0, 0], moved[..., 0, 0])
