"""Figures and text of the page of neural-collapse."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "between_class_share",
        caption="Free features from small random starts. At first hardly anything tells the classes apart; the "
        "share of the variance that is between classes ends at {observed.end_between_class_share:mean} on average, "
        "and theory says 1: all features of a class at one point.",
    ),
    Chart(
        "mode_strength",
        residual=True,
        caption="Free features from an aligned start. The network learns the differences between classes (modes) "
        "along curves that are known from the start; those of classes of one size are learned at once and "
        "coincide. Below: training less theory.",
    ),
)

MEANING = (
    "Before its last layer a network turns each example into a list of numbers, its features. Here the features of "
    "every training sample were set free and trained themselves, together with the last layer. From small random "
    "values, those of a class moved to one point: in the end {observed.end_between_class_share:mean:percent} of "
    "all differences were between classes. The path and its end are known in closed form; from an aligned start "
    "the loss differs from it by {agreement.loss}, over its size. So collapse needs no architecture and no meaning "
    "in the labels, only features that may move freely and start small. In a network features are bound to the "
    "inputs, and the theory says nothing exact; where networks are trained too, judged is whether the spread "
    "within their classes falls to a tenth of what it was, over that between them, once the labels are learned."
)
