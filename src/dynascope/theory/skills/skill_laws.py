"""Laws for the strength of each skill in time, data and neurons, for a network calibrated on one skill."""

from __future__ import annotations

import functools
import math
from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Ge, Gt, Le
from jaxtyping import Float, Real
from numpy.typing import ArrayLike
from scipy.special import expit
from scipy.stats import binom

from dynascope.theory.domain import covers
from dynascope.theory.skills.training_set import Definition, Needed, from_fraction, skill_strength
from dynascope.validation import require_room, require_whole_numbers
from dynascope.validation.bounded import FiniteFloat, PositiveFloat, PositiveInt

__all__ = ["data_emergence", "half_strength_steps", "parameter_emergence", "time_emergence"]

_REFERENCE = "Nam, DPhil thesis (2024), chapter 5"
_DATA = "multitask sparse parity"

Frequencies: TypeAlias = Annotated[Real[ArrayLike, " skills"], Gt(0), Le(1)]
_covers = functools.partial(covers, start="small", exact=False)


@_covers(
    network="multilinear; two-layer networks once calibrated",
    data=f"{_DATA}, fresh samples",
    gives="strength of every skill at any step",
    reference=f"{_REFERENCE}, 5.2 corrected",
)
def time_emergence(
    steps: Annotated[Real[ArrayLike, " steps"], Ge(0)],
    frequencies: Frequencies,
    *,
    offset: FiniteFloat,
    learning_rate: PositiveFloat = 1.0,
    target_scale: PositiveFloat = 1.0,
    rate: PositiveFloat = 1.0,
) -> Float[np.ndarray, "steps skills"]:
    """Strength of each skill after T steps of gradient descent on fresh samples.

        R_k/S = 1/(1 + exp(ln c − 2 η S r P(k) T)),  c = S/R(0) − 1

    The law is exact at r = 1 for the multilinear model, the sum of modes a_k b_k g_k. A network that must first find
    the features learns more slowly, with r < 1; `calibrate` fits r to one skill. Networks follow the law up to about
    half strength and then saturate more slowly, because each of their skills is a sum of several modes.

    Args:
        steps: T ≥ 0, shape (steps,).
        frequencies: Frequencies P(k) > 0 of the skills, shape (skills,).
        offset: ln c = ln(S/R(0) − 1).
        learning_rate: η > 0, the value given to `calibrate`.
        target_scale: S > 0, the value given to `calibrate`.
        rate: r > 0, usually between 0 and 1 if η and S are given.

    Returns:
        R_k/S, shape (steps, skills).

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), equation 5.2; Nam et al., arXiv:2404.17563. In the extended model f = a b B g, the
        rate is B, not B² as printed in equation 5.2.

    Example:
        >>> strength = time_emergence([3000], [0.6, 0.1], offset=7.0, learning_rate=0.05, target_scale=5.0, rate=0.05)
        >>> print(strength.round(4))
        [[1.     0.6225]]
    """
    growth = _growth(frequencies, learning_rate, target_scale, rate)
    return expit(np.multiply.outer(steps, growth) - offset)


@_covers(
    network="multilinear; two-layer networks once calibrated",
    data=f"{_DATA}, fresh samples",
    gives="steps at which each skill is half learned",
    reference=f"{_REFERENCE}, 5.2 corrected",
)
def half_strength_steps(
    frequencies: Frequencies,
    *,
    offset: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
    target_scale: PositiveFloat = 1.0,
    rate: PositiveFloat = 1.0,
) -> Float[np.ndarray, " skills"]:
    """Number of steps after which each skill reaches half its strength.

        T_k = ln c/(2 η S r P(k))

    For frequencies P(k) ∝ k^−(α+1), T_k grows as k^(α+1).

    Args:
        frequencies: Frequencies P(k) > 0 of the skills, shape (skills,).
        offset: ln c > 0, as in `time_emergence`.
        learning_rate: η > 0, the value given to `calibrate`.
        target_scale: S > 0, the value given to `calibrate`.
        rate: r > 0.

    Returns:
        T_k, shape (skills,).

    Raises:
        InputError: If a number is out of range. An offset that is not positive means that the skill has at least half
            its strength initially.

    Example:
        >>> print(half_strength_steps([0.5, 0.25], offset=7.0, learning_rate=0.05, target_scale=5.0, rate=0.05))
        [ 560. 1120.]
    """
    return offset / _growth(frequencies, learning_rate, target_scale, rate)


