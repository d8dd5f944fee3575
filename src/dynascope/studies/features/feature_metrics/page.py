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
    """Distance to minimum features, utilization, number of features in use, and accuracy."""
    end = result.observed.isel(time=-1)
    return [
        _CHART_OF_BOTH(
            ("kappa_cka", "full_kappa_cka"),
            title="Distance to minimum features",
            y_label="distance to minimum features κ",
            caption="κ is zero if the features span no more than the outputs. With the last layer alone, the features "
            "stay fixed and κ changes only through the outputs; the dashed curve is the prediction. With all layers, "
            f"the features change as well, and κ ends at {rounded(end['full_kappa_cka'])}.",
        ),
        Chart(
            "end_cumulative_utilization",
            over="mode",
            title="Share of the outputs in the strongest features",
            x_label="number of features, strongest first",
            caption="Share of the outputs that lies in the strongest features at the end of training. Where the points "
            "reach 1, the outputs do not use the remaining features.",
            points=True,
        ),
        _CHART_OF_BOTH(
            ("effective_dimension_utilization", "full_effective_dimension_utilization"),
            title="Number of features in use",
            y_label="effective number of features",
            caption="Effective number of features over which the outputs are spread: the exponential of the entropy of "
            "the features' shares.",
        ),
        _CHART_OF_BOTH(
            ("accuracy", "full_accuracy"),
            title="Accuracy on held-out samples",
            y_label="accuracy on held-out samples",
            caption=f"Training all layers ends at an accuracy of {percent(end['full_accuracy'])} on held-out samples, "
            f"and training the last layer alone at {percent(end['accuracy'])}.",
        ),
    ]


def meaning(study: FeatureMetrics, result: Comparison) -> str:
    """Both ways of training compared at the end, and the claims over all initialisations."""
    end = result.observed.isel(time=-1)
    kappa, spread, accuracy = (
        [end[f"{prefix}{name}"] for prefix in ("full_", "")]
        for name in ("kappa_cka", "effective_dimension_utilization", "accuracy")
    )
    return (
        "The study trains a network twice from the same initial weights: once with all its layers, and once with its "
        "last layer alone, so that the features stay as they are at initialisation. κ measures how far features are "
        "from minimum features, the fewest that can form the outputs (κ = 0). For the first initialisation, κ ends at "
        f"{rounded(kappa[0])} with all layers and at {rounded(kappa[1])} with the last layer alone. The outputs are "
        f"spread over about {rounded(spread[0])} and {rounded(spread[1])} features, and the accuracy on held-out "
        f"samples is {percent(accuracy[0])} and {percent(accuracy[1])}. The verdict uses {study.seeds} "
        "initialisations. It depends on whether training all layers ends at a lower κ than training the last layer "
        f"alone, and on whether that κ lies below {rounded(study.threshold)}. Training the last layer alone is a "
        "linear model with a known solution, which serves as a check."
    )
