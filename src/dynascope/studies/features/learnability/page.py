"""Figures and text of the page of learnability."""

from __future__ import annotations

import functools

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

_CHART_OF_MODES = functools.partial(Chart, over="mode", points=True, x_label="mode, the most favoured first")

FIGURES = (
    _CHART_OF_MODES(
        "learned_fraction",
        log="x",
        caption="Modes are learned in the order in which the method prefers them, and more of them from more "
        "samples: {observed.samples:first} (lowest) to {observed.samples:last} (highest). Points are what was "
        "learned, lines what theory expects without any sample.",
    ),
    Chart(
        "loss",
        over="samples",
        log="xy",
        error="loss_deviation",
        caption="The loss on new samples falls from {observed.loss:first} to {observed.loss:last} with more "
        "samples. Bars show how much it differs from one training set to another.",
        points=True,
    ),
    _CHART_OF_MODES(
        "coefficients",
        log="xy",
        y_label="coefficient of the mode",
        caption="The coefficients that are learned: those of strong modes are those of the target, those of weak "
        "ones stay behind.",
    ),
)

MEANING = (
    "A target made of {parameters.modes} independent parts, its modes, was fitted by kernel regression, a method "
    "that favours some modes over others. Of the most favoured mode "
    "{observed.learned_fraction[mode=1]:first:percent} was learned from {observed.samples:first} samples and "
    "{observed.learned_fraction[mode=1]:last:percent} from {observed.samples:last}; of the least favoured one as "
    "little as {observed.learned_fraction:least:percent}. The theory knows the strengths of the modes, the target "
    "and the noise, and no sample; its loss on new samples is off by {agreement.loss}, and its shares by "
    "{agreement.learned_fraction}, of their size. It takes features to be as random as Gaussian numbers: those of "
    "real data may be others, and a single training set differs from the typical one."
)
