"""Figures and text of the page of linear-inductive-bias."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "fitted",
        over="sample",
        x_label="place x",
        y_label="function at the end of training",
        caption="The functions that both models learn from the same {parameters.samples} points. They cross at "
        "the points; between them the one bends slowly, as it prefers low frequencies, and the other fast.",
    ),
    Chart(
        "learnability",
        over="mode",
        x_label="mode (number of waves)",
        y_label="share of the mode that is learned",
        caption="How much of each wave {parameters.samples} random points teach, on average over "
        "{parameters.draws} draws: the one model learns slow waves, the other fast ones. Dashed, and not judged: "
        "a theory that takes sines as if they were Gaussian numbers.",
        points=True,
    ),
    Chart(
        "population_coefficients",
        log="x",
        members={"mode": (1, 2)},
        y_label="learned part of the mode",
        caption="With data everywhere both models learn all waves, each in its own order: the model that prefers "
        "low frequencies has mode 1 before mode 2, and the other mode 2 before mode 1.",
    ),
    Chart(
        "loss",
        log="x",
        caption="The loss on the {parameters.samples} points: both models come to fit them, so that no error on "
        "the data tells which of them is right elsewhere.",
    ),
)

MEANING = (
    "Two models that can form the same functions, sums of {parameters.modes} sine waves (modes), were trained on "
    "the same {parameters.samples} points. They differ in one thing only: the first has larger features for slow "
    "waves, the second for fast ones. Both were trained until they fitted the points, and do so by other "
    "functions: of what was learned, the slowest wave is {observed.utilization[run=low first][mode=1]:percent} in "
    "the first and {observed.utilization[run=high first][mode=1]:percent} in the second. The size of features "
    "decides what is learned first, and where data leave a choice, what is learned at all. These are linear "
    "models, whose features do not move."
)
