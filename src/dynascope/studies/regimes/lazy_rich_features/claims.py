"""Hypotheses about the features of networks between the rich and the lazy regime."""

from __future__ import annotations

from dynascope.comparison.effect import Hypothesis

__all__ = ["DISTANCE", "LAST_LAYER", "SMALLNESS"]

SMALLNESS = tuple(
    Hypothesis("smallness of targets", metric, 1, f"H{number}", f"Smaller targets {effect}.")
    for number, metric, effect in (
        (1, "kappa_cka", "leave the features farther from minimum features"),
        (2, "effective_dimension", "leave the features with a larger effective dimension"),
        (3, "feature_similarity", "leave the features more similar to the initial features"),
        (4, "final_test_error", "lead to a larger test error"),
    )
)
LAST_LAYER = Hypothesis(
    "frozen layers",
    "kappa_cka",
    1,
    "H5",
    "Training only the last layer leaves the features farther from minimum features.",
)
DISTANCE = Hypothesis(
    "which limit",
    "distance",
    1,
    "H6",
    "A lazy network is closer to its linearisation than to the network with only the last layer trained.",
)
