"""A two-layer linear network with or without normalised features, trained to large margins."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from dynascope.flows.margin_flow import margin_flow
from dynascope.probes.class_moments import between_class_share, class_moments
from dynascope.probes.neural_collapse import collapse_metrics

__all__ = ["CollapsePath", "similar_inputs", "train_features"]

_SAME_CLASS = 2.0  # component of the first sample of a class in the other samples of the class
_READOUT = 0.1  # scale of the initial readout, small so that it does not determine the features


class CollapsePath(NamedTuple):
    """Statistics of the features of a network, rescaled to unit norm.

    Attributes:
        nc1: Ratio of within-class to between-class variance at each recorded ν = log(1/L).
        between_class_share: Final between-class share of the variance.
        cosines: Final cosines between the class means, shape (classes, classes).
        classifier_cost: Final ½‖W‖² of the readout, rescaled to a smallest margin of one.
    """

    nc1: np.ndarray
    between_class_share: float
    cosines: np.ndarray
    classifier_cost: float


def similar_inputs(random: np.random.Generator, classes: int, class_samples: int, likeness: float) -> np.ndarray:
    """Linearly independent inputs of similar classes, sorted by class, shape (samples, samples).

    Each sample has a separate orthogonal direction. Each sample except the first of its class also contains twice the
    first sample of its class, and `likeness` times the first sample of the next class. A linear layer can map these
    inputs to any features, but the layer of minimum norm keeps a component of the next class, which does not reduce the
    margin.
    """
    separate = np.linalg.qr(random.normal(size=(classes * class_samples,) * 2))[0].reshape(classes, class_samples, -1)
    x = separate.copy()
    x[:, 1:] += (_SAME_CLASS * separate[:, 0] + likeness * np.roll(separate[:, 0], -1, axis=0))[:, None]
    return x.reshape(classes * class_samples, -1)


def train_features(
    x: np.ndarray, labels: np.ndarray, features: int, levels: np.ndarray, *, normalised: bool, seed: Any
) -> CollapsePath:
    """Train f = W h with h = V x, or with h/‖h‖ if normalised, from random weights."""
    random, classes = np.random.default_rng(seed), int(labels.max()) + 1
    first, second = random.normal(size=(x.shape[1], features)), random.normal(size=(features, classes))
    start = {"first": first, "second": _READOUT * second}
    path = margin_flow(_normalised if normalised else _linear, start, x, labels, levels=levels)
    ends = [path.params(place) for place in range(len(path.level))]
    moments = [class_moments(_unit(x @ each["first"]), labels, classes=classes) for each in ends]
    means = _unit(moments[-1].means)
    return CollapsePath(
        np.array([float(collapse_metrics(each).nc1) for each in moments]),
        float(between_class_share(moments[-1])),
        means @ means.T,
        float(np.sum(ends[-1]["second"] ** 2) / 2 / path.smallest_margin[-1] ** 2),
    )


def _linear(p: Any, x: Any) -> Any:
    return x @ p["first"] @ p["second"]


def _normalised(p: Any, x: Any) -> Any:
    h = x @ p["first"]
    return h / jnp.linalg.norm(h, axis=1, keepdims=True) @ p["second"]


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
