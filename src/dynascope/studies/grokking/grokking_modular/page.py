"""Figures and text of the page of grokking-modular."""

from __future__ import annotations

import functools

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

_CHART_OF_STEPS = functools.partial(Chart, over="step", x_label="step of training")

FIGURES = (
    _CHART_OF_STEPS(
        ("accuracy", "test_accuracy"),
        log="x",
        words=("training", "test"),
        y_label="accuracy",
        title="What is known of the samples, and of the rest of the table",
        caption="The training samples are right by step {observed.train_step:mean}, the others (test) by step "
        "{observed.test_step:mean}, on average over {parameters.seeds} runs (thin lines); where they never were, "
        "the last step counts.",
    ),
    _CHART_OF_STEPS(
        ("loss", "test_loss"),
        log="xy",
        words=("training", "test"),
        y_label="loss",
        caption="The losses of the same runs: between the fall of the one and the fall of the other a network "
        "knows its samples and not the rule.",
    ),
    _CHART_OF_STEPS(
        "kappa_cka",
        log="x",
        caption="How far the features on the training samples are from the fewest that could form the outputs (0).",
    ),
    _CHART_OF_STEPS(
        ("effective_dimension_utilization", "effective_dimension"),
        log="xy",
        words=("that the output uses", "that there are"),
        y_label="number of features",
        caption="About how many features the outputs are spread over, and how many strong ones there are.",
    ),
)

MEANING = (
    "A network was trained on {parameters.train_fraction:percent} of the table of {parameters.operation} modulo "
    "{parameters.p}, with weights that decay. On average over {parameters.seeds} runs, "
    "{parameters.train_threshold:percent} of these samples were right by step {observed.train_step:mean}, and "
    "{parameters.test_threshold:percent} of the rest by step {observed.test_step:mean} (the last step, where that "
    "was never so). From the time between to the end, the distance of its features to the fewest that could do, "
    "κ, changed by {observed.change[hypothesis=H2]}, by {observed.low[hypothesis=H2]} to "
    "{observed.high[hypothesis=H2]} with 95 % confidence; in few and small runs such as these the interval says "
    "more than the number. Judged is whether in the median the rest comes after the samples, by more steps than "
    "the chance of a start makes. Checked is what must hold of any such run: numbers are only names, so that "
    "training under other names gives the same loss (ratio {observed.renamed_loss:mean}), and laws of the weights "
    "and features. None of them says when the rule is found."
)
