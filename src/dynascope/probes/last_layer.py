"""Inputs and outputs of the last layer of a trained network, and its feature metrics as plain arrays."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float
from scipy import special, stats

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError, InputError
from dynascope.probes.features.metrics import FeatureMetrics, feature_metrics

__all__ = [
    "CURVES",
    "SPAN",
    "LastLayer",
    "last_layer",
    "layer_metrics",
    "metrics_over_time",
    "network_metrics",
    "rank_correlation",
    "require_varying_features",
]

# Explains why utilizations may not sum to exactly one.
SPAN = "outputs are computed from the features in float64, and modes of relative size below 1e-12 are omitted"
CURVES = ("intensity", "cumulative_quality", "cumulative_utilization")  # of `network_metrics`, over modes
_NUMBERS = (
    *("kappa_cka", "minimum_features", "constant_overlap"),
    *("effective_dimension", "effective_dimension_quality", "effective_dimension_utilization"),
)

_BATCH = 500  # samples per forward pass


class LastLayer(NamedTuple):
    """Inputs and outputs of the last layer on samples, in float64.

    Attributes:
        features: Inputs of the layer, shape (n, p).
        outputs: Outputs of the network, shape (n, c), computed from `features` so that rounding cannot move them out of
            the span of the features.
    """

    features: Float[np.ndarray, "n p"]
    outputs: Float[np.ndarray, "n c"]


def last_layer(network: Any, inputs: np.ndarray) -> LastLayer:
    """Compute features and outputs of a network that provides `features`, `classifier` and `classifier_bias`.

    Example:
        >>> from collections import namedtuple
        >>> network = namedtuple("Network", "features classifier classifier_bias")
        >>> last_layer(network(lambda x: x / 2, np.eye(2), np.ones(2)), np.array([[2.0, 4.0]])).outputs
        array([[2., 3.]])
    """
    batches = [inputs[i : i + _BATCH] for i in range(0, len(inputs), _BATCH)]
    with jax.enable_x64(True):
        features = np.concatenate([np.asarray(_features(network, each), np.float64) for each in batches])
    bias = np.asarray(network.classifier_bias, float)
    return LastLayer(features, features @ np.asarray(network.classifier, float) + bias)


def layer_metrics(*samples: Any, **options: Any) -> dict[str, np.ndarray]:
    """Return the results of `feature_metrics` by name, without its warnings about few samples or unbalanced classes.

    Example:
        >>> found = layer_metrics(np.array([[1, 0], [0, 1], [2, 1]]), np.array([[1], [0], [3]]), threshold=0.2)
        >>> float(found["threshold"])
        0.2
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(balanced|only one mode per sample)")
        found = feature_metrics(*samples, **options)
    return _arrays(found)


@contextlib.contextmanager
def require_varying_features(time: float) -> Iterator[None]:
    """Context manager that raises `DivergenceError`, with the training time, if features or outputs are constant.

    Raises:
        DivergenceError: If features or outputs are the same on all samples.
    """
    try:
        yield
    except InputError as error:
        if error.argument not in ("features", "outputs"):
            raise
        remedy = "choose a smaller learning_rate or a larger width"
        raise DivergenceError("the network no longer depends on its inputs", time=time, remedy=remedy) from None


