"""Features on the way from rich to lazy: what is claimed of them, and how they are drawn."""

from __future__ import annotations

from dynascope.comparison.effect import Hypothesis
from dynascope.results import Chart

__all__ = ["DISTANCE", "FIGURES", "LAST_LAYER", "SMALLNESS"]

SMALLNESS = tuple(
    Hypothesis("smallness of targets", metric, 1, f"H{number}", f"Small targets {effect}.")
    for number, metric, effect in (
        (1, "kappa_cka", "leave more features"),
        (2, "effective_dimension", "leave more features with a part in the intensity"),
        (3, "feature_similarity", "leave the features as they were"),
        (4, "final_test_error", "test worse"),
    )
)
LAST_LAYER = Hypothesis("frozen layers", "kappa_cka", 1, "H5", "A last layer trained alone has more features still.")
DISTANCE = Hypothesis("which limit", "distance", 1, "H6", "A lazy network is nearer to its linearisation.")

FIGURES = (
    Chart(
        "kappa_cka",
        "run",
        "How far the features of the last layer are from being as few as the outputs need, after training; one "
        "point for each start. From the left: labels divided by ever larger factors, then the limits: networks "
        "that are linear in their weights, and networks of which the last layer alone is trained.",
        title="Features from rich to lazy",
        x_label="training",
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
