"""Initial neurons near given frequencies, and projections onto a frequency."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

__all__ = ["frequency_projection", "neurons_near_frequencies"]


def neurons_near_frequencies(
    encoding: np.ndarray,
    frequencies: Sequence[int],
    *,
    neurons: int,
    aligned: bool = False,
    leakage: float = 0.02,
    seed: int | Sequence[int] = 0,
) -> np.ndarray:
    """Neurons (u, v, w) of unit norm, each near one of the frequencies in turn, with random phases.

    Almost all fully random neurons would learn the strongest frequency. For p = 17 and amplitudes 0.8, 0.52 and 0.36,
    989, 11 and 0 of 1000 neurons learn the three frequencies.

    Args:
        encoding: x, shape (p,).
        frequencies: The frequencies, assigned to the neurons in turn.
        neurons: Number of neurons.
        aligned: Whether the phases of the three parts of a neuron are aligned, which maximises its utility.
        leakage: Amplitude of the other frequencies, relative to that of the neuron.
        seed: Seed of the phases.

    Returns:
        Rows for `TwoLayer.with_neurons`, shape (neurons, 3p).
    """
    chosen, p = np.array(frequencies), len(encoding)
    phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, (neurons, 3, len(chosen)))
    if aligned:
        phases[:, 2] = phases[:, 0] + phases[:, 1] - np.angle(np.fft.fft(encoding)[chosen])
    angles = 2 * np.pi / p * np.multiply.outer(chosen, np.arange(p))
    assigned = np.arange(neurons)[:, None] % len(chosen) == np.arange(len(chosen))
    waves = np.cos(phases[..., None] + angles) * np.where(assigned, 1.0, leakage)[:, None, :, None]
    rows = waves.sum(axis=2).reshape(neurons, -1)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def frequency_projection(p: int, frequency: int) -> np.ndarray:
    """The projection (p, p) of functions on the integers modulo p onto a frequency."""
    turns = 2 * np.pi / p * np.subtract.outer(np.arange(p), np.arange(p))
    # The frequency p/2 has one wave, every other frequency has two.
    return (1 if 2 * frequency == p else 2) / p * np.cos(frequency * turns)
