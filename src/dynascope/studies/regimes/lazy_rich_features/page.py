"""Figures and text of the study `lazy-rich-features`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.lazy_rich_features.study import LazyRichFeatures

__all__ = ["figures", "meaning"]


def figures(study: LazyRichFeatures, result: Comparison) -> list[Chart]:
    """The figures: features, functions and test error from rich to lazy, and the approach to the lazy limit."""
    return [
        Chart(
            "kappa_cka",
            over="run",
            title="Features from rich to lazy",
            caption="Distance κ of the trained last-layer features from minimum features, which span only the "
            "dimensions that the outputs need; one point for each initialisation. From left to right, the labels are "
            "divided by increasing factors. The last two columns show the linearised network and the network in which "
            "only the last layer is trained.",
            x_label="training",
        ),
        Chart(
            ("distance_to_linearised", "distance_to_last_layer"),
            over="run",
            title="Distance to both limits",
            caption="Distance of the trained functions from those of the linearised network and of the network in "
            "which only the last layer is trained, on test images. The distance to the correct lazy limit vanishes as "
            "the targets become small.",
            words=("to the linearised network", "to last-layer training"),
            x_label="training",
            y_label="distance of the functions",
        ),
        Chart(
            "final_test_error",
            over="run",
            title="Test error",
            caption=f"Error on up to {study.test_samples} test images after training. Each point is one "
            "initialisation.",
            x_label="training",
        ),
        Chart(
            "correction",
            over="time",
            log="x",
            places={"seed": (0,)},
            symbols={"scaling_parameter": "α"},
            title="Approach to the linearised network",
            caption="Distance to the linearised network during training, multiplied by the factor α that divides the "
            "targets, for the first initialisation. Curves for different α coincide if the distance falls as 1/α. "
            "Dashed lines show the prediction, computed from derivatives at the initial weights, without training.",
            y_label="distance to the linearised network × α",
        ),
    ]


def meaning(study: LazyRichFeatures, result: Comparison) -> str:
    """Summarise features and test error from the smallest factor to the lazy limits, and the error of the expansion."""
    kappa, error = (result.observed[name].mean("seed") for name in ("kappa_cka", "final_test_error"))
    linear, last = {"run": "linearised"}, {"run": "last layer only"}
    depth = "one hidden layer" if study.hidden_layers == 1 else f"{study.hidden_layers} hidden layers"
    correction = percent(result.quantities["correction_maximum"].error)
    return (
        f"Networks with {depth} were trained on {study.samples} labelled images. The labels are divided by a factor α, "
        "and the outputs are multiplied by α. With a larger α, the weights move less and learning becomes lazy. "
        "Minimum features span only as many dimensions as the outputs need, and κ is the distance of the learned "
        "features from minimum features. "
        "From the smallest α to the lazy limit, a network that is linear in its weights, the mean κ changes from "
        f"{rounded(kappa[0])} to {rounded(kappa.sel(linear))}, and the mean test error from {rounded(error[0])} to "
        f"{rounded(error.sel(linear))}. If only the last layer is trained, κ ends at {rounded(kappa.sel(last))} and "
        f"the test error at {rounded(error.sel(last))}. For the verdict, the approach to the lazy limit is compared "
        "with an expansion in 1/α that is computed before training. The predicted and the measured correction differ "
        f"by at most {correction} of the largest correction. No theory covers the features between the limits; these "
        f"features were measured on only a few images, in {study.seeds} networks of each kind."
    )
