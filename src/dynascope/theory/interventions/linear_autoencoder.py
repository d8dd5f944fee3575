"""Regularised linear autoencoders: loss, gradients and all critical points, with value, index and nullity."""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from annotated_types import IsFinite
from jaxtyping import Bool, Float, Int, Real
from numpy.typing import ArrayLike

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.validation import require, require_room, require_shape, require_whole_numbers
from dynascope.validation.bounded import NonNegativeFloat, PositiveInt, PositiveNumbers

__all__ = [
    "AutoencoderLoss",
    "CriticalPoints",
    "Learned",
    "Penalty",
    "autoencoder_critical_points",
    "autoencoder_loss",
    "critical_autoencoder",
    "require_learned",
    "require_spectrum",
]

Matrix: TypeAlias = IsFinite[Real[ArrayLike, "_ _"]]
Learned: TypeAlias = IsFinite[Real[ArrayLike, " learned"]]
Penalty: TypeAlias = Literal["weights", "product"]

_EQUAL = 1e-10  # relative difference below which two squared singular values count as equal
_INVERSE = 1e-8  # largest entry of M N − I, relative to the size of the factors, that counts as rounding
_CALLER = 5  # stack level of the caller, past the decorators
_covers = functools.partial(covers, network="linear autoencoder", reference="arXiv:1901.08168")


class AutoencoderLoss(NamedTuple):
    """Loss and gradients of a linear autoencoder.

    Attributes:
        value: Loss, summed over samples and inputs.
        encoder_gradient: Gradient with respect to A, shape (inputs, latents).
        decoder_gradient: Gradient with respect to B, shape (latents, inputs).
    """

    value: float
    encoder_gradient: Float[np.ndarray, "inputs latents"]
    decoder_gradient: Float[np.ndarray, "latents inputs"]

    __repr__ = short_repr


class CriticalPoints(NamedTuple):
    """All critical manifolds of the loss, one for each set of learned principal directions.

    The sets are ordered by size, and sets of equal size are ordered lexicographically.

    Attributes:
        learned: Whether the set contains each direction, shape (points, directions).
        value: Critical value of the loss, shape (points,).
        index: Number of negative eigenvalues of the Hessian, shape (points,); zero at minima only.
        nullity: Number of zero eigenvalues, the dimension of the critical manifold, shape (points,).
    """

    learned: Bool[np.ndarray, "points directions"]
    value: Float[np.ndarray, " points"]
    index: Int[np.ndarray, " points"]
    nullity: Int[np.ndarray, " points"]

    __repr__ = short_repr


@_covers(data="any", start="any", gives="the loss and its gradients")
def autoencoder_loss(
    data: Matrix,
    encoder: Matrix,
    decoder: Matrix,
    regularization: NonNegativeFloat = 0.0,
    penalty: Penalty = "weights",
) -> AutoencoderLoss:
    """Loss and gradients of a linear autoencoder.

        L = ‖X − X A B‖² + λ (‖A‖² + ‖B‖²)   with penalty="weights"
        L = ‖X − X A B‖² + λ ‖A B‖²          with penalty="product"

    The loss is summed over samples, without a factor ½. For λ = 0, both formulas give the loss without a penalty.

    Args:
        data: X, shape (samples, inputs). Centre it for principal component analysis.
        encoder: A, shape (inputs, latents).
        decoder: B, shape (latents, inputs).
        regularization: λ ≥ 0.
        penalty: The penalised quantity.

    Raises:
        InputError: If the shapes do not match.

    References:
        Kunin, Bloom, Goeva, Seed, arXiv:1901.08168, in which columns are samples, W₁ = Aᵀ and W₂ = Bᵀ.

    Example:
        >>> found = autoencoder_loss([[2.0]], [[0.5]], [[1.0]], regularization=1.0)
        >>> found.value, found.encoder_gradient.item(), found.decoder_gradient.item()
        (2.25, -3.0, 0.0)
    """
    x, a, b = (np.asarray(each, float) for each in (data, encoder, decoder))
    require_shape("encoder", a, (x.shape[1], None))
    require_shape("decoder", b, a.shape[::-1])
    residual = x @ a @ b - x
    in_weights = regularization if penalty == "weights" else 0.0
    in_product = regularization - in_weights
    slope = x.T @ residual + in_product * (a @ b)
    value = np.sum(residual**2) + in_weights * (np.sum(a**2) + np.sum(b**2)) + in_product * np.sum((a @ b) ** 2)
    return AutoencoderLoss(float(value), 2 * (slope @ b.T + in_weights * a), 2 * (a.T @ slope + in_weights * b))


