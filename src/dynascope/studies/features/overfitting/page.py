"""Figures and text of the study `overfitting`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded
from dynascope.studies.features.overfitting.experiment import NOISE_SAMPLES

if TYPE_CHECKING:
    from dynascope.studies.features.overfitting.study import Overfitting

__all__ = ["figures", "meaning"]

_CHART_OF_FIT = functools.partial(
    Chart, ("target_function", "fitted"), over="sample", words=("target", "fit"), x_label="position x", y_label="value"
)


def figures(study: Overfitting, result: Comparison) -> list[Chart]:
    """Both fits, the losses, and fits to pure noise."""
    learned, test_loss = result.observed["learnability"], result.observed["test_loss"].isel(time=-1)
    noise = "The weak modes fit the noise in the labels with spikes at the samples. " if study.noise_variance else ""
    return [
        _CHART_OF_FIT(
            title="Fit of a target in a strong mode",
            members={"run": ("benign",)},
            caption=f"Target sin(2πkx) with k = {study.benign_mode}, and the model after training on {study.samples} "
            f"samples. {noise}In the median over {study.draws} draws of the samples, the model learns "
            f"{percent(learned.sel(run='benign'))} of the target.",
        ),
        _CHART_OF_FIT(
            title="Fit of a target in a weak mode",
            members={"run": ("malignant",)},
            caption=f"The same model with the target sin(2πkx), k = {study.malignant_mode}. In the median over the "
            f"draws, the model learns {percent(learned.sel(run='malignant'))} of the target. The other weak modes fit "
            "the rest of the labels with spikes at the samples, which are narrower the more modes there are.",
        ),
        Chart(
            ("loss", "test_loss"),
            log="xy",
            title="Training loss and test loss",
            words=("training", "test"),
            y_label="loss",
            caption="Training loss on the labels, and test loss against the noiseless target, both as medians over "
            f"the trained draws. The test loss ends at {rounded(test_loss.sel(run='benign'))} for the target in a "
            f"strong mode (benign) and at {rounded(test_loss.sel(run='malignant'))} for the target in a weak mode "
            "(malignant).",
        ),
        Chart(
            "noise_power",
            over="scaling_parameter",
            log="xy",
            title="Mean square of fits to pure noise",
            x_label="number of modes p",
            y_label="mean square of the fit to noise of variance 1",
            caption=f"Mean square of a model with p equally strong modes that fits {NOISE_SAMPLES} samples of pure "
            f"noise exactly. Points show the median over draws; the dashed curve {NOISE_SAMPLES}/(p − {NOISE_SAMPLES}) "
            "is the prediction for Gaussian features and is not judged. Nearly coincident samples raise the mean "
            "square, most where there are few modes.",
            points=True,
        ),
    ]


def meaning(study: Overfitting, result: Comparison) -> str:
    """The learned fraction and the test loss of both targets."""
    learned, test_loss = (
        [result.observed[name].sel(run=run) for run in ("benign", "malignant")]
        for name in ("learnability", "median_test_loss")
    )
    noise = f"with noise of variance {rounded(study.noise_variance)}" if study.noise_variance else "without noise"
    return (
        f"A linear model with {study.strong_modes} strong and {study.modes - study.strong_modes} weak sine modes was "
        f"trained on {study.samples} samples {noise}, long enough to fit the labels. For a target in a strong mode it "
        f"learns {percent(learned[0])} of the target and reaches a test loss of {rounded(test_loss[0])}; for a target "
        f"in a weak mode it learns {percent(learned[1])} and reaches {rounded(test_loss[1])} (medians over "
        f"{study.draws} draws of the samples). The two runs share the model, the inputs and the size of the noise. "
        "Only the mode of the target differs, so a training loss near zero alone does not show whether the model "
        "generalises. The model is linear and its spectrum was chosen to separate the two cases; in real data a target "
        "usually has parts in strong and in weak modes."
    )