@_covers(
    network="two-layer with D_c generic features for each skill",
    data=f"{_DATA}, D samples",
    gives="mean strength of every skill after training on D samples",
    reference=f"{_REFERENCE}, 5.5 corrected",
)
def data_emergence(
    samples: Annotated[Real[ArrayLike, " samples"], Ge(1)],
    frequencies: Frequencies,
    needed: Needed,
    *,
    definition: Definition = "correlation",
    finite_size: bool = False,
) -> Float[np.ndarray, "samples skills"]:
    """Mean strength of each skill after training on D samples, over random training sets.

        E R_k = Σ_{d < D_c} Bin(d; D, P(k)) R(d) + S Pr(d ≥ D_c)

    The number of samples of skill k is d ~ Bin(D, P(k)), and R(d) is `skill_strength`.

    Args:
        samples: D, positive integers, shape (samples,).
        frequencies: Frequencies P(k) > 0 of the skills, shape (skills,).
        needed: Number of samples D_c that a network needs for a skill, from `calibrate_data` on one skill.
        definition: "correlation" or "loss_equivalent", as in the calibration of D_c.
        finite_size: Whether to use the exact mean for Gaussian features, as in `skill_strength`.

    Returns:
        E R_k/S, shape (samples, skills).

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), equation 5.5; Nam et al., arXiv:2404.17563. For d ≪ D_c, the strength of networks
        rises more abruptly than the law predicts.

    Example:
        >>> print(data_emergence([1000, 3000], [0.6, 0.2], 800).round(4))
        [[0.75 0.25]
         [1.   0.75]]
    """
    samples, frequencies = np.asarray(samples), np.asarray(frequencies)
    require_whole_numbers("samples", samples, least=1)
    require_room(2 * math.ceil(needed) * (len(frequencies) + 1), needed=needed)
    counts = np.arange(math.ceil(needed))
    strength = skill_strength(counts, needed, definition=definition, finite_size=finite_size)

    def mean(size: float) -> np.ndarray:
        # One size at a time, so that memory holds at most skills × D_c probabilities.
        probabilities = binom.pmf(counts, size, frequencies[:, None])
        return probabilities @ strength + binom.sf(counts[-1], size, frequencies)

    return np.reshape([mean(size) for size in samples], (len(samples), len(frequencies)))


@_covers(
    network="N features, assigned to skills in order of frequency",
    data=_DATA,
    gives="strength of every skill of a network of N neurons",
    reference=f"{_REFERENCE}, 5.9",
)
def parameter_emergence(
    neurons: Annotated[Real[ArrayLike, " widths"], Ge(0)],
    skills: PositiveInt,
    needed: PositiveFloat,
    *,
    definition: Definition = "correlation",
) -> Float[np.ndarray, "widths skills"]:
    """Strength of each skill in a network of N neurons that needs N_c neurons per skill.

        R_k/S = φ = min(max(N/N_c − (k − 1), 0), 1)

    The most frequent skill uses the first N_c neurons, the next skill the following N_c, and so on. Only the fraction φ
    of skill k is learned, and the remaining loss is ½ S² (1 − φ), not ½ (S − R)². The loss-equivalent strength is
    therefore R_k/S = 1 − √(1 − φ).

    Args:
        neurons: N ≥ 0, shape (widths,).
        skills: Number of skills n_s ≥ 1.
        needed: Number of neurons N_c that a network needs for a skill, from `calibrate_parameters` on one skill.
        definition: "correlation" or "loss_equivalent".

    Returns:
        R_k/S, shape (widths, skills).

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), 5.9; Nam et al., arXiv:2404.17563. Individual networks scatter widely about the law,
        because some learn a rarer skill first (table 5.1 of the thesis).

    Example:
        >>> print(parameter_emergence([10], 5, 4.0))
        [[1. 1. 0.5 0. 0. ]]
    """
    neurons = np.asarray(neurons)
    require_room(3 * len(neurons) * skills, skills=skills)
    return from_fraction(np.clip(np.subtract.outer(neurons / needed, np.arange(skills)), 0.0, 1.0), definition)


def _growth(
    frequencies: ArrayLike, learning_rate: float, target_scale: float, rate: float
) -> Float[np.ndarray, " skills"]:
    """Growth rate 2 η S r P(k) of each skill."""
    return 2 * learning_rate * target_scale * rate * np.asarray(frequencies)
