"""Measures of neural collapse in NumPy, written out from their definitions and independent of the library."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["ClassGeometry", "class_geometry"]


class ClassGeometry(NamedTuple):
    """Measures of neural collapse (Papyan, Han, Donoho, arXiv:2008.08186), all zero for collapsed features.

    Attributes:
        within: NC1 = tr(Σ_W Σ_B⁺)/C. All C − 1 directions between the class means have equal weight, so class means
            of low rank have a large value, unlike tr Σ_W/tr Σ_B.
        deviation: NC2, the largest deviation of the cosine of two centred class means from −1/(C − 1).
        disagreement: NC4, the share of examples whose nearest class mean differs from the prediction.
    """

    within: float
    deviation: float
    disagreement: float


def class_geometry(features: np.ndarray, labels: np.ndarray, predicted: np.ndarray) -> ClassGeometry:
    """Measure the geometry of features of shape (n, p) with labels and predictions of shape (n,).

    Σ_B has rank C − 1 unless class means are degenerate. Then NC1 is infinite, because the pseudo-inverse would omit
    the directions in which classes do not differ.
    """
    h = np.asarray(features, dtype=float)
    classes = np.unique(labels)
    c = len(classes)
    means = np.stack([h[labels == each].mean(axis=0) for each in classes])
    centred = means - means.mean(axis=0)
    noise = h - means[np.searchsorted(classes, labels)]
    within, between = noise.T @ noise / len(h), centred.T @ centred / c
    values, vectors = np.linalg.eigh(between)
    values, vectors = values[1 - c :], vectors[:, 1 - c :]
    spread = np.einsum("pk,pq,qk->k", vectors, within, vectors)
    nc1 = float(np.sum(spread / values)) / c if values[0] > 1e-10 * values[-1] else float("inf")
    units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = (units @ units.T)[~np.eye(c, dtype=bool)]
    distances = np.linalg.norm(h[:, None] - means, axis=2)
    nearest = classes[distances.argmin(axis=1)]
    deviation = float(np.abs(cosines + 1 / (c - 1)).max())
    return ClassGeometry(nc1, deviation, float((nearest != predicted).mean()))
