"""Features on the way from rich to lazy: what is measured of them at the end, what is claimed, and how it is drawn."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from dynascope.comparison.effect import Effect, Hypothesis
from dynascope.plot import Chart
from dynascope.probes.features import feature_metrics
from dynascope.probes.kernel import centred_alignment

__all__ = ["FIGURES", "final_features", "put_claims"]

# Metric, expected direction as targets shrink, statement.
_CLAIMS = (
    ("kappa_cka", 1, "Small targets leave more features."),
    ("effective_dimension", 1, "Small targets leave more features with a part in the intensity."),
    ("feature_similarity", 1, "Small targets leave the features as they were."),
    ("final_test_error", 1, "Small targets test worse."),
)
_METRICS = ("kappa_cka", "effective_dimension", "effective_dimension_quality", "effective_dimension_utilization")

FIGURES = (
    Chart(
        "kappa_cka",
        "run",
        "How far the features of the last layer are from being as few as the outputs need, after training; one "
        "point for each start. From the left: labels divided by ever larger factors, then the limits: networks "
        "that are linear in their weights, and networks of which the last layer alone is trained.",
        title="Features from rich to lazy",
        x_label="training",
        y_label="distance κ to minimum features (0: as few as needed)",
    ),
    Chart(
        ("distance_to_linearised", "distance_to_last_layer"),
        "run",
        "How far the functions that networks learn are from those of the two limits, on test images. With ever "
        "smaller targets they come near the limit whose distance vanishes.",
        words=("to the linearised network", "to training the last layer alone"),
        title="Which limit is approached",
        x_label="training",
        y_label="distance of the functions",
    ),
    Chart(
        "final_test_error",
        "run",
        "The error on {parameters.test_samples} or fewer test images after training, one point for each start.",
        title="How well the networks do",
        x_label="training",
    ),
    Chart(
        "correction",
        "time",
        "The distance to the linearised network, times the factor α by which targets were divided, over training "
        "from the first start. Curves of different α coincide where the distance falls as 1/α; dashed is what "
        "theory says from derivatives at the start, without training.",
        log="x",
        places={"seed": (0,)},
        symbols={"scaling_parameter": "α"},
        title="How fast it is approached",
        y_label="distance to the linearised network × α",
    ),
)


def final_features(
    features: np.ndarray, outputs: np.ndarray, before: np.ndarray, labels: np.ndarray
) -> dict[str, list[float]]:
    """Metrics of the features of training samples, for each seed.

    Args:
        features: Shape (seeds, n, p).
        outputs: Shape (seeds, n, c).
        before: The features at the start.
        labels: Shape (n, c).
    """
    with warnings.catch_warnings():
        # Few samples are what is studied here, and the page says so.
        warnings.filterwarnings("ignore", message=".*(balanced|modes beyond the samples)")
        found = [feature_metrics(h, f, labels, bias=True) for h, f in zip(features, outputs, strict=True)]
    return {
        **{name: [float(each[name][1]) for each in found] for name in _METRICS},
        "feature_similarity": [
            float(centred_alignment(h @ h.T, g @ g.T)) for h, g in zip(features, before, strict=True)
        ],
    }


def put_claims(scaled: Sequence[dict[str, Any]], last: dict[str, Any]) -> tuple[list[Hypothesis], list[Effect]]:
    """What is claimed of the features, and what the runs say of it.

    Args:
        scaled: What was measured of networks with ever smaller targets.
        last: The same of those of which the last layer alone is trained.
    """
    laziest = scaled[-1]
    claims = {
        Hypothesis("smallness of targets", metric, direction, f"H{k}", statement): [each[metric] for each in scaled]
        for k, (metric, direction, statement) in enumerate(_CLAIMS, start=1)
    }
    claims |= {
        Hypothesis("frozen layers", "kappa_cka", 1, "H5", "A last layer trained alone has more features still."): [
            laziest["kappa_cka"],
            last["kappa_cka"],
        ],
        Hypothesis("which limit", "distance", 1, "H6", "A lazy network is nearer to its linearisation."): [
            laziest["distance_to_linearised"],
            laziest["distance_to_last_layer"],
        ],
    }
    return list(claims), [claim.compare(levels) for claim, levels in claims.items()]
