"""What has been claimed of the features of deep networks, and the runs that each claim compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dynascope.comparison.effect import Hypothesis

__all__ = ["DECAYS", "RANDOM", "RATES", "SIZES", "feature_claims"]

# Levels of the factors, over the values of the study; RANDOM are fractions of random labels.
RATES = (1 / 100, 1 / 10, 1.0)
DECAYS = (0.0, 1 / 10, 1.0, 10.0)
SIZES = (1 / 8, 1 / 4, 1 / 2, 1.0)
RANDOM = (0.0, 0.1, 1.0)

_LEVELS = {
    "training images": [*(f"samples × {each:g}" for each in SIZES[:-1]), "default"],
    "learning rate": [f"learning rate × {RATES[0]:g}", "best learning rate"],
    "weight decay": ["default" if each == 1 else f"weight decay × {each:g}" for each in DECAYS],
    "batch normalisation": ["vgg", "vgg-normalised"],
    "locality": ["fully connected", "convolutional"],
    "random labels": ["default", *(f"random labels {each:g}" for each in RANDOM[1:])],
    "outputs": ["scalar target", "rich"],
    "smallness of targets": ["rich", "downscaled target"],
    "frozen layers": ["downscaled target", "last layer only"],
    "intensity": ["nothing", "default"],
}

# Name, factor, metric, expected direction, statement.
_CLAIMS = (
    ("H1", "training images", "kappa_cka", -1, "More training data bring minimum features."),
    ("H1", "training images", "accuracy", 1, "More training data test better."),
    ("H2", "learning rate", "kappa_cka", -1, "The rate that tests best has fewer features than the lowest."),
    ("H3", "weight decay", "kappa_cka", -1, "Weight decay brings minimum features."),
    ("H3", "weight decay", "flatness", 1, "Weight decay flattens the first C intensities."),
    ("H3", "weight decay", "accuracy", 1, "Weight decay tests better."),
    ("H4", "batch normalisation", "kappa_cka", -1, "Batch normalisation brings minimum features."),
    ("H4", "batch normalisation", "gap", 1, "Batch normalisation widens the gap after the first C intensities."),
    ("H4", "batch normalisation", "accuracy", 1, "Batch normalisation tests better."),
    ("H5", "locality", "kappa_cka", -1, "Convolutions bring minimum features where full connections do not."),
    ("H6", "random labels", "kappa_cka", 0, "Random labels collapse as true ones do."),
    ("H6", "random labels", "accuracy", -1, "Random labels do not generalise."),
    (
        "H7",
        "outputs",
        "effective_dimension",
        1,
        "A scalar target takes one feature beside the constant; classes, more.",
    ),
    ("H8", "smallness of targets", "kappa_cka", 1, "Small targets leave more features."),
    ("H8", "frozen layers", "kappa_cka", 1, "A last layer trained alone leaves more features still."),
    ("H9", "intensity", "quality_rank_correlation", 1, "Strong features have more quality."),
    ("H9", "intensity", "utilization_rank_correlation", 1, "Strong features are used more."),
)


def feature_claims() -> list[tuple[Hypothesis, list[str]]]:
    """The hypotheses H1 to H9 of the source, each with the names of the runs in which its factor grows."""
    from dynascope.comparison.effect import Hypothesis

    return [
        (Hypothesis(factor, metric, direction, name, statement), _LEVELS[factor])
        for name, factor, metric, direction, statement in _CLAIMS
    ]
