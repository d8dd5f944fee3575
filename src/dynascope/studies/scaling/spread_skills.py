"""Skills that are sums of generic features, as random samples and as functions of bits."""

from __future__ import annotations

import numpy as np

__all__ = ["spread_parities", "spread_samples"]


def spread_samples(counts: np.ndarray, features: int, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples of skills; the first feature of each skill is the skill itself, and the others are Gaussian.

    These samples represent any sum of features, because training is invariant under rotations of the features.

    Args:
        counts: Number of samples of each skill.
        features: D_c.
        draw: Random generator of the samples.

    Returns:
        The features of each sample, grouped by skill, shape (n, skills · D_c), and signs ±1.
    """
    skill = np.repeat(np.arange(len(counts)), counts)
    rows, inputs = np.arange(len(skill)), np.zeros((len(skill), len(counts), features))
    sign = draw.choice([-1.0, 1.0], len(skill))
    inputs[rows, skill] = draw.normal(size=(len(skill), features))
    inputs[rows, skill, 0] = sign
    return inputs.reshape(len(skill), -1), sign


def spread_parities(
    skills: int, relevant_bits: int, features: int, draw: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """For each skill, N_c orthonormal functions e_l of some bits with Σ_l e_l/√N_c = parity, and the parity.

    Args:
        skills: Number of skills.
        relevant_bits: Number of bits in each parity; further bits are added until there are enough functions.
        features: N_c.
        draw: Random generator of the functions.

    Returns:
        Values of the functions on all bits, shape (skills, 2^bits, N_c), and of the parity, shape (2^bits,).
    """
    bits = np.arange(2 ** (relevant_bits + int(np.ceil(np.log2(features)))))
    sign = 1.0 - 2.0 * (np.bitwise_count(bits & (2**relevant_bits - 1)) % 2)

    def orthonormal(first: np.ndarray) -> np.ndarray:
        found = np.linalg.qr(np.column_stack([first, draw.normal(size=(len(first), features - 1))]))[0]
        return found * np.sign(found[0, 0] * first[0])

    size = np.sqrt(len(bits))
    return np.array([size * orthonormal(sign) @ orthonormal(np.ones(features)).T for _ in range(skills)]), sign