@_covers(data="distinct singular values", start="any", gives="value, index and nullity of all critical points")
def autoencoder_critical_points(
    singular_values: PositiveNumbers,
    latents: PositiveInt,
    regularization: NonNegativeFloat = 0.0,
    penalty: Penalty = "weights",
) -> CriticalPoints:
    """All critical points of the loss of a linear autoencoder, with value, index and nullity.

    For each set I of at most k directions, the critical points form one manifold, on which the loss is

        Σ_{i∉I} σ_i² + Σ_{i∈I} c_i,   c_i = 2λ − λ²/σ_i² (weights)   or   λσ_i²/(σ_i² + λ) (product)

    With the penalty on the weights, only directions with σ_i² > λ can be learned. The index is

        #{(i, j): i ∈ I, j ∉ I, σ_j > σ_i} + (k − |I|) (r − |I|),

    where r is the number of directions that can be learned. Hence every critical point is a global minimum or a strict
    saddle. The nullity is the dimension of the manifold, 2|I|k − |I|². With λ > 0 and the penalty on the weights, it is
    |I|k − |I|(|I| + 1)/2. Each pair of equal singular values σ_i = σ_j with i ∈ I, j ∉ I adds one to the nullity.

    Args:
        singular_values: Singular values σ_i > 0 of the data, in decreasing order, shape (directions,).
        latents: Number of latents k, at most the number of directions.
        regularization: Strength λ ≥ 0 of the penalty; different from every σ_i² if the weights are penalised.
        penalty: The penalised quantity.

    Raises:
        InputError: If the singular values increase, if k exceeds their number, or if λ equals a σ_i².

    Warns:
        UserWarning: If singular values are equal. Sets with equal singular values then belong to one manifold.

    References:
        Kunin, Bloom, Goeva, Seed, arXiv:1901.08168.

    Example:
        >>> found = autoencoder_critical_points([2.0, 1.0], latents=1, regularization=0.5)
        >>> found.value.tolist(), found.index.tolist(), found.nullity.tolist()
        ([5.0, 1.9375, 4.75], [2, 0, 1], [0, 0, 0])
    """
    squares = require_spectrum(singular_values, latents, regularization, penalty)
    in_weights = penalty == "weights" and regularization > 0
    rank = int(np.sum(squares > regularization)) if in_weights else len(squares)
    most = min(latents, rank)
    require_room(sum(math.comb(rank, size) for size in range(most + 1)) * len(squares), latents=latents)
    sets = [each for size in range(most + 1) for each in itertools.combinations(range(rank), size)]
    learned = np.zeros((len(sets), len(squares)), bool)
    for row, each in zip(learned, sets, strict=True):
        row[list(each)] = True
    size = learned.sum(axis=1)
    equal = np.abs(squares - squares[:, None]) <= _EQUAL * squares
    equal &= equal.T
    if np.triu(equal[:rank, :rank], 1).any():
        problem = "autoencoder_critical_points: singular values are equal, and their directions can be rotated freely"
        warnings.warn(problem, stacklevel=_CALLER)
    pairs = learned[:, :, None] & ~learned[:, None, :]  # (set, i ∈ I, j ∉ I)
    higher = (squares > squares[:, None]) & ~equal
    index = np.sum(pairs & higher, axis=(1, 2)) + (latents - size) * (rank - size)
    nullity = size * latents - size * (size + 1) // 2 if in_weights else 2 * size * latents - size**2
    nullity = nullity + np.sum(pairs & equal, axis=(1, 2))
    if in_weights:
        cost = regularization * (2 - regularization / squares)
    else:
        cost = squares * (regularization / (squares + regularization))
    return CriticalPoints(learned, np.where(learned, cost, squares).sum(axis=1), index, nullity)


