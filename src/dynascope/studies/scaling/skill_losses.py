"""The loss of the trained multilinear model over training time, model size and training-set size."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy.special import zeta

from dynascope.studies.scaling.skill_training import train_skills
from dynascope.tasks.parity.skills import skill_frequencies

__all__ = ["losses_in_time", "losses_of_models", "losses_of_sizes", "losses_of_training_sets"]

_AFTER = 35.0  # e-foldings from half-learning of the last skill to the end of training


def losses_in_time(exponents: np.ndarray, skills: int, times: np.ndarray, **model: float) -> np.ndarray:
    """The loss over gradient-flow time when training on fresh samples.

    Args:
        exponents: α of each task.
        skills: n_s.
        times: Positive and increasing.
        **model: S and R₀, as in `train_skills`.

    Returns:
        Shape (exponents, times).
    """
    frequencies = np.array([skill_frequencies(skills, alpha) for alpha in exponents])
    return train_skills(frequencies, times, _expected, frequencies, **model).T


def losses_of_sizes(exponents: np.ndarray, skills: int, neurons: np.ndarray, **model: float) -> np.ndarray:
    """The final loss of models with neurons for the most frequent skills, shape (exponents, sizes)."""
    frequencies = np.array([skill_frequencies(skills, alpha) for alpha in exponents])
    # Smaller models are padded with skills of frequency zero.
    present = frequencies[:, None, : neurons[-1]] * (np.arange(neurons[-1]) < neurons[:, None])
    absent = np.array([[each[number:][::-1].sum() for number in neurons] for each in frequencies])
    end = _end(float(frequencies[:, neurons[-1] - 1].min()), **model)
    return train_skills(present, end, _expected, present, **model)[0] + model["target_scale"] ** 2 / 2 * absent


def losses_of_models(exponents: np.ndarray, neurons: np.ndarray, times: np.ndarray, **model: float) -> np.ndarray:
    """The loss of models of several sizes on infinitely many skills, each trained for several times.

    The gradients of different skills are independent. The first N skills of the largest model therefore learn like
    those of a model with N neurons, and only the largest model is trained.

    Args:
        exponents: α of each task.
        neurons: N of each model, increasing.
        times: Shape (budgets, models).
        **model: S and R₀.

    Returns:
        Shape (exponents, budgets, models).
    """
    total = zeta(exponents + 1)[:, None]
    frequencies = np.arange(1.0, neurons[-1] + 1) ** -(exponents[:, None] + 1) / total
    absent = zeta(exponents[:, None] + 1, neurons + 1) / total
    moments, place = np.unique(times, return_inverse=True)
    learned = train_skills(frequencies, moments, _present, frequencies, neurons, **model)
    chosen = learned[place.reshape(times.shape), :, np.arange(len(neurons))]
    return np.moveaxis(chosen, -1, 0) + model["target_scale"] ** 2 / 2 * absent[:, None]


def losses_of_training_sets(
    exponents: np.ndarray, samples: np.ndarray, sets: int, seed: int, **model: float
) -> np.ndarray:
    """The test loss after long training on random training sets from infinitely many skills.

    Skills with equal numbers of samples follow the same trajectory, so only one of them is trained. If d of D samples
    require a skill, training for a time D t is equivalent to training for a time t at frequency d, so one trajectory
    serves all training-set sizes.

    Args:
        exponents: α of each task.
        samples: Sizes of training sets.
        sets: Number of training sets of each size.
        seed: Seed of the samples.
        **model: S and R₀.

    Returns:
        Shape (exponents, sets, sizes).
    """
    draw = np.random.default_rng(seed)
    drawn = [_drawn(draw, alpha, size) for alpha in exponents for _ in range(sets) for size in samples.tolist()]
    counts = np.unique(np.concatenate([found for found, _ in drawn]))
    losses = train_skills(counts, _end(1.0, **model), _each, **model)[0]
    never = (model["target_scale"] - model["initial_strength"]) ** 2 / 2
    found = [never + frequency @ (losses[np.searchsorted(counts, present)] - never) for present, frequency in drawn]
    return np.array(found).reshape(len(exponents), sets, len(samples))


def _drawn(draw: np.random.Generator, alpha: float, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """The sample counts that occur in a random training set, and the total frequency of the skills with each count."""
    ranks, counts = np.unique(draw.zipf(alpha + 1, samples), return_counts=True)
    found, place = np.unique(counts, return_inverse=True)
    return found, np.bincount(place, ranks.astype(np.float64) ** -(alpha + 1)) / zeta(alpha + 1)


def _end(share: float, *, target_scale: float, initial_strength: float) -> np.ndarray:
    """The time at which a skill required by this fraction of the samples is learned to machine precision."""
    return np.array([(math.log(target_scale / initial_strength - 1) + _AFTER) / (2 * target_scale * share)])


def _each(missing: Any) -> Any:
    return missing**2 / 2


def _expected(missing: Any, frequencies: Any) -> Any:
    """The loss on fresh samples, ½ Σ_k P(k) (S − a_k b_k)²."""
    return jnp.sum(frequencies * missing**2, axis=-1) / 2


def _present(missing: Any, frequencies: Any, neurons: Any) -> Any:
    """The loss of the skills with a neuron, for every number of neurons."""
    return jnp.cumsum(frequencies * missing**2, axis=-1)[..., neurons - 1] / 2
