"""Figures and text of the study `grokking-modular`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.grokking.grokking_modular.study import GrokkingModular

__all__ = ["figures", "meaning"]

_CHART_OF_STEPS = functools.partial(Chart, over="step", x_label="training step")


def figures(study: GrokkingModular, result: Comparison) -> list[Chart]:
    """Accuracies, losses and features over the training steps."""
    train, test = (rounded(result.observed[name].mean()) for name in ("train_step", "test_step"))
    return [
        _CHART_OF_STEPS(
            ("accuracy", "test_accuracy"),
            log="x",
            words=("training", "test"),
            y_label="accuracy",
            title="Accuracy on training and test samples",
            caption=f"The training accuracy reaches {percent(study.train_threshold)} at step {train}, and the test "
            f"accuracy, on the rest of the table, reaches {percent(study.test_threshold)} at step {test}, on average "
            f"over {study.seeds} runs (thin lines). A threshold that is never reached counts as reached at the last "
            "step.",
        ),
        _CHART_OF_STEPS(
            ("loss", "test_loss"),
            log="xy",
            words=("training", "test"),
            title="Training loss and test loss",
            y_label="loss",
            caption="Losses of the same runs. Where the training loss is low and the test loss is still high, the "
            "network has memorised its samples without learning the rule.",
        ),
        _CHART_OF_STEPS(
            "kappa_cka",
            log="x",
            title="Distance to minimum features",
            caption="Distance κ of the features on the training samples to minimum features, the fewest that can form "
            "the outputs (κ = 0).",
        ),
        _CHART_OF_STEPS(
            ("effective_dimension_utilization", "effective_dimension"),
            log="xy",
            words=("used by the outputs", "of the features"),
            title="Number of features",
            y_label="effective number of features",
            caption="Effective number of features over which the outputs are spread, and effective number of strong "
            "features.",
        ),
    ]


def meaning(study: GrokkingModular, result: Comparison) -> str:
    """The steps of fitting and generalising, and the change of the features."""
    observed = result.observed
    train, test, renamed = (rounded(observed[name].mean()) for name in ("train_step", "test_step", "renamed_loss"))
    change, low, high = (rounded(observed[name].sel(hypothesis="H2")) for name in ("change", "low", "high"))
    return (
        f"A network is trained on {percent(study.train_fraction)} of the table of {study.operation} modulo {study.p}, "
        f"with weight decay {rounded(study.weight_decay)}. It reaches a training accuracy of "
        f"{percent(study.train_threshold)} at step {train}, and a test accuracy of {percent(study.test_threshold)} on "
        f"the rest of the table at step {test}, on average over "
        f"{study.seeds} runs. A threshold that is never reached counts as reached at the last step. From the middle of "
        "these two steps (geometric mean) to the end of training, the distance κ of the features to minimum features "
        f"changes by {change} (95 % interval {low} to {high}). The verdict depends on whether the test samples are "
        "learned after the training samples, in the median over runs and by more than the variation between them. The "
        "checks are laws that hold for every run. For example, numbers are only names: training with other names must "
        f"give the same loss, and the ratio of the two losses is {renamed}. None of these laws predicts when the "
        "network finds the rule."
    )
