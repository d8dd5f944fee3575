"""Probabilistic principal component analysis as a regularised linear autoencoder."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.interventions.linear_autoencoder import Matrix
from dynascope.validation import require
from dynascope.validation.bounded import PositiveFloat, PositiveInt

__all__ = ["ProbabilisticPCA", "probabilistic_pca"]


class ProbabilisticPCA(NamedTuple):
    """Maximum-likelihood solution of probabilistic principal component analysis.

    Attributes:
        loadings: W, determined up to a rotation of the latents, shape (inputs, latents).
        reconstruction: Symmetric matrix that maps a sample to its reconstruction from the posterior mean of the
            latents, shape (inputs, inputs). It equals A B at the minimum of the autoencoder.
        regularization: λ = n s², the regularization of the equivalent autoencoder.
    """

    loadings: Float[np.ndarray, "inputs latents"]
    reconstruction: Float[np.ndarray, "inputs inputs"]
    regularization: float

    __repr__ = short_repr


@covers(
    network="linear autoencoder",
    data="any",
    start="at the minimum",
    gives="the equivalent probabilistic model",
    reference="arXiv:1901.08168",
)
def probabilistic_pca(
    data: Matrix, latents: PositiveInt, noise_variance: PositiveFloat | None = None
) -> ProbabilisticPCA:
    """Fit the probabilistic PCA model x = W z + noise of variance s², and find the equivalent linear autoencoder.

        W = V (σ²/n − s²)^½,   W (WᵀW + s²)⁻¹ Wᵀ = A B   at the minimum of ‖X − X A B‖² + λ (‖A‖² + ‖B‖²), λ = n s²

    The loadings also equal n^−½ (XᵀX)^½ Bᵀ. Directions with σ_i² ≤ λ are switched off in both models.

    Args:
        data: X, shape (samples, inputs), centred.
        latents: Number of latents k, at most the smaller dimension of X.
        noise_variance: s² > 0. The default is the maximum-likelihood value, the mean variance Σ_{i>k} σ_i² / (n
            (inputs − k)) of the discarded directions.

    Raises:
        InputError: If there are too many latents, or if the discarded directions have no variance.

    References:
        Tipping, Bishop, Journal of the Royal Statistical Society B 61 (1999); Kunin, Bloom, Goeva, Seed,
        arXiv:1901.08168.

    Example:
        >>> found = probabilistic_pca([[2.0, 0.0], [0.0, 1.0]], latents=1)
        >>> found.regularization, found.reconstruction.round(12).tolist()
        (1.0, [[0.75, 0.0], [0.0, 0.0]])
    """
    x = np.asarray(data, float)
    samples, inputs = x.shape
    require(
        latents <= min(x.shape),
        f"latents is {latents}, but data has shape {x.shape}",
        argument="latents",
        value=latents,
        remedy=f"choose at most {min(x.shape)} latents",
    )
    _, sigma, rows = np.linalg.svd(x, full_matrices=False)
    discarded = np.sum(sigma[latents:] ** 2) / (samples * max(inputs - latents, 1))
    variance = float(discarded if noise_variance is None else noise_variance)
    require(
        variance > 0,
        "the discarded directions have no variance, so the likelihood is unbounded",
        argument="noise_variance",
        value=variance,
        remedy="choose fewer latents or a positive noise variance",
    )
    directions, powers = rows[:latents].T, sigma[:latents] ** 2 / samples
    signal = np.maximum(powers - variance, 0.0)
    return ProbabilisticPCA(
        directions * np.sqrt(signal),
        (directions * (signal / np.maximum(powers, variance))) @ directions.T,
        samples * variance,
    )
