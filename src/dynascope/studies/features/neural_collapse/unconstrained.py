"""Unconstrained features as the first layer of a two-layer linear network on one-hot samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import numpy as np

from dynascope.networks.two_layer import TwoLayer
from dynascope.theory.features import class_modes

__all__ = ["aligned_features", "random_features"]


def aligned_features(
    class_sizes: Sequence[int], features: int, sizes: tuple[float, float], *, seed: int = 0
) -> TwoLayer:
    """Features and classifier aligned with the modes of the targets, up to a random rotation of the features.

    Args:
        class_sizes: Number of samples of each class.
        features: Number of features, at least the number of classes.
        sizes: Singular values of features and classifier, the same for all modes.
        seed: Seed of the rotation.

    Example:
        >>> network = aligned_features([2, 3], 4, (0.1, 0.2))
        >>> np.linalg.svd(network.first)[1][:2].round(6), np.linalg.svd(network.second)[1].round(6)
        (array([0.1, 0.1]), array([0.2, 0.2]))
    """
    modes, (a, b) = class_modes(class_sizes), sizes
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(features, len(modes.strength))))[0]
    left = np.repeat(modes.sample_vector, class_sizes, axis=0)
    return _network(a * left @ turn.T, b * turn @ modes.output_vector.T)


def random_features(
    class_sizes: Sequence[int], features: int, sizes: tuple[float, float], *, seed: Any = 0
) -> TwoLayer:
    """Gaussian features and classifier with given Frobenius norms.

    Example:
        >>> network = random_features([2, 3], 4, (0.1, 0.2))
        >>> float(np.linalg.norm(network.first).round(6)), network.second.shape
        (0.1, (4, 2))
    """
    draw = np.random.default_rng(seed)
    drawn = draw.normal(size=(sum(class_sizes), features)), draw.normal(size=(features, len(class_sizes)))
    first, second = (size * each / np.linalg.norm(each) for size, each in zip(sizes, drawn, strict=True))
    return _network(first, second)


def _network(features: np.ndarray, classifier: np.ndarray) -> TwoLayer:
    network = TwoLayer(len(features), len(classifier), classifier.shape[1], activation="linear")
    return eqx.tree_at(lambda each: (each.first, each.second), network, (features, classifier))
