"""Gradient flow of linear autoencoders: visited saddles, imbalance of the layers, and rates near the minimum."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.interventions.autoencoder_hessian import autoencoder_hessian_spectrum
from dynascope.theory.interventions.linear_autoencoder import Matrix, Penalty, require_spectrum
from dynascope.validation import require_shape
from dynascope.validation.bounded import (
    NonNegativeFloat,
    NonNegativeNumbers,
    PositiveFloat,
    PositiveInt,
    PositiveNumbers,
)

__all__ = [
    "AutoencoderLadder",
    "AutoencoderRates",
    "autoencoder_imbalance",
    "autoencoder_ladder",
    "autoencoder_rates",
    "transposition_residual",
]

_covers = functools.partial(covers, network="linear autoencoder", data="any", reference="arXiv:1901.08168")


class AutoencoderLadder(NamedTuple):
    """The saddles that a linear autoencoder visits from vanishing initial weights.

    Attributes:
        loss: Loss at each saddle, from the origin to the global minimum, shape (steps + 1,).
        escape_rate: Rate at which the weights of the next direction grow at each saddle, shape (steps,).
    """

    loss: Float[np.ndarray, " saddles"]
    escape_rate: Float[np.ndarray, " steps"]

    __repr__ = short_repr


class AutoencoderRates(NamedTuple):
    """Convergence rate and largest stable learning rate near the global minimum.

    Attributes:
        slowest: Rate at which the slowest component of the weights converges in gradient flow.
        largest_step: Learning rate above which gradient descent is unstable.
    """

    slowest: float
    largest_step: float

    __repr__ = short_repr


@_covers(start="small", gives="losses of the visited saddles and escape rates", exact=False, assumes=(SMALL_START,))
def autoencoder_ladder(
    singular_values: PositiveNumbers,
    latents: PositiveInt,
    regularization: NonNegativeFloat = 0.0,
    penalty: Penalty = "weights",
) -> AutoencoderLadder:
    """Saddles visited by gradient flow of a linear autoencoder from vanishing initial weights.

    The directions are learned one at a time, strongest first. At saddle s, the directions 1, …, s have been learned.
    The loss has the corresponding critical value, and the weights of direction s + 1 grow at the rate

        2 (σ² − λ)   with the penalty on the weights,      2σ²   with the penalty on the product.

    From weights of scale ε, direction i is therefore learned at the time t_i with t_i / log(1/ε) → 1/rate_i.

    Args:
        singular_values: Singular values σ_i > 0 of the data, in decreasing order and distinct, shape (directions,).
        latents: Number of latents k, at most the number of directions.
        regularization: Strength λ ≥ 0 of the penalty; different from every σ_i² if the weights are penalised.
        penalty: The penalised quantity, as in `autoencoder_loss`.

    Raises:
        InputError: If the singular values increase, if k exceeds their number, or if λ equals a σ_i².

    References:
        Critical values from Kunin, Bloom, Goeva, Seed, arXiv:1901.08168; rates from the Hessian at these points.

    Example:
        >>> found = autoencoder_ladder([2.0, 1.0], latents=2, regularization=0.5)
        >>> found.loss.tolist(), found.escape_rate.tolist()
        ([5.0, 1.9375, 1.6875], [7.0, 1.0])
    """
    squares = require_spectrum(singular_values, latents, regularization, penalty)
    if penalty == "weights":
        steps = squares[:latents][squares[:latents] > regularization]
        drop, rate = steps * (1 - regularization / steps) ** 2, 2 * (steps - regularization)
    else:
        steps = squares[:latents]
        drop, rate = steps / (1 + regularization / steps), 2 * steps
    # Sums of the smaller terms, which are accurate where the loss nearly vanishes.
    left = (steps - drop).cumsum()
    after = np.append(np.cumsum(squares[::-1])[::-1], 0.0)[: len(steps) + 1]
    return AutoencoderLadder(after + np.append(0.0, left), rate)


@_covers(start="any", gives="the imbalance of the layers over time")
def autoencoder_imbalance(
    initial: Matrix, times: NonNegativeNumbers, regularization: NonNegativeFloat = 0.0
) -> Float[np.ndarray, "*times latents latents"]:
    """Imbalance D = AᵀA − BBᵀ of a linear autoencoder in gradient flow.

        D(t) = exp(−4λt) D(0)

    The flow descends the loss ‖X − X A B‖² + λ (‖A‖² + ‖B‖²). For λ = 0, or if only the product A B is penalised, D is
    conserved.

    Args:
        initial: D(0), shape (latents, latents).
        times: t ≥ 0, any shape.
        regularization: Strength λ ≥ 0 of the penalty on the weights.

    Returns:
        D at each time.

    Raises:
        InputError: If D(0) is not a square matrix.

    References:
        Kunin, Bloom, Goeva, Seed, arXiv:1901.08168.

    Example:
        >>> autoencoder_imbalance([[2.0]], [0.0, 1.0], regularization=0.25).round(6).tolist()
        [[[2.0]], [[0.735759]]]
    """
    start = np.asarray(initial, float)
    require_shape("initial", start, (len(start), len(start)))
    decay = np.exp(-4 * regularization * np.asarray(times, float))
    return decay[..., None, None] * start


@_covers(start="any", gives="the distance of the layers from being transposes of each other")
def transposition_residual(encoder: Matrix, decoder: Matrix) -> float:
    """Distance of the decoder from the transpose of the encoder, relative to the size of the two layers.

        ‖A − Bᵀ‖ / √(‖A‖² + ‖B‖²)

    The residual is zero at every critical point of ‖X − X A B‖² + λ (‖A‖² + ‖B‖²) with λ > 0. For independent random
    layers, it is about one.

    Args:
        encoder: A, shape (inputs, latents).
        decoder: B, shape (latents, inputs).

    Returns:
        The residual, from 0 to √2; zero if all weights are zero.

    Raises:
        InputError: If the shapes do not match.

    References:
        Kunin, Bloom, Goeva, Seed, arXiv:1901.08168, transpose theorem.

    Example:
        >>> transposition_residual([[1.0], [2.0]], [[1.0, 2.0]]), transposition_residual([[1.0]], [[0.0]])
        (0.0, 1.0)
    """
    a, b = np.asarray(encoder, float), np.asarray(decoder, float)
    require_shape("decoder", b, a.shape[::-1])
    size = np.hypot(np.linalg.norm(a), np.linalg.norm(b))
    return float(np.linalg.norm(a - b.T) / size) if size else 0.0


@_covers(start="near the minimum", gives="the slowest rate and the largest stable step")
def autoencoder_rates(
    singular_values: PositiveNumbers, latents: PositiveInt, regularization: PositiveFloat
) -> AutoencoderRates:
    """Slowest rate of gradient flow and largest stable learning rate at the global minimum.

        slowest = smallest non-zero eigenvalue of the Hessian,   largest step = 2 / largest eigenvalue

    The loss is ‖X − X A B‖² + λ (‖A‖² + ‖B‖²), and gradient descent subtracts the learning rate times its gradient.
    Zero eigenvalues correspond to rotations of the latents, along which the loss is constant. They are excluded.

    Args:
        singular_values: Singular values σ_i > 0 of the data, in decreasing order, shape (directions,).
        latents: Number of latents k, at most the number of directions.
        regularization: Strength λ > 0 of the penalty, different from every σ_i².

    Raises:
        InputError: If the singular values increase, if k exceeds their number, or if λ equals a σ_i².

    References:
        Derived for the minimum described by Kunin, Bloom, Goeva, Seed, arXiv:1901.08168.

    Example:
        >>> found = autoencoder_rates([2.0, 1.0], latents=1, regularization=0.5)
        >>> round(found.slowest, 12), round(found.largest_step, 6)
        (2.0, 0.142857)
    """
    squares = require_spectrum(singular_values, latents, regularization)
    best = np.arange(min(latents, int(np.sum(squares > regularization))))
    spectrum = autoencoder_hessian_spectrum(singular_values, best, latents, regularization)
    return AutoencoderRates(float(spectrum[spectrum > 0].min()), float(2 / spectrum.max()))
