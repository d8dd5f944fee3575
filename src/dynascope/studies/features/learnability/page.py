"""Figures and text of the study `learnability`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.features.learnability.study import Learnability

__all__ = ["figures", "meaning"]

_CHART_OF_MODES = functools.partial(Chart, over="mode", points=True, x_label="mode, largest kernel eigenvalue first")


def figures(study: Learnability, result: Comparison) -> list[Chart]:
    """The figures: learned fractions, test loss and coefficients for every number of samples."""
    loss = result.observed["loss"]
    ends = list(dict.fromkeys((study.samples[0], study.samples[-1])))
    losses = " and ".join(f"{rounded(loss.sel(samples=n))} with {n} samples" for n in ends)
    return [
        _CHART_OF_MODES(
            "learned_fraction",
            log="x",
            title="Learned fraction of each mode",
            caption=f"Fraction of each mode that kernel regression learns from {' to '.join(map(str, ends))} samples. "
            f"Points show the {study.average} over training sets; lines show the prediction.",
        ),
        Chart(
            "loss",
            over="samples",
            log="xy",
            error="loss_deviation",
            title="Test loss",
            caption=f"Test loss against the number of samples: {losses}. Bars show the standard deviation over "
            "training sets.",
            points=True,
        ),
        _CHART_OF_MODES(
            "coefficients",
            log="xy",
            title="Learned coefficients",
            y_label="coefficient of the mode",
            caption="Coefficients of the modes in the learned function. The prediction is the target coefficient times "
            "the predicted learned fraction.",
        ),
    ]


def meaning(study: Learnability, result: Comparison) -> str:
    """Summarise the learned fractions of the first and last modes, and the errors of the prediction."""
    learned, judged = result.observed["learned_fraction"], result.quantities
    shares = " ".join(
        f"With {n} samples, the learned fraction is {percent(learned.sel(samples=n)[0])} for the mode with the largest "
        f"kernel eigenvalue and {percent(learned.sel(samples=n)[-1])} for the mode with the smallest."
        for n in dict.fromkeys((study.samples[0], study.samples[-1]))
    )
    words = {"loss": "for the test loss", "learned_fraction": "for the learned fractions"}
    errors = [f"{rounded(judged[name].error)} {of}" for name, of in words.items() if name in judged]
    error = f"The relative error of the prediction is {' and '.join(errors)}. " if errors else ""
    return (
        f"Kernel regression learns a fraction of each of the {study.modes} modes of a target. {shares} The theory "
        "predicts these fractions and the test loss from the number of samples, the kernel eigenvalues, the target, "
        f"the ridge and the noise variance. {error}The theory assumes Gaussian features and predicts averages over "
        "training sets, so results for real features or for a single training set can deviate from the prediction."
    )
