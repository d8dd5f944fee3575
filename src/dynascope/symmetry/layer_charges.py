"""The matrix of charges between two linear layers, for any array library and for batches of ensemble members."""

from __future__ import annotations

from typing import Any, NamedTuple

from dynascope.validation import array_namespace

__all__ = ["LayerCharges", "layer_charges", "row_products"]


class LayerCharges(NamedTuple):
    """The conserved quantities of the units of a hidden layer.

    Attributes:
        matrix: Σ f ⟨θ_a, θ_b⟩ for all units a and b, shape (..., h, h). The entries a ≤ b are the charges of the
            "matrix" symmetry W₁ → W₁ G⁻¹, W₂ → G W₂ that `find_symmetries` finds.
        total: The trace of the matrix, Σ f ‖θ‖².
        size: Σ |f| ‖θ‖².
    """

    matrix: Any
    total: Any
    size: Any


def layer_charges(first: Any, second: Any, factors: tuple[Any, Any] = (1.0, 1.0)) -> LayerCharges:
    """Compute f₂ W₂W₂ᵀ − f₁ W₁ᵀW₁ for the layers of f(x) = x W₁ W₂, for one network or for each member of an ensemble.

    Gradient flow with learning rates η₁ and η₂ conserves this matrix if f₁/f₂ = η₂/η₁.

    Args:
        first: W₁, shape (..., d, h), as a NumPy, JAX or PyTorch array.
        second: W₂, shape (..., h, c).
        factors: f₁ and f₂, as numbers or as arrays with one entry per member, shape (...).
    """
    xp = array_namespace(first, second)
    incoming, outgoing = (_of_members(factor) for factor in factors)
    rows = xp.matrix_transpose(first)
    matrix = outgoing * row_products(second, second, xp) - incoming * row_products(rows, rows, xp)
    inner, outer = incoming * first**2, outgoing * second**2
    sums = xp.sum(inner, axis=(-2, -1)), xp.sum(outer, axis=(-2, -1))
    return LayerCharges(matrix, sums[1] - sums[0], sums[1] + sums[0])


def row_products(one: Any, other: Any, xp: Any) -> Any:
    """Compute the Gram matrices of the rows of each block; the inputs have shape (..., block, elements)."""
    return xp.matmul(one, xp.matrix_transpose(other))


def _of_members(factor: Any) -> Any:
    return factor[..., None, None] if hasattr(factor, "shape") else factor
