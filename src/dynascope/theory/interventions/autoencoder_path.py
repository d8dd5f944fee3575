"""Strengths of the principal directions in a linear autoencoder over time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.interventions.linear_autoencoder import Penalty, require_spectrum
from dynascope.validation import require, require_shape
from dynascope.validation.bounded import NonNegativeFloat, NonNegativeNumbers, PositiveNumbers

__all__ = ["AutoencoderPath", "autoencoder_path"]


class AutoencoderPath(NamedTuple):
    """Trajectory of a linear autoencoder under gradient flow.

    Attributes:
        strength: s_i, the eigenvalue of A B in each of the first k directions, shape (times, latents).
        loss: Loss, with the shape of the times.
    """

    strength: Float[np.ndarray, "*times latents"]
    loss: Float[np.ndarray, "*times"]

    __repr__ = short_repr


@covers(
    network="linear autoencoder",
    data="any",
    start="A = Bᵀ = V c, or small",
    gives="strengths of the directions and the loss over time",
    reference="arXiv:1901.08168",
)
def autoencoder_path(
    times: NonNegativeNumbers,
    singular_values: PositiveNumbers,
    initial: PositiveNumbers,
    regularization: NonNegativeFloat = 0.0,
    penalty: Penalty = "weights",
) -> AutoencoderPath:
    """Gradient flow of a linear autoencoder whose latents are aligned with the principal directions.

        s(t) = s_∞ / (1 + (s_∞/c² − 1) exp(−4 g t)),   s_∞ = 1 − λ/σ², g = σ² − λ      (weights)
                                                       s_∞ = σ²/(σ² + λ), g = σ²       (product)

    The formula is exact for A = Bᵀ = V diag(c), where V contains the first k principal directions. It also holds for
    random weights in the limit of small scale, if the rates g are well separated. In this case, c_i is the norm of the
    i-th row of Vᵀ(A + Bᵀ)/2 after projection onto the orthogonal complement of the rows above it, because the latents
    along those rows are already in use.

    Args:
        times: t ≥ 0, any shape.
        singular_values: Singular values σ_i > 0 of the data, in decreasing order, shape (directions,).
        initial: Initial values c_i > 0 for the first k directions, shape (latents,).
        regularization: Strength λ ≥ 0 of the penalty; different from every σ_i² if the weights are penalised.
        penalty: The penalised quantity, as in `autoencoder_loss`.

    Raises:
        InputError: If the singular values increase, if there are more latents than directions, or if λ equals a σ_i².

    References:
        Derived for the loss of Kunin, Bloom, Goeva, Seed, arXiv:1901.08168.

    Example:
        >>> path = autoencoder_path([0.0, 0.5, 5.0], [2.0, 1.0], [0.1], regularization=0.5)
        >>> path.strength[:, 0].round(6).tolist(), path.loss.round(6).tolist()
        ([0.01, 0.811028, 0.875], [4.9304, 1.95387, 1.9375])
    """
    c, t = np.asarray(initial, float), np.asarray(times, float)
    require_shape("initial", c, (None,))
    require(
        0 < c.size <= np.size(singular_values),
        f"initial has length {c.size}, but singular_values has length {np.size(singular_values)}",
        argument="initial",
        value=c.size,
        remedy="give at least one entry, and at most one per singular value",
    )
    squares = require_spectrum(singular_values, c.size, regularization, penalty)
    learned = squares[: c.size]
    in_weights = regularization if penalty == "weights" else 0.0
    in_product = regularization - in_weights
    rate = learned - in_weights
    end = rate / (learned + in_product)
    # A direction with λ > σ² has a negative rate and limit, and the exponential may overflow.
    with np.errstate(over="ignore"):
        strength = end / (1 + (end / c**2 - 1) * np.exp(-4 * rate * t[..., None]))
    terms = learned * (1 - strength) ** 2 + 2 * in_weights * strength + in_product * strength**2
    return AutoencoderPath(strength, terms.sum(axis=-1) + squares[c.size :].sum())
