"""Measures of neural collapse, number of features, and accuracies of a trained classifier."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynascope.probes.features import effective_dimension, kappa_cka
from dynascope.probes.neural_collapse import neural_collapse

__all__ = ["classifier_collapse"]

_METRICS = ("nc1", "nc2_angle", "nc2_norm", "nc3", "nc4")


def classifier_collapse(
    features: np.ndarray,
    classifier: np.ndarray,
    bias: np.ndarray,
    *,
    labels: np.ndarray,
    held_out: np.ndarray,
    levels: np.ndarray | None = None,
) -> dict[str, Any]:
    """NC1 to NC4 with a centred classifier, κ_CKA, the effective dimension excluding the constant, and accuracies.

    Args:
        features: Inputs of the last layer, training samples first, shape (n + m, p).
        classifier: Weights of the last layer, shape (p, c).
        bias: Bias of the last layer, shape (c,).
        labels: Classes of the training samples, shape (n,).
        held_out: Classes of the held-out samples, shape (m,).
        levels: For a regression (c = 1), the target value of each class; the class with the nearest value is predicted.

    Example:
        >>> h, labels = np.repeat(np.eye(2), 3, axis=0) + 1e-3 * np.arange(6)[:, None], np.arange(6) // 3
        >>> found = classifier_collapse(np.tile(h, (2, 1)), np.eye(2), np.zeros(2), labels=labels, held_out=labels)
        >>> bool(found["nc1"] < 1e-4), float(found["accuracy"]), float(found["test_accuracy"])
        (True, 1.0, 1.0)
    """
    n = len(labels)
    outputs = features[:n] @ classifier
    if levels is not None:
        # The level t_i nearest to the output f maximises t_i f − t_i²/2.
        classifier, bias = classifier * levels, bias * levels - levels**2 / 2
    found = neural_collapse(features[:n], labels, classifier, bias, layout="features_classes", center_classifier=True)
    decided = np.argmax(features @ classifier + bias, axis=1)
    spread = np.linalg.svd(features[:n] - features[:n].mean(0), compute_uv=False) ** 2
    return {
        **{name: getattr(found, name) for name in _METRICS},
        "kappa_cka": kappa_cka(features[:n], outputs),
        "effective_dimension": effective_dimension(spread),
        "accuracy": np.mean(decided[:n] == labels),
        "test_accuracy": np.mean(decided[n:] == held_out),
    }
