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
    """The figures: accuracies, losses and features over training steps."""
    train, test = (rounded(result.observed[name].mean()) for name in ("train_step", "test_step"))
    return [
        _CHART_OF_STEPS(
            ("accuracy", "test_accuracy"),
            log="x",
            words=("training", "test"),
            y_label="accuracy",
            title="Accuracy on training and test samples",
            caption="Accuracy on the training samples and on the rest of the table over training. On average over "
            f"{study.seeds} runs (thin lines), the training accuracy reaches {percent(study.train_threshold)} at step "
            f"{train} and the test accuracy reaches {percent(study.test_threshold)} at step {test}. If a run "
            "never reaches a threshold, its last step enters the average.",
        ),
        _CHART_OF_STEPS(
            ("loss", "test_loss"),
            log="xy",
            words=("training", "test"),
            title="Training loss and test loss",
            y_label="loss",
            caption="Losses of the same runs over training. While the training loss is low and the test loss is high, "
            "the network has memorised its samples without learning the rule.",
        ),
        _CHART_OF_STEPS(
            "kappa_cka",
            log="x",
            title="Distance to minimum features",
            caption="Distance κ to minimum features on the training samples, over training. κ is zero if the features "
            "span no more dimensions than the outputs.",
        ),
        _CHART_OF_STEPS(
            ("effective_dimension_utilization", "effective_dimension"),
            log="xy",
            words=("used by the outputs", "of the features"),
            title="Number of features",
            y_label="effective number of features",
            caption="Effective number of features used by the outputs, and effective number of all features weighted "
            "by their strength, over training.",
        ),
    ]


def meaning(study: GrokkingModular, result: Comparison) -> str:
    """Summarise the steps of fitting and generalising, and the change in the features."""
    observed = result.observed
    train, test, renamed = (rounded(observed[name].mean()) for name in ("train_step", "test_step", "renamed_loss"))
    change, low, high = (rounded(observed[name].sel(hypothesis="H2")) for name in ("change", "low", "high"))
    return (
        f"A network is trained on {percent(study.train_fraction)} of the table of {study.operation} modulo {study.p} "
        f"with a weight decay of {rounded(study.weight_decay)}. On average over {study.seeds} runs, the network "
        f"reaches a training accuracy of {percent(study.train_threshold)} at step {train}, and a test accuracy of "
        f"{percent(study.test_threshold)} on the rest of the table at step {test}. If a run never reaches a threshold, "
        "its last step enters the average. From the geometric mean of the two steps to the end of training, the "
        f"distance κ to minimum features changes by {change} (95 % CI {low} to {high}). The verdict rests on whether, "
        "in the median over runs, the test samples are learned after the training samples. The checks test laws that "
        f"hold for every run. For example, renaming the numbers does not change the loss (measured ratio: {renamed}). "
        "None of the laws predicts when the network generalises."
    )
