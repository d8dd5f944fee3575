"""Figures and text of the page of overfitting."""

from __future__ import annotations

import functools

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

_CHART_OF_FIT = functools.partial(Chart, over="sample", words=("target", "fit"), x_label="place x", y_label="value")

FIGURES = (
    _CHART_OF_FIT(
        ("target_function", "fitted"),
        title="The target is a strong mode",
        members={"run": ("benign",)},
        caption="The fit at the end of training on {parameters.samples} noisy samples, and the target. The noise "
        "is fitted by narrow spikes; of the target {observed.learnability[run=benign]:percent} is learned.",
    ),
    _CHART_OF_FIT(
        ("target_function", "fitted"),
        title="The target is a weak mode",
        members={"run": ("malignant",)},
        caption="The same model, and a target among its weak modes: of it "
        "{observed.learnability[run=malignant]:percent} is learned, and the rest is fitted by spikes as noise is.",
    ),
    Chart(
        ("loss", "test_loss"),
        log="xy",
        title="Both losses while the noise is fitted",
        words=("training", "new samples"),
        y_label="loss",
        caption="Training comes to fit the samples in both cases, noise and all. The loss on new "
        "samples ends at {observed.test_loss[run=benign]:last} for the target in a strong mode (benign) and at "
        "{observed.test_loss[run=malignant]:last} for the one in the tail (malignant).",
    ),
    Chart(
        "noise_power",
        over="scaling_parameter",
        log="xy",
        title="More modes fit pure noise more harmlessly",
        x_label="number of modes p",
        y_label="mean square of the fit of noise of variance 1",
        caption="How large a fit to 50 samples of pure noise is between them; dashed is 50/(p − 50). With few "
        "modes, samples that happen to lie close together on the line make it much larger.",
        points=True,
    ),
)

MEANING = (
    "A model with {parameters.strong_modes} strong sine waves (modes) and a long tail of weak ones was trained on "
    "{parameters.samples} noisy samples until it had fitted them, noise and all. If the target is a strong mode, "
    "{observed.learnability[run=benign]:percent} of it was learned and the loss on new samples is "
    "{observed.median_test_loss[run=benign]} in the median; if it is in the tail, "
    "{observed.learnability[run=malignant]:percent} and {observed.median_test_loss[run=malignant]}. The tail fits "
    "the noise by spikes at the samples, which hardly matter elsewhere; a target in the tail is fitted by such "
    "spikes too. So what decides is not how well the noise is fitted but whether the model prefers the target. "
    "This is a linear model whose modes were chosen so that both cases are pure."
)
