"""Figures and text of the study `linear-inductive-bias`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.features.linear_inductive_bias.study import LinearInductiveBias

__all__ = ["figures", "meaning"]


def figures(study: LinearInductiveBias, result: Comparison) -> list[Chart]:
    """The figures: both fits, the learned fractions, training on the population, and loss."""
    return [
        Chart(
            "fitted",
            over="sample",
            title="Functions after training",
            x_label="position x",
            y_label="function at the end of training",
            caption=f"Functions that the two models learn from the same {study.samples} points. The functions agree at "
            "the points and differ elsewhere: the strongest features have low frequencies in the first model and "
            "high frequencies in the second.",
        ),
        Chart(
            "learnability",
            over="mode",
            title="Learned fraction of each mode",
            x_label="mode (frequency)",
            y_label="learned fraction of the mode",
            caption=f"Fraction of each sine mode that the models learn from {study.samples} random points, averaged "
            f"over {study.draws} random sets of points. The prediction (dashed) assumes Gaussian features and does not "
            "affect the verdict.",
            points=True,
        ),
        Chart(
            "population_coefficients",
            log="x",
            title="Order of learning on the population",
            members={"mode": (1, 2)},
            y_label="learned fraction of the mode",
            caption="Learned fraction over training time on densely sampled data. Both models learn all modes, but in "
            "opposite orders: the first model learns mode 1 before mode 2, and the second learns mode 2 before mode 1.",
        ),
        Chart(
            "loss",
            log="x",
            title="Training loss",
            caption=f"Loss on the {study.samples} points over training time. Both models fit the points exactly, so "
            "the final training losses do not reveal how the models differ between the points.",
        ),
    ]


def meaning(study: LinearInductiveBias, result: Comparison) -> str:
    """Compare the mean frequencies of the learned functions."""
    share = result.observed["utilization"]
    mean = (share * share["mode"]).sum("mode")
    return (
        f"Two linear models represent the same functions, sums of {study.modes} sine modes. Both models are trained to "
        f"convergence on the same {study.samples} points. The models differ only in the strengths of their "
        "features: low frequencies are strong in the first model, high frequencies in the second. The power-weighted "
        f"mean frequency of the learned function is {rounded(mean.sel(run='low first'))} for the first model and "
        f"{rounded(mean.sel(run='high first'))} for the second; the highest frequency is {study.modes}. The strength "
        "of a feature determines how early gradient descent learns the feature and, if the data do not determine the "
        "function, how much the feature contributes to the learned function."
    )
