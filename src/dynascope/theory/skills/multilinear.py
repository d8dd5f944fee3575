"""The multilinear model: strengths and loss of a network with one feature per skill, for any time, data and width.

    f = Σ_k a_k b_k g_k,  k = 1 … N of n_s skills

The skills g_k of multitask sparse parity do not overlap, so each strength R_k = a_k b_k evolves independently, and rare
skills are learned late. The total loss follows a power law (see `scaling_laws`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Real
from numpy.typing import ArrayLike
from scipy.special import expit, xlog1py
from scipy.stats import binom

from dynascope.errors import InputError
from dynascope.theory.domain import covers
from dynascope.theory.scaling_laws.skill_model import require_below_target
from dynascope.validation import require, require_shape, require_whole_numbers
from dynascope.validation.bounded import NonNegativeInt, PositiveFloat

__all__ = ["expected_loss", "skill_strengths", "training_loss"]

_BLOCK = 2**18  # largest number of terms (skill, count) in memory at once

Frequencies: TypeAlias = Annotated[Real[ArrayLike, " skills"], Gt(0), Le(1)]
Counts: TypeAlias = Annotated[Real[ArrayLike, " skills"], Ge(0)]
_covers = functools.partial(
    covers,
    network="multilinear",
    data="skills that do not overlap, such as multitask sparse parity",
    start="equal layers",
    reference="Nam, DPhil thesis (2024), section 4.2; arXiv:2404.17563",
)


@_covers(gives="strength of every skill at any time, for any samples and width")
def skill_strengths(
    times: ArrayLike,
    frequencies: Frequencies,
    *,
    target_scale: PositiveFloat,
    initial_strength: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
    counts: Counts | None = None,
    neurons: NonNegativeInt | None = None,
) -> Float[np.ndarray, "times skills"]:
    """Strength of each skill after training for a time T.

        R_k = S/(1 + c exp(−2 η S p_k T)),  c = S/R₀ − 1

    The formula holds for the first N skills; the model cannot express the others, which have strength 0. The fraction
    p_k of samples that belong to skill k is d_k/D for a training set, and P(k) for fresh samples.

    Args:
        times: T ≥ 0, shape (times,), in steps of gradient descent at the learning rate η; ∞ is allowed.
        frequencies: P(k) > 0, shape (skills,), in decreasing order; see `tasks.skill_frequencies` for a power law.
        target_scale: Target strength S > 0 of each skill.
        initial_strength: R₀ = a_k(0) b_k(0) with a_k(0) = b_k(0), between 0 and S.
        learning_rate: η > 0.
        counts: Number of samples d_k ≥ 0 of each skill in the training set, shape (skills,); fresh samples if not
            given.
        neurons: Number of skills N ≥ 0 that the model can express; all if not given.

    Returns:
        R_k, shape (times, skills).

    Raises:
        InputError: If a number is out of range, or the shapes do not match.

    References:
        Nam, DPhil thesis (2024), equations 4.9 to 4.11; Nam et al., arXiv:2404.17563.

    Example:
        >>> strength = skill_strengths([2, 20], [0.7, 0.2, 0.1], target_scale=1.5, initial_strength=0.02, neurons=2)
        >>> print(strength.round(4))
        [[0.711  0.0644 0.    ]
         [1.5    1.4993 0.    ]]
    """
    model = _model_of(frequencies, target_scale, initial_strength, learning_rate, neurons)
    times = _checked_times(times)
    strength = target_scale * (1 - _unlearned(times, _shares(model, counts), model))
    return np.pad(strength, ((0, 0), (0, len(model.frequencies) - model.neurons)))


@_covers(gives="loss at any time, for any samples and width")
def training_loss(
    times: ArrayLike,
    frequencies: Frequencies,
    *,
    target_scale: PositiveFloat,
    initial_strength: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
    counts: Counts | None = None,
    neurons: NonNegativeInt | None = None,
) -> Float[np.ndarray, " times"]:
    """Population loss after training for a time T on a given training set.

        L = ½ Σ_k P(k) (S − R_k)²

    A skill without samples has strength R₀ forever and contributes ½ P(k) (S − R₀)². A skill without a neuron
    contributes ½ P(k) S².

    Args:
        times: T ≥ 0, shape (times,), in steps of gradient descent; ∞ is allowed.
        frequencies: P(k) > 0, shape (skills,), in decreasing order.
        target_scale: Target strength S > 0 of each skill.
        initial_strength: R₀, between 0 and S.
        learning_rate: η > 0.
        counts: Number of samples d_k ≥ 0 of each skill in the training set, shape (skills,); fresh samples if not
            given.
        neurons: Number of skills N ≥ 0 that the model can express; all if not given.

    Returns:
        L, shape (times,).

    Raises:
        InputError: If a number is out of range, or the shapes do not match.

    References:
        Nam, DPhil thesis (2024), equation 4.17.

    Example:
        >>> print(training_loss([0, 20], [0.7, 0.2, 0.1], target_scale=1.5, initial_strength=0.02, neurons=2).round(4))
        [1.0982 0.1125]
    """
    model = _model_of(frequencies, target_scale, initial_strength, learning_rate, neurons)
    left = _unlearned(_checked_times(times), _shares(model, counts), model) ** 2 @ model.present
    return np.square(float(target_scale)) / 2 * (left + model.absent)


@_covers(gives="mean loss over random training sets at any time, for any number of samples and width")
def expected_loss(
    times: ArrayLike,
    samples: Annotated[Real[ArrayLike, " samples"], Ge(1)],
    frequencies: Frequencies,
    *,
    target_scale: PositiveFloat,
    initial_strength: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
    neurons: NonNegativeInt | None = None,
) -> Float[np.ndarray, "times samples"]:
    """Mean of `training_loss` over random training sets of D samples.

        E L = ½ S² [Σ_{k ≤ N} P(k) Σ_d Bin(d; D, P(k)) u(d)² + Σ_{k > N} P(k)]

    The number of samples of skill k is d ~ Bin(D, P(k)), and u(d) = 1/(1 + exp(2 η S T d/D)/c) is the unlearned
    fraction. The sum over d omits terms below the rounding error. If D P(k) is large, the sum includes only every h-th
    d, where h is less than a third of the standard deviation and half the scale on which u changes. The error of the
    thinned sum is of order exp(−2π²/0.6), because the terms are analytic in d.

    Args:
        times: T ≥ 0, shape (times,), in steps of gradient descent; ∞ is allowed.
        samples: D, positive integers, shape (samples,).
        frequencies: P(k) > 0, shape (skills,), in decreasing order.
        target_scale: Target strength S > 0 of each skill.
        initial_strength: R₀, between 0 and S.
        learning_rate: η > 0.
        neurons: Number of skills N ≥ 0 that the model can express; all if not given.

    Returns:
        E L, shape (times, samples).

    Raises:
        InputError: If a number is out of range, or the shapes do not match.

    References:
        Nam, DPhil thesis (2024), the mean of equation 4.17, and 4.28 for T → ∞; Nam et al., arXiv:2404.17563.

    Example:
        >>> print(expected_loss([5, np.inf], [10, 100], [0.7, 0.3], target_scale=1.0, initial_strength=0.1).round(6))
        [[0.030091 0.016507]
         [0.003434 0.      ]]
    """
    model = _model_of(frequencies, target_scale, initial_strength, learning_rate, neurons)
    times = _checked_times(times)
    samples = np.asarray(samples)
    require_whole_numbers("samples", samples, least=1)
    finite = times[np.isfinite(times)]
    left = np.empty((len(times), len(samples)))
    for column, size in enumerate(samples):
        learned = np.zeros(len(finite))
        for skill, count, probability in _numbers_of_samples(size, model, finite.max(initial=0.0)):
            unlearned = _unlearned(finite, count / size, model)
            learned += unlearned**2 @ (model.present[skill] * probability)
        left[np.isfinite(times), column] = learned
        # At T = ∞, only skills without samples contribute.
        never = np.exp(xlog1py(size, -model.present))
        left[np.isinf(times), column] = expit(model.offset) ** 2 * (model.present @ never)
    return np.square(float(target_scale)) / 2 * (left + model.absent)


class _Model(NamedTuple):
    frequencies: Float[np.ndarray, " skills"]
    neurons: int
    present: Float[np.ndarray, " neurons"]
    absent: float
    offset: float
    growth: float


def _unlearned(times: np.ndarray, shares: np.ndarray, model: _Model) -> Float[np.ndarray, "times shares"]:
    """Compute (S − R)/S without cancellation."""
    # A skill without samples never changes; the products avoid 0 · ∞.
    moved = np.multiply.outer(model.growth * np.where(times > 0, times, 1), np.where(shares > 0, shares, 1))
    return expit(model.offset - np.where((times > 0)[:, None] & (shares > 0), moved, 0))


def _numbers_of_samples(
    size: float, model: _Model, longest: float
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield blocks of the relevant terms: skills, numbers of samples, and the probabilities of these numbers."""
    mean = size * model.present
    deviation = np.sqrt(mean * (1 - model.present))
    # u changes over the scale D/(2 η S T) in d.
    change = model.growth * longest / size
    stride = np.maximum(np.floor(np.minimum(deviation / 3, 0.5 / change if change > 0 else np.inf)), 1)
    # u decreases with d: above the mean, terms matter down to rounding; below the mean, down to underflow.
    low = np.floor(np.maximum(mean - 39 * np.sqrt(mean), 0))
    high = np.minimum(np.ceil(mean + 9 * deviation + 12), size)
    lengths = (np.floor((high - low) / stride) + 1).astype(np.int64)
    blocks = np.cumsum(lengths) // _BLOCK
    for skills in np.split(np.arange(len(mean)), np.flatnonzero(np.diff(blocks)) + 1):
        skill = np.repeat(skills, lengths[skills])
        start = np.cumsum(lengths[skills]) - lengths[skills]
        place = np.arange(len(skill)) - np.repeat(start, lengths[skills])
        count = low[skill] + stride[skill] * place
        yield skill, count, stride[skill] * binom.pmf(count, size, model.present[skill])


