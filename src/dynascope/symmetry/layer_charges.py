"""The matrix of charges between two linear layers, in any array library and with members of an ensemble in front."""

from __future__ import annotations

from typing import Any, NamedTuple

from dynascope.validation import array_namespace

__all__ = ["LayerCharges", "layer_charges", "row_products"]


class LayerCharges(NamedTuple):
    """What the units of a hidden layer conserve.

    Attributes:
        matrix: Σ f ⟨θ_a, θ_b⟩ of all units a and b, shape (..., h, h); its entries a ≤ b are the charges
            of the "matrix" symmetry W₁ → W₁ G⁻¹, W₂ → G W₂ that `find_symmetries` finds.
        total: The trace of the matrix, Σ f ‖θ‖².
        size: Σ |f| ‖θ‖².
    """

    matrix: Any
    total: Any
    size: Any


def layer_charges(first: Any, second: Any, factors: tuple[Any, Any] = (1.0, 1.0)) -> LayerCharges:
    """f₂ W₂W₂ᵀ − f₁ W₁ᵀW₁ of two layers of f(x) = x W₁ W₂, or of those of each member of an ensemble.

    Gradient flow at rates η₁ and η₂ conserves it where f₁/f₂ = η₂/η₁.

    Args:
        first: W₁, shape (..., d, h), of NumPy, JAX or PyTorch.
        second: W₂, shape (..., h, c).
        factors: f₁ and f₂, numbers or arrays (...) of the members.
    """
    xp = array_namespace(first, second)
    incoming, outgoing = (_of_members(factor) for factor in factors)
    rows = xp.matrix_transpose(first)
    matrix = outgoing * row_products(second, second, xp) - incoming * row_products(rows, rows, xp)
    inner, outer = incoming * first**2, outgoing * second**2
    sums = xp.sum(inner, axis=(-2, -1)), xp.sum(outer, axis=(-2, -1))
    return LayerCharges(matrix, sums[1] - sums[0], sums[1] + sums[0])


def row_products(one: Any, other: Any, xp: Any) -> Any:
    """The products of the units of each block, whose rows (..., block, elements) are given."""
    return xp.matmul(one, xp.matrix_transpose(other))


def _of_members(factor: Any) -> Any:
    return factor[..., None, None] if hasattr(factor, "shape") else factor