@_covers(data="any", start="any", gives="the weights at a critical point")
def critical_autoencoder(
    data: Matrix,
    learned: Learned,
    latents: PositiveInt,
    regularization: NonNegativeFloat = 0.0,
    penalty: Penalty = "weights",
    *,
    encoder_mixing: Matrix | None = None,
    decoder_mixing: Matrix | None = None,
) -> tuple[Float[np.ndarray, "inputs latents"], Float[np.ndarray, "latents inputs"]]:
    """Weights of a linear autoencoder at a critical point of its loss.

        A = V D M,              B = N D Vᵀ,   D² = 1 − λ/σ²,   M Mᵀ = I,   N = Mᵀ   (weights)
        A = V (1 + λ/σ²)⁻¹ M,   B = N Vᵀ,                      M N = I              (product)

    The columns of V are the learned principal directions. With the penalty on the weights and λ > 0, the decoder is the
    transpose of the encoder. The point is a global minimum if the k strongest directions are learned.

    Args:
        data: X, shape (samples, inputs).
        learned: Indices of the learned directions, counted from 0 in decreasing order of the singular values.
        latents: Number of latents k, at least the number of learned directions.
        regularization: Strength λ ≥ 0 of the penalty; below σ² of every learned direction if the weights are penalised.
        penalty: The penalised quantity.
        encoder_mixing: M, shape (learned, latents); by default, latent i encodes the i-th learned direction.
        decoder_mixing: N, shape (latents, learned); by default, the pseudo-inverse of M.

    Returns:
        The encoder A and the decoder B.

    Raises:
        InputError: If the directions cannot be learned, or if the mixing matrices do not satisfy the conditions above.

    References:
        Kunin, Bloom, Goeva, Seed, arXiv:1901.08168.

    Example:
        >>> encoder, decoder = critical_autoencoder([[2.0, 0.0], [0.0, 1.0]], [0], latents=1, regularization=1.0)
        >>> abs(encoder.round(6)).tolist(), abs(decoder.round(6)).tolist()
        ([[0.866025], [0.0]], [[0.866025, 0.0]])
    """
    x = np.asarray(data, float)
    _, sigma, rows = np.linalg.svd(x, full_matrices=False)
    rank = int(np.count_nonzero(sigma > np.finfo(float).eps * max(x.shape) * sigma[:1]))
    require(
        latents <= rank == len(sigma),
        f"latents is {latents}, but the rank of the data is {rank}",
        argument="latents" if rank == len(sigma) else "data",
        value=latents,
        remedy="choose fewer latents, or drop inputs that are linear combinations of others",
    )
    chosen = require_learned(learned, sigma**2, latents, regularization, penalty)
    directions, squares, size = rows[chosen].T, sigma[chosen] ** 2, len(chosen)
    m = np.eye(size, latents) if encoder_mixing is None else np.asarray(encoder_mixing, float)
    require_shape("encoder_mixing", m, (size, latents))
    n = np.linalg.pinv(m) if decoder_mixing is None else np.asarray(decoder_mixing, float)
    require_shape("decoder_mixing", n, (latents, size))
    in_weights = penalty == "weights" and regularization > 0
    for name, product, condition in (
        ("encoder_mixing" if decoder_mixing is None else "decoder_mixing", m @ n, "matrices with M N = I"),
        *([("encoder_mixing", m @ m.T, "orthonormal rows"), ("decoder_mixing", n.T @ n, "N = Mᵀ")] * in_weights),
    ):
        error = float(np.abs(product - np.eye(size)).max(initial=0.0))
        holds = error <= _INVERSE * (1 + np.linalg.norm(m) * np.linalg.norm(n))
        require(
            holds,
            f"{name} deviates from the required form by {error:.1e}",
            argument=name,
            value=error,
            remedy=f"choose {condition}",
        )
    if in_weights:
        half = directions * np.sqrt(1 - regularization / squares)
        return half @ m, n @ half.T
    return (directions / (1 + regularization / squares)) @ m, n @ directions.T


def require_spectrum(
    singular_values: ArrayLike, latents: int, regularization: float, penalty: Penalty = "weights"
) -> Float[np.ndarray, " directions"]:
    """Return σ² of decreasing singular values, after checking them, the number of latents and λ."""
    sigma = np.asarray(singular_values, float)
    require_shape("singular_values", sigma, (None,))
    require(
        bool((np.diff(sigma) <= 0).all()),
        "the singular values increase",
        argument="singular_values",
        remedy="sort the values in decreasing order",
    )
    require(
        latents <= len(sigma),
        f"latents is {latents}, but the number of singular values is {len(sigma)}",
        argument="latents",
        value=latents,
        remedy=f"choose at most {len(sigma)} latents",
    )
    with np.errstate(over="ignore", under="ignore"):
        squares = sigma**2
    require(
        penalty == "product" or not (np.abs(squares - regularization) <= _EQUAL * squares).any(),
        f"regularization is {regularization:g}, which equals a squared singular value, so critical points merge",
        argument="regularization",
        value=regularization,
        remedy="choose a different value",
    )
    return squares


def require_learned(
    learned: ArrayLike, squares: np.ndarray, latents: int, regularization: float, penalty: Penalty = "weights"
) -> Int[np.ndarray, " learned"]:
    """Return the sorted indices of learned directions, after checking that these directions can be learned."""
    values = np.asarray(learned, float)
    require_shape("learned", values, (None,))
    require_whole_numbers("learned", values, most=len(squares) - 1)
    chosen = np.unique(values.astype(int))
    require(
        len(chosen) == len(values) and len(chosen) <= latents,
        f"learned is {values.tolist()}, and latents is {latents}",
        argument="learned",
        value=len(values),
        remedy="give distinct directions, at most one per latent",
    )
    off = chosen[squares[chosen] <= regularization] if penalty == "weights" else chosen[:0]
    require(
        not off.size,
        f"for the directions {off.tolist()}, σ² does not exceed the regularization, {regularization:g}",
        argument="learned",
        value=off.tolist(),
        remedy="omit these directions, or choose a smaller regularization",
    )
    return chosen
