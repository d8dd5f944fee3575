"""Affine symmetries of a small function, computed as null vectors: explicit generators and quadratic charges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dynascope.results.named_tuples import short_repr
from dynascope.symmetry.ranks import null_space, rank

__all__ = ["Generators", "affine_generators", "independent", "unknowns"]


class Generators(NamedTuple):
    """Vector fields θ ↦ Gθ + c.

    Attributes:
        matrices: G, shape (n, D, D).
        shifts: c, shape (n, D).
    """

    matrices: np.ndarray
    shifts: np.ndarray

    __repr__ = short_repr

    def at(self, theta: np.ndarray) -> np.ndarray:
        """Evaluate the fields at a point; the result has shape (n, D)."""
        return self.matrices @ theta + self.shifts


def unknowns(dimension: int, kind: str) -> int:
    """Count the unknown entries of G and c for one kind of generator.

    "symmetric" means G = Gᵀ with any c, "skew" means G = −Gᵀ with c = 0, and "all" leaves G and c unrestricted.
    """
    symmetric = dimension * (dimension + 1) // 2 + dimension
    return {"symmetric": symmetric, "skew": dimension * (dimension - 1) // 2, "all": dimension * (dimension + 1)}[kind]


def affine_generators(theta: np.ndarray, gradients: np.ndarray, kind: str) -> Generators:
    """Compute a basis of all (G, c) with ⟨∇f(x; θ), Gθ + c⟩ = 0 at every given point.

    Args:
        theta: Points θ, shape (m, D), where m is at least `unknowns(D, kind)`.
        gradients: ∇(r·f) at the points θ, shape (m, D).
        kind: "symmetric" for generators with one conserved charge ½ θᵀGθ + cᵀθ each, "skew" for rotations with c = 0,
            or "all".

    Raises:
        InputError: If a rank is ambiguous.
    """
    dimension = theta.shape[1]
    what = f"the {kind} generators"
    if kind == "all":
        rows = np.concatenate([(gradients[:, :, None] * theta[:, None, :]).reshape(len(theta), -1), gradients], 1)
        found = null_space(rows, what)
        return Generators(found[:, : dimension**2].reshape(-1, dimension, dimension), found[:, dimension**2 :])
    sign = 1.0 if kind == "symmetric" else -1.0
    i, j = np.triu_indices(dimension, 0 if kind == "symmetric" else 1)
    rows = gradients[:, i] * theta[:, j] + sign * gradients[:, j] * theta[:, i]
    # The basis matrices have unit norm: an off-diagonal entry occurs twice in the matrix.
    rows *= np.where(i == j, 0.5, 0.5**0.5)
    found = null_space(np.concatenate([rows, gradients], 1) if kind == "symmetric" else rows, what)
    entries = found[:, : len(i)] * np.where(i == j, 1.0, 0.5**0.5)
    matrices = np.zeros((len(found), dimension, dimension))
    matrices[:, i, j] = entries
    matrices[:, j, i] = sign * entries
    shifts = found[:, len(i) :] if kind == "symmetric" else np.zeros((len(found), dimension))
    return Generators(matrices, shifts)


def independent(generators: Generators, theta: np.ndarray) -> int:
    """Count the independent charges; products of linear charges are also conserved but are not counted."""
    return rank(generators.at(theta), "the charges") if len(generators.shifts) else 0