def metrics_over_time(
    features: Iterable[np.ndarray],
    outputs: np.ndarray,
    targets: np.ndarray,
    *,
    times: np.ndarray,
    samples: int,
    held_out: bool,
    **options: Any,
) -> dict[str, np.ndarray]:
    """Compute metrics of the last layer at several times, with losses and the accuracy on held-out samples.

    Args:
        features: Features at each time, shape (n, p), training samples first.
        outputs: Outputs, shape (times, n, c).
        targets: Targets, shape (n, c). If c = 1, the class is one for targets above one half, otherwise zero.
        times: The recorded times.
        samples: Number of training samples.
        held_out: Whether quality and utilization are computed on the held-out samples instead of the training samples.
        **options: Options of `feature_metrics`.

    Raises:
        DivergenceError: If features or outputs are the same on all samples.
    """
    found = []
    for time, h, f in zip(times, features, outputs, strict=True):
        trained, others = ([each[rows] for each in (h, f, targets)] for rows in (slice(samples), slice(samples, None)))
        with require_varying_features(float(time)):
            metrics = feature_metrics(*trained, held_out=tuple(others) if held_out else None, **options)
        each = _arrays(metrics)
        squares = np.sum((f - targets) ** 2, axis=1) / 2
        found.append(
            {
                **each,
                "loss": np.mean(squares[:samples]),
                "test_loss": np.mean(squares[samples:]),
                "accuracy": np.mean(_classes(others[1]) == _classes(others[2])),
                "normalised_intensity": each["intensity"] / each["intensity"][0],
            }
        )
    return {name: np.array([each[name] for each in found]) for name in found[0]}


def network_metrics(layer: LastLayer, targets: np.ndarray, *, softmax: bool, threshold: float) -> dict[str, Any]:
    """Compute the metrics of one trained network whose last layer has a bias, including its `CURVES` over modes.

    Args:
        layer: The last layer on the training samples.
        targets: The training targets, shape (n, c).
        softmax: Whether outputs are logits trained by cross-entropy, whose softmax is then measured.
        threshold: ε; features with κ < ε are called minimal.

    Returns:
        Metrics of `feature_metrics` and, in addition, `loss`, `flatness` (intensity C over intensity 2), `gap` (log₁₀
        of intensity C over intensity C + 1), the rank correlations of intensity with quality and with utilization,
        `total_utilization`, and `dimension_bound`, capped at one. The last two are computed from the outputs before the
        softmax.
    """
    options, classes = {"bias": True, "threshold": threshold}, targets.shape[1]
    found = logits = layer_metrics(*layer, targets, **options)
    loss = np.mean(np.sum((layer.outputs - targets) ** 2, axis=1)) / 2
    if softmax:
        found = layer_metrics(*layer, targets, **options, output_function="softmax")
        loss = -np.mean(np.sum(targets * special.log_softmax(layer.outputs, axis=1), axis=1))
    found["intensity"] = intensity = found["intensity"] / found["intensity"][0]
    # Intensities 2, C and C + 1 (the first belongs to the constant function), bounded below by rounding.
    second, last, next_one = np.maximum(intensity[[1, max(classes, 2) - 1, max(classes, 2)]], 1e-12)
    strongest = slice(classes + 1)
    return {
        "loss": loss,
        **{name: found[name][()] for name in (*_NUMBERS, *CURVES)},
        "flatness": last / second,
        "gap": np.log10(last / next_one),
        **{
            f"{name}_rank_correlation": rank_correlation(intensity[strongest], found[name][strongest])
            for name in ("quality", "utilization")
        },
        "total_utilization": logits["utilization"].sum(),
        "dimension_bound": min(1.0, logits["effective_dimension_utilization"] / logits["output_dimension"]),
    }


def rank_correlation(one: np.ndarray, other: np.ndarray) -> float:
    """Compute Spearman's rank correlation of two curves over modes; zero if one of them is constant.

    Example:
        >>> rank_correlation(np.array([3, 2, 1]), np.array([9, 4, 1])), rank_correlation(np.ones(3), np.arange(3))
        (1.0, 0.0)
    """
    ranks = np.array([stats.rankdata(each) for each in (one, other)])
    return float(np.corrcoef(ranks)[0, 1]) if np.all(np.ptp(ranks, axis=1) > 0) else 0.0


def _arrays(metrics: FeatureMetrics) -> dict[str, np.ndarray]:
    return {name: np.asarray(values) for name, values in metrics._asdict().items() if values is not None}


def _classes(outputs: np.ndarray) -> np.ndarray:
    return outputs.argmax(axis=1) if outputs.shape[1] > 1 else outputs[:, 0] > 0.5


@filter_jit
def _features(network: Any, inputs: Any) -> Any:
    return network.features(inputs)