def _shares(model: _Model, counts: ArrayLike | None) -> Float[np.ndarray, " neurons"]:
    if counts is None:
        return model.present
    counts = np.asarray(counts)
    require_shape("counts", counts, (len(model.frequencies),))
    require(
        counts.sum() > 0,
        "counts are all zero",
        argument="counts",
        value=counts.tolist(),
        remedy="give the number of samples of each skill, with at least one sample in total",
    )
    return counts[: model.neurons] / counts.sum()


def _model_of(
    frequencies: ArrayLike, target_scale: float, initial_strength: float, learning_rate: float, neurons: int | None
) -> _Model:
    array = np.asarray(frequencies)
    require(
        0 < array.sum() <= 1 + 1e-9,
        "frequencies are not probabilities",
        argument="frequencies",
        value=array.tolist(),
        remedy="give positive numbers whose sum is at most one",
    )
    require_below_target(initial_strength, target_scale)
    held = len(array) if neurons is None else min(neurons, len(array))
    return _Model(
        frequencies=array,
        neurons=held,
        present=array[:held],
        absent=float(array[held:].sum()),
        offset=math.log(target_scale - initial_strength) - math.log(initial_strength),
        growth=2 * learning_rate * target_scale,
    )


def _checked_times(times: ArrayLike) -> Float[np.ndarray, " times"]:
    try:
        array = np.asarray(times)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "iuf" or array.ndim != 1 or not np.all(array >= 0):
        raise InputError(
            "times is not a one-dimensional array of non-negative numbers",
            argument="times",
            value=str(times)[:80],
            remedy="give a one-dimensional array of non-negative numbers",
        )
    return array.astype(np.float64)
