"""Figures and text of the study `feature-metrics`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.features.feature_metrics.study import FeatureMetrics

__all__ = ["figures", "meaning"]

_CHART_OF_BOTH = functools.partial(
    Chart, log="x", words=("last layer alone", "all layers"), x_label="gradient-flow time"
)


def figures(study: FeatureMetrics, result: Comparison) -> list[Chart]:
    """The figures: distance to minimum features, utilization, number of features in use, and accuracy."""
    end = result.observed.isel(time=-1)
    return [
        _CHART_OF_BOTH(
            ("kappa_cka", "full_kappa_cka"),
            title="Distance to minimum features",
            y_label="distance to minimum features κ",
            caption="Distance κ to minimum features over training time. κ is zero if the features span no more than "
            "the outputs. If only the last layer is trained, the features are fixed and κ changes only through the "
            "outputs, as predicted (dashed). If all layers are trained, the features change too, and κ ends at "
            f"{rounded(end['full_kappa_cka'])}.",
        ),
        Chart(
            "end_cumulative_utilization",
            over="mode",
            title="Outputs explained by the strongest features",
            x_label="number of features, strongest first",
            caption="Fraction of the outputs explained by the strongest features at the end of training, against the "
            "number of features. Once a curve reaches 1, the outputs use none of the remaining features.",
            points=True,
        ),
        _CHART_OF_BOTH(
            ("effective_dimension_utilization", "full_effective_dimension_utilization"),
            title="Number of features in use",
            y_label="effective number of features",
            caption="Effective number of features used by the outputs over training time: the exponential of the "
            "entropy of the features' contributions.",
        ),
        _CHART_OF_BOTH(
            ("accuracy", "full_accuracy"),
            title="Accuracy on held-out samples",
            y_label="accuracy on held-out samples",
            caption="Accuracy on held-out samples over training time. The accuracy ends at "
            f"{percent(end['full_accuracy'])} if all layers are trained and at {percent(end['accuracy'])} if only the "
            "last layer is trained.",
        ),
    ]


def meaning(study: FeatureMetrics, result: Comparison) -> str:
    """Compare the two trained networks at the end of training, and state the basis of the verdict."""
    end = result.observed.isel(time=-1)
    kappa, spread, accuracy = (
        [end[f"{prefix}{name}"] for prefix in ("full_", "")]
        for name in ("kappa_cka", "effective_dimension_utilization", "accuracy")
    )
    return (
        "A network is trained twice from the same initial weights: all layers in one run, and only the last layer, on "
        "fixed features, in the other. κ measures the distance to minimum features; it is zero if the features span no "
        f"more than the outputs. For the first initialisation, κ ends at {rounded(kappa[0])} if all layers are trained "
        f"and at {rounded(kappa[1])} if only the last layer is trained. The effective number of features used by the "
        f"outputs is {rounded(spread[0])} and {rounded(spread[1])}, respectively, and the accuracy on held-out samples "
        f"is {percent(accuracy[0])} and {percent(accuracy[1])}. The verdict rests on two claims about {study.seeds} "
        "initialisations: training all layers ends at a lower κ than training the last layer alone, and the final κ "
        f"with all layers trained is below {rounded(study.threshold)}. Training the last layer alone is a linear "
        "problem with a known solution and serves as a check."
    )
