"""Figures and text of the study `credit-assignment`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.interventions.credit_assignment.study import CreditAssignment

__all__ = ["figures", "meaning"]


def figures(study: CreditAssignment, result: Comparison) -> list[Chart]:
    """The figures: results against depth, on the grid of settings, and with noisy updates."""
    floor = result.observed["noise_floor"].mean("seed")
    return [
        Chart(
            "test_accuracy",
            over="depth",
            title="Test accuracy against depth",
            y_label="test accuracy",
            caption="Test accuracy of MLPs with different numbers of layers, trained with each rule; "
            f"mean over {study.seeds} initialisations.",
            points=True,
            joined=True,
        ),
        Chart(
            "weight_angle",
            over="depth",
            title="Angle between feedback weights and weights",
            caption="Angle between feedback weights and weights at the end of training, averaged over layers. Random "
            "feedback weights are nearly orthogonal to the weights.",
            points=True,
            joined=True,
        ),
        Chart(
            "gradient_angle",
            over="depth",
            title="Angle between the approximate and the exact gradient",
            y_label="angle of the gradient (degrees)",
            caption="Angle between the approximate gradient, which is sent back through the feedback weights, and the "
            "exact gradient at the end of training, over all weights of the network. If the angle is below 90 degrees, "
            "a small step along the approximate gradient lowers the loss.",
            points=True,
            joined=True,
        ),
        Chart(
            "mirror_angle",
            over="depth",
            title="Angle of the weight mirror",
            y_label="angle (degrees)",
            caption="Angle between the feedback weights of the weight mirror and the weights at the end of training, "
            "and the stationary angle predicted for fixed weights (dashed).",
            points=True,
        ),
        Chart(
            "working_share",
            over="tuned",
            title="Fragility",
            x_label="rule",
            caption=f"Share of the {len(study.learning_rates) * len(study.strengths)} combinations of learning rate "
            f"and rule strength for which a network of {study.grid_depth} layers reaches a test accuracy of "
            f"{percent(study.trained_accuracy)}.",
            points=True,
        ),
        Chart(
            "transfer_loss",
            over="tuned",
            title="Transfer of tuned settings",
            x_label="rule",
            caption="Test accuracy that a convolutional network loses if it is trained with the best settings for the "
            "MLP instead of the best settings for the convolutional network.",
            points=True,
        ),
        Chart(
            ("noisy_angle", "noise_floor"),
            over="noise",
            log="xy",
            title="Noisy updates of symmetric alignment",
            y_label="angle (degrees)",
            words=("measured", "predicted floor"),
            caption="Angle between feedback weights and weights if noise is added to the updates of the feedback "
            "weights, and the noise floor predicted from the trained weights. The predicted floor rises from "
            f"{rounded(floor[0])} to {rounded(floor[-1])} degrees.",
            points=True,
        ),
    ]


def meaning(study: CreditAssignment, result: Comparison) -> str:
    """Summarise accuracy, angles and fragility."""
    observed = result.observed.mean("seed")
    deep = observed.isel(depth=-1)
    exact, fixed, mirror, symmetric = (
        deep.sel(rule=name)
        for name in ("backpropagation", "feedback alignment", "weight mirror", "symmetric alignment")
    )
    share = observed["working_share"]
    return (
        f"With {study.depths[-1]} layers, backpropagation reaches a test accuracy of "
        f"{percent(exact['test_accuracy'])}, fixed random feedback weights {percent(fixed['test_accuracy'])}, the "
        f"weight mirror {percent(mirror['test_accuracy'])} and symmetric alignment "
        f"{percent(symmetric['test_accuracy'])}. The feedback weights of the weight mirror fluctuate about the weights "
        f"at an angle of {rounded(mirror['weight_angle'])} degrees, because every step estimates the weights from few "
        f"samples; the theory predicts {rounded(result.predicted['mirror_angle'][-1])} degrees. The weight mirror "
        f"trains the network with {percent(share.sel(tuned='weight mirror'))} of the combinations of learning rate and "
        f"rule strength, information alignment with {percent(share.sel(tuned='information alignment'))} and symmetric "
        f"alignment with {percent(share.sel(tuned='symmetric alignment'))}."
    )
