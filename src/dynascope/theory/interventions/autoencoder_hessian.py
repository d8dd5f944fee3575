"""The Hessian spectrum of a linear autoencoder with weight decay, at every critical point."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.theory.interventions.linear_autoencoder import Learned, require_learned, require_spectrum
from dynascope.validation import require_room
from dynascope.validation.bounded import PositiveFloat, PositiveInt, PositiveNumbers

__all__ = ["autoencoder_hessian_spectrum"]


@covers(
    network="linear autoencoder",
    data="any",
    start="at a critical point",
    gives="all eigenvalues of the Hessian",
    reference="arXiv:1901.08168",
)
def autoencoder_hessian_spectrum(
    singular_values: PositiveNumbers, learned: Learned, latents: PositiveInt, regularization: PositiveFloat
) -> Float[np.ndarray, " weights"]:
    """All eigenvalues of the Hessian of ‖X − X A B‖² + λ (‖A‖² + ‖B‖²) at a critical point.

    Let I be the set of learned directions, and d_i² = 1 − λ/σ_i² for i ∈ I. With k latents, the eigenvalues are

        4(σ_i² − λ), 4λ                  for i ∈ I,
        0, 4λ                            for i ∈ I and each unused latent, and for each pair i < j in I,
        2(λ − σ_j²), 2(λ + σ_j²)         for j ∉ I and each unused latent,
        2 eig [[σ_i², −σ_j²], [−σ_j², σ_j² d_i² + λ]]     for i ∈ I, j ∉ I,
        2 eig [[a, b], [b, a + 2λ]]                       for each pair i < j in I,

    where a = (d_i² + d_j²)(σ_i² + σ_j²)/2 and b = (d_i² + d_j²)(σ_j² − σ_i²)/2. Zero eigenvalues are exactly zero.

    Args:
        singular_values: Singular values σ_i > 0 of the data, in decreasing order, shape (directions,).
        learned: Indices of the learned directions I, counted from 0, all with σ_i² > λ.
        latents: Number of latents k, at most the number of directions.
        regularization: Strength λ > 0 of the penalty, different from every σ_i².

    Returns:
        The 2 · directions · k eigenvalues in increasing order. A direction along which the data vanish (σ = 0) would
        add the eigenvalue 2λ twice for each unused latent, and 2λ and 2σ_i² for each learned direction.

    Raises:
        InputError: If the singular values increase, if k exceeds their number, if λ equals a σ_i², or if the directions
            cannot be learned.

    References:
        Derived for the critical points described by Kunin, Bloom, Goeva, Seed, arXiv:1901.08168.

    Example:
        >>> autoencoder_hessian_spectrum([2.0, 1.0], [0], latents=1, regularization=0.5).round(6).tolist()
        [2.0, 2.074905, 8.675095, 14.0]
    """
    squares = require_spectrum(singular_values, latents, regularization)
    require_room(2 * latents * len(squares), latents=latents)
    chosen = require_learned(learned, squares, latents, regularization)
    inside, outside = squares[chosen], np.delete(squares, chosen)
    unused, decay = latents - len(inside), 4 * regularization
    kept = 1 - regularization / inside
    first, second = np.triu_indices(len(inside), 1)
    shared = (kept[first] + kept[second]) / 2
    mean, difference = shared * (inside[first] + inside[second]), shared * (inside[second] - inside[first])
    i, j = (each.ravel() for each in np.meshgrid(inside, outside, indexing="ij"))
    corner = j * (1 - regularization / i) + regularization
    zeros = np.zeros(len(inside) * unused + len(first))
    parts = (
        4 * (inside - regularization),
        np.full(len(inside), decay),
        zeros,
        zeros + decay,
        np.repeat(2 * (regularization - outside), unused),
        np.repeat(2 * (regularization + outside), unused),
        *_twice_eigenvalues(i, corner, j, (i - j) * (j + regularization)),
        *_twice_eigenvalues(
            mean,
            mean + 2 * regularization,
            difference,
            4 * shared**2 * inside[first] * inside[second] + 2 * regularization * mean,
        ),
    )
    return np.sort(np.concatenate(parts))


def _twice_eigenvalues(
    top: np.ndarray, bottom: np.ndarray, beside: np.ndarray, determinant: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Twice the eigenvalues of [[top, beside], [beside, bottom]]; the smaller one keeps its sign despite rounding."""
    larger = (top + bottom) / 2 + np.hypot((top - bottom) / 2, beside)
    return 2 * determinant / larger, 2 * larger
