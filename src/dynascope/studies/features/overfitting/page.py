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
    """The figures: both fits, losses, and fits to pure noise."""
    learned, test_loss = result.observed["learnability"], result.observed["test_loss"].isel(time=-1)
    noise = "The weak modes fit the label noise with spikes at the samples. " if study.noise_variance else ""
    return [
        _CHART_OF_FIT(
            title="Fit of a target in a strong mode",
            members={"run": ("benign",)},
            caption=f"Target sin(2πkx) with k = {study.benign_mode}, and the model after training on {study.samples} "
            f"samples. {noise}The model learns {percent(learned.sel(run='benign'))} of the target (median over "
            f"{study.draws} random sets of samples).",
        ),
        _CHART_OF_FIT(
            title="Fit of a target in a weak mode",
            members={"run": ("malignant",)},
            caption=f"The same model with the target sin(2πkx) for k = {study.malignant_mode}. The model learns "
            f"{percent(learned.sel(run='malignant'))} of the target (median over the same sets). The other weak modes "
            "fit the rest of the labels with spikes at the samples; more modes make the spikes narrower.",
        ),
        Chart(
            ("loss", "test_loss"),
            log="xy",
            title="Training loss and test loss",
            words=("training", "test"),
            y_label="loss",
            caption="Training loss on the noisy labels and test loss against the noiseless target over training time "
            "(medians over random sets of samples). The test loss ends at "
            f"{rounded(test_loss.sel(run='benign'))} for the target in a strong mode (benign) and at "
            f"{rounded(test_loss.sel(run='malignant'))} for the target in a weak mode (malignant).",
        ),
        Chart(
            "noise_power",
            over="scaling_parameter",
            log="xy",
            title="Mean square of fits to pure noise",
            x_label="number of modes p",
            y_label="mean square of the fit to noise of variance 1",
            caption="Mean square of the function learned by a model with p equally strong modes that fits "
            f"{NOISE_SAMPLES} samples of pure noise exactly. Points show the median over random sets of samples. The "
            f"dashed curve {NOISE_SAMPLES}/(p − {NOISE_SAMPLES}) is the prediction for Gaussian features and does "
            "not affect the verdict. Nearly coincident samples raise the mean square, most strongly for few modes.",
            points=True,
        ),
    ]


def meaning(study: Overfitting, result: Comparison) -> str:
    """Compare the learned fractions and test losses of both targets."""
    learned, test_loss = (
        [result.observed[name].sel(run=run) for run in ("benign", "malignant")]
        for name in ("learnability", "median_test_loss")
    )
    noise = f"with noise of variance {rounded(study.noise_variance)}" if study.noise_variance else "without noise"
    return (
        f"A linear model with {study.strong_modes} strong and {study.modes - study.strong_modes} weak sine modes is "
        f"trained on {study.samples} samples {noise} until it fits the labels. The model learns {percent(learned[0])} "
        f"of a target in a strong mode, with a test loss of {rounded(test_loss[0])}, but only {percent(learned[1])} of "
        f"a target in a weak mode, with a test loss of {rounded(test_loss[1])} (medians over {study.draws} random sets "
        "of samples). The two cases differ only in the mode of the target, so a training loss near zero does not show "
        "whether a model generalises. The spectrum of the model was chosen to separate the two cases; in real data, "
        "targets usually have components in both strong and weak modes."
    )
