"""Inner products of gradients, or of the forward and backward signals of a layer instead of its gradients."""

from __future__ import annotations

from typing import Any

from dynascope.probes.kernel.conventions import Contraction
from dynascope.validation import array_namespace

__all__ = ["contract_layer", "contract_signals", "forms_gradients"]

# For more pairs of positions, the compiled program would be much longer and hardly faster.
_POSITION_PAIRS = 16


def contract_signals(d: Any, d_other: Any, contraction: Contraction) -> Any:
    """Compute inner products ⟨D_ia, D_jb⟩ over the last axis of arrays (n, c, m), with a contraction over outputs."""
    xp = array_namespace(d)
    (n, c, m), (n_other, _, _) = d.shape, d_other.shape
    if contraction == "full":
        products = xp.reshape(d, (n * c, m)) @ xp.reshape(d_other, (n_other * c, m)).T
        return xp.reshape(products, (n, c, n_other, c))
    if contraction == "diagonal":
        products = xp.permute_dims(d, (1, 0, 2)) @ xp.permute_dims(d_other, (1, 2, 0))
        return xp.permute_dims(products, (1, 2, 0))
    return xp.reshape(d, (n, c * m)) @ xp.reshape(d_other, (n_other, c * m)).T / c


def contract_layer(h: Any, d: Any, h_other: Any, d_other: Any, contraction: Contraction) -> Any:
    """Compute the kernel of one weight, Σ_pq ⟨h_ip, h_jq⟩ ⟨D_iap, D_jbq⟩, from h (n, p, g, k) and D (n, c, p, g, m)."""
    (_, positions, groups, inputs), (_, classes, *_, outputs) = h.shape, d.shape
    if groups > 1 or forms_gradients(positions, inputs, outputs, classes, contraction):
        one = _gradients(h, d)
        return contract_signals(one, one if h is h_other else _gradients(h_other, d_other), contraction)
    total: Any = 0.0
    for p in range(positions):
        for q in range(positions):
            gram = h[:, p, 0] @ h_other[:, q, 0].T
            products = contract_signals(d[:, :, p, 0], d_other[:, :, q, 0], contraction)
            if contraction == "full":
                gram = gram[:, None, :, None]
            elif contraction == "diagonal":
                gram = gram[:, :, None]
            total = total + gram * products
    return total


def forms_gradients(positions: int, inputs: int, outputs: int, classes: int, contraction: Contraction) -> bool:
    """Whether forming the gradients of a weight (inputs × outputs) is cheaper than looping over pairs of positions."""
    products = classes**2 if contraction == "full" else classes
    pairs = positions**2
    return pairs > _POSITION_PAIRS or pairs * (inputs + products * outputs) > products * inputs * outputs


def _gradients(h: Any, d: Any) -> Any:
    found = array_namespace(h).einsum("npgk,ncpgm->ncgkm", h, d)
    return found.reshape(*found.shape[:2], -1)
