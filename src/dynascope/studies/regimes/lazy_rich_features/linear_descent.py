"""Closed form of gradient descent on a linear model."""

from __future__ import annotations

import numpy as np

from dynascope.theory.features.spectrum import eigenspectrum

__all__ = ["descended_outputs"]


def descended_outputs(features: np.ndarray, targets: np.ndarray, steps: np.ndarray, learning_rate: float) -> np.ndarray:
    """Outputs of a linear model on features and a bias, trained from zero weights on the first n samples.

    Args:
        features: Features of all samples, shape (m, p).
        targets: Targets of the first n samples, shape (n, c).
        steps: Numbers of steps, shape (times,).
        learning_rate: Learning rate η.

    Returns:
        Outputs, shape (times, m, c).
    """
    rows, n = np.column_stack([features, np.ones(len(features))]), len(targets)
    spectrum = eigenspectrum(rows[:n])
    modes = spectrum.eigenfeatures(rows)
    learned = 1 - (1 - learning_rate * spectrum.intensity) ** np.asarray(steps)[:, None]
    return (modes * learned[:, None]) @ (modes[:n].T @ targets / n)
