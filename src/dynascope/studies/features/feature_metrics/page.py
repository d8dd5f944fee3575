"""Figures and text of the page of feature-metrics."""

from __future__ import annotations

import functools

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

_CHART_OF_BOTH = functools.partial(
    Chart, log="x", words=("last layer alone", "all layers"), x_label="gradient-flow time"
)

FIGURES = (
    _CHART_OF_BOTH(
        ("kappa_cka", "full_kappa_cka"),
        y_label="distance to minimum features κ",
        caption="How far the features are from the fewest that could form the outputs (0). With the last layer "
        "alone the features stay, and κ moves only as the outputs do, as theory says (dashed); with all layers the "
        "features themselves change, and κ ends at {observed.full_kappa_cka:last}.",
    ),
    Chart(
        "end_cumulative_utilization",
        over="mode",
        title="What the strongest features make up",
        x_label="number of features, the strongest first",
        caption="How much of the outputs the strongest features make up at the end of training: where the points "
        "reach 1, the features beyond are not used.",
        points=True,
    ),
    _CHART_OF_BOTH(
        ("effective_dimension_utilization", "full_effective_dimension_utilization"),
        title="How many features are used",
        y_label="features that the output is spread over",
        caption="Over how many features the outputs are spread (the exponential of the entropy of their shares).",
    ),
    _CHART_OF_BOTH(
        ("accuracy", "full_accuracy"),
        y_label="accuracy on held-out samples",
        caption="What either training is good for: {observed.full_accuracy:last:percent} of held-out samples are "
        "right in the end with all layers, {observed.accuracy:last:percent} with the last alone.",
    ),
)

MEANING = (
    "A network was trained twice from one start: with all its layers, and with its last layer alone, which must "
    "make do with the features of the start. κ tells how far features are from the fewest that could form the "
    "outputs, where 0 is no more than needed. In the end it was {observed.full_kappa_cka:last} where all layers "
    "were trained and {observed.kappa_cka:last} where only the last was; the outputs were spread over about "
    "{observed.full_effective_dimension_utilization:last} and {observed.effective_dimension_utilization:last} "
    "features; and {observed.full_accuracy:last:percent} and {observed.accuracy:last:percent} of held-out samples "
    "were right. That is of one start. Judged is, over {parameters.seeds} starts, whether all layers come to "
    "fewer features than the last alone, and to κ below {parameters.threshold}. Checked is the last layer alone, a "
    "linear model whose whole course is known from the features of the start."
)
