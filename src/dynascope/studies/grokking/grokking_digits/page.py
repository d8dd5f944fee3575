"""Figures and text of the page of grokking-digits."""

from __future__ import annotations

import functools

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

_CHART_OF_STEPS = functools.partial(Chart, over="step", x_label="step of training")
_CHART_OF_RUNS = functools.partial(Chart, over="run", points=True, x_label="what was changed")

FIGURES = (
    _CHART_OF_STEPS(
        ("accuracy", "test_accuracy"),
        log="x",
        members={"run": ("default",)},
        words=("training", "test"),
        y_label="accuracy",
        caption="From large weights (default): the training images are known by step "
        "{observed.train_step[run=default]:mean}, new ones {observed.delay[run=default]:mean} steps later on "
        "average over {parameters.seeds} runs (thin lines).",
    ),
    _CHART_OF_RUNS(
        ("train_step", "test_step"),
        log="y",
        words=("training images", "new images"),
        title="When training images and new ones are known",
        y_label="step at which they are known",
        caption="When the training images and new ones are known, for each remedy; a point is a run. The distance "
        "between both colours is the delay.",
    ),
    _CHART_OF_RUNS(
        ("kappa_before", "kappa_after"),
        words=("when the training images are known", "in the end"),
        y_label="distance to minimum features κ",
        caption="How far features are from the fewest that could form the outputs (0), before and after.",
    ),
    _CHART_OF_STEPS(
        "loss_ratio",
        log="xy",
        caption="Three remedies were trained a second time with other dials turned instead, so that theory makes "
        "them twins: the ratio of the losses is then one known number at every step.",
    ),
)

MEANING = (
    "From large initial weights a network fitted {parameters.samples} digits ({parameters.train_threshold:percent} "
    "right) by step {observed.train_step[run=default]:mean} and new ones ({parameters.test_threshold:percent} "
    "right) {observed.delay[run=default]:mean} steps later, on average over {parameters.seeds} runs. Four remedies "
    "were tried, one dial each: with smaller weights the delay was {observed.delay[run=weight downscaling]:mean} "
    "steps, with larger targets {observed.delay[run=target upscaling]:mean}, with smaller inputs "
    "{observed.delay[run=input downscaling]:mean}, with smaller outputs "
    "{observed.delay[run=output downscaling]:mean}; below zero new digits were known first, and a threshold that "
    "was never passed counts as passed at the last step. Judged is whether each of them makes the delay shorter "
    "beyond the chance of a start. Checked are laws that hold of any such run, first that some of these dials are "
    "one dial in disguise: a twin with another dial turned runs through the same losses, up to a factor that is "
    "known."
)
