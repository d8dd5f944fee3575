"""Figures and text of the study `grokking-digits`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.grokking.grokking_digits.study import GrokkingDigits

__all__ = ["figures", "meaning"]

_CHART_OF_STEPS = functools.partial(Chart, over="step", x_label="training step")
_CHART_OF_RUNS = functools.partial(Chart, over="run", points=True, x_label="changed setting")


def figures(study: GrokkingDigits, result: Comparison) -> list[Chart]:
    """The figures: accuracies of the default run, delays and features of all runs, and losses of the twins."""
    default = result.observed.sel(run="default")
    return [
        _CHART_OF_STEPS(
            ("accuracy", "test_accuracy"),
            log="x",
            title="Accuracy from large initial weights",
            members={"run": ("default",)},
            words=("training", "test"),
            y_label="accuracy",
            caption="Accuracy of the default runs over training (thin lines). On average over "
            f"{study.seeds} initialisations, the training accuracy reaches {percent(study.train_threshold)} at step "
            f"{rounded(default['train_step'].mean())}, and the test accuracy reaches {percent(study.test_threshold)} "
            f"after {rounded(default['delay'].mean())} more steps. Thresholds that are never reached count as reached "
            "at the last step.",
        ),
        _CHART_OF_RUNS(
            ("train_step", "test_step"),
            log="y",
            title="Steps to fit and to generalise",
            words=("training images", "test images"),
            y_label="step at which the threshold is reached",
            caption="Steps at which the training and test accuracies reach their thresholds in each run, one point per "
            "initialisation. The distance between the two colours is the delay.",
        ),
        _CHART_OF_RUNS(
            ("kappa_before", "kappa_after"),
            title="Distance to minimum features",
            words=("when the training images are fitted", "at the end"),
            y_label="distance to minimum features κ",
            caption="Distance κ of the features from minimum features, the fewest that can form the outputs (κ = 0), "
            "in each run when the training images are fitted and at the end of training.",
        ),
        _CHART_OF_STEPS(
            "loss_ratio",
            log="xy",
            title="Loss ratio of twin runs",
            caption="Three runs were repeated as twins, with an equivalent change of other settings. Theory predicts "
            "the ratio of the two losses at every step (dashed).",
        ),
    ]


def meaning(study: GrokkingDigits, result: Comparison) -> str:
    """Summarise the delays of the default run and the four remedies."""
    delay = result.observed["delay"].mean("seed")
    weights, targets, inputs, outputs = (
        rounded(delay.sel(run=run))
        for run in ("weight downscaling", "target upscaling", "input downscaling", "output downscaling")
    )
    first = rounded(result.observed["train_step"].sel(run="default").mean())
    return (
        f"From large initial weights, a network reaches a training accuracy of {percent(study.train_threshold)} on "
        f"{study.samples} images at step {first}, and a test accuracy of {percent(study.test_threshold)} after "
        f"{rounded(delay.sel(run='default'))} more steps, on average over {study.seeds} initialisations. This delay "
        f"becomes {weights} steps with smaller initial weights, {targets} with larger targets, {inputs} with smaller "
        f"inputs and {outputs} with smaller outputs; a delay is negative if the test accuracy reaches its threshold "
        "first. The verdict rests on whether each of these remedies shortens the delay by more than the variation "
        "between initialisations. The checks include exact equivalences between settings: a twin run that changes a "
        "different setting has the same loss at every step, up to a known factor."
    )
