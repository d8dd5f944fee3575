"""The kernel of dense layers from what flows forward and what flows backward, without one gradient of a weight."""

from __future__ import annotations

from typing import Any

from dynascope.probes.kernel.conventions import Contraction
from dynascope.validation import array_namespace

__all__ = ["contract_signals", "dense_layer_kernel"]


def dense_layer_kernel(h: Any, d: Any, h_other: Any, d_other: Any, contraction: Contraction) -> Any:
    """⟨h_i, h_j⟩ ⟨D_ia, D_jb⟩, contracted."""
    gram = h @ h_other.T
    products = contract_signals(d, d_other, contraction)
    if contraction == "full":
        return gram[:, None, :, None] * products
    return gram[:, :, None] * products if contraction == "diagonal" else gram * products


def contract_signals(d: Any, d_other: Any, contraction: Contraction) -> Any:
    """⟨D_ia, D_jb⟩ over the last axis of arrays (n, c, m), contracted over outputs."""
    xp = array_namespace(d)
    (n, c, m), (n_other, _, _) = d.shape, d_other.shape
    if contraction == "full":
        products = xp.reshape(d, (n * c, m)) @ xp.reshape(d_other, (n_other * c, m)).T
        return xp.reshape(products, (n, c, n_other, c))
    if contraction == "diagonal":
        products = xp.permute_dims(d, (1, 0, 2)) @ xp.permute_dims(d_other, (1, 2, 0))
        return xp.permute_dims(products, (1, 2, 0))
    return xp.reshape(d, (n, c * m)) @ xp.reshape(d_other, (n_other, c * m)).T / c
