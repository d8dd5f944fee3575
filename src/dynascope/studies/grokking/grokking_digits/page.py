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
    return [
        _CHART_OF_STEPS(
            ("accuracy", "test_accuracy"),
            log="x",
            title="Accuracy from large initial weights",
            members={"run": ("default",)},
            words=("training", "test"),
            y_label="accuracy",
            caption="Accuracy of the default runs over training (thin lines). On average over "
            f"{study.seeds} initialisations, {_default_run(study, result)}",
        ),
        _CHART_OF_RUNS(
            ("train_step", "test_step"),
            log="y",
            title="Steps to fit and to generalise",
            words=("training images", "test images"),
            y_label="step at which the threshold is reached",
            caption="Steps at which the training and test accuracies reach their thresholds in each run, one point per "
            "initialisation. The delay is the distance between the two colours. If a threshold is not reached by the "
            f"end of training, the point marks the last step ({_unreached(result)}).",
        ),
        _CHART_OF_RUNS(
            ("kappa_before", "kappa_after"),
            title="Distance to minimum features",
            words=("when the training images are fitted", "at the end"),
            y_label="distance to minimum features κ",
            caption="Distance κ to minimum features in each run, when the training images are fitted and at the end of "
            "training. κ is zero if the features span no more dimensions than the outputs.",
        ),
        _CHART_OF_STEPS(
            "loss_ratio",
            log="xy",
            title="Loss ratio of twin runs",
            caption="Loss of each twin run, divided by the loss of the run that it repeats with equivalent changes in "
            "other settings. The theory predicts this ratio at every step (dashed).",
        ),
    ]


def meaning(study: GrokkingDigits, result: Comparison) -> str:
    """Summarise the delays of the default run and the four remedies."""
    weights, targets, inputs, outputs = (
        _delay(result, run)
        for run in ("weight downscaling", "target upscaling", "input downscaling", "output downscaling")
    )
    return (
        f"Networks were trained on {study.samples} images from large initial weights. On average over {study.seeds} "
        f"initialisations, {_default_run(study, result)} The delay is {weights} with smaller initial weights, "
        f"{targets} with larger targets, {inputs} with smaller inputs and {outputs} with smaller outputs; a delay is "
        "negative if the test accuracy reaches its threshold first. The verdict rests on whether each of these "
        "remedies shortens the delay by more than the variation between initialisations. The checks include exact "
        "equivalences: a twin run with different but equivalent settings has the same loss at every step, up to a "
        "known factor."
    )


def _default_run(study: GrokkingDigits, result: Comparison) -> str:
    """State the steps at which the default networks reach both thresholds, as the end of a sentence."""
    default = result.observed.sel(run="default")
    fit, test = percent(study.train_threshold), percent(study.test_threshold)
    missed = int((~default["fitted"]).sum())
    if missed:
        return (
            f"the delay is unknown: {missed} of {study.seeds} networks did not reach a training accuracy of {fit} by "
            f"step {study.steps}, the end of training."
        )
    step, delay = rounded(default["train_step"].mean()), rounded(default["delay"].mean())
    start = f"the training accuracy reaches {fit} at step {step}"
    missed = int((~default["generalised"]).sum())
    if not missed:
        return f"{start}, and the test accuracy reaches {test} after {delay} more steps."
    networks = "" if missed == study.seeds else f" in {missed} of {study.seeds} networks"
    return (
        f"{start}. The delay until the test accuracy reaches {test} is at least {delay} steps; this accuracy is not "
        f"reached by the end of training{networks}."
    )


def _delay(result: Comparison, run: str) -> str:
    """State the mean delay of a run, which is a lower bound if a network did not generalise."""
    found = result.observed.sel(run=run)
    if not found["fitted"].all():
        return f"unknown ({int((~found['fitted']).sum())} of {found.sizes['seed']} networks did not fit)"
    steps = f"{rounded(found['delay'].mean())} steps"
    missed = int((~found["generalised"]).sum())
    return f"at least {steps} ({missed} of {found.sizes['seed']} networks did not generalise)" if missed else steps


def _unreached(result: Comparison) -> str:
    """List the networks that did not reach a threshold by the end of training."""
    parts = [
        f"{int((~reached).sum())} of {reached.size} {run} networks ({images} images)"
        for name, images in (("fitted", "training"), ("generalised", "test"))
        for run, reached in result.observed[name].groupby("run")
        if not reached.all()
    ]
    return ", ".join(parts) or "none in this run"
