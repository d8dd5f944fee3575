"""Figures and text of the study `linear-inductive-bias`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.features.linear_inductive_bias.study import LinearInductiveBias

__all__ = ["figures", "meaning"]


def figures(study: LinearInductiveBias, result: Comparison) -> list[Chart]:
    """Both fits, their learnabilities, the flow on the population and the loss."""
    return [
        Chart(
            "fitted",
            over="sample",
            title="Functions after training",
            x_label="position x",
            y_label="function at the end of training",
            caption=f"Functions that the two models learn from the same {study.samples} points. They meet at the "
            "points. Between the points they differ: the first model has its strongest features at low frequencies, "
            "the second at high frequencies.",
        ),
        Chart(
            "learnability",
            over="mode",
            title="Learned fraction of each mode",
            x_label="mode (frequency)",
            y_label="learned fraction of the mode",
            caption=f"Fraction of each sine mode that {study.samples} random points teach each model, averaged over "
            f"{study.draws} draws of the points. The dashed prediction assumes Gaussian features and is not judged.",
            points=True,
        ),
        Chart(
            "population_coefficients",
            log="x",
            title="Order of learning on the population",
            members={"mode": (1, 2)},
            y_label="learned fraction of the mode",
            caption="Training on densely sampled data teaches both models all modes, in opposite orders: the first "
            "model learns mode 1 before mode 2, the second mode 2 before mode 1.",
        ),
        Chart(
            "loss",
            log="x",
            title="Training loss",
            caption=f"Loss on the {study.samples} points. Both models can fit the points exactly, so the training loss "
            "at the end does not show which of them is right between the points.",
        ),
    ]


def meaning(study: LinearInductiveBias, result: Comparison) -> str:
    """The mean frequency of both learned functions."""
    share = result.observed["utilization"]
    mean = (share * share["mode"]).sum("mode")
    return (
        f"Two linear models can form the same functions, sums of {study.modes} sine modes, and were trained on the "
        f"same {study.samples} points until they fitted them. The models differ only in the strength of their "
        "features: the first has strong features for low frequencies, the second for high frequencies. The mean "
        f"frequency of the learned function, from 1 to {study.modes} and weighted by the share of each mode in its "
        f"mean square, is {rounded(mean.sel(run='low first'))} for the first model and "
        f"{rounded(mean.sel(run='high first'))} for the second. The strength of a feature determines how early "
        "gradient descent learns it and, where the data leave a choice, how much of it the learned function contains. "
        "The models are linear and their features are fixed."
    )
