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
    """Learned fractions, test loss and coefficients for every number of samples."""
    loss = result.observed["loss"]
    ends = list(dict.fromkeys((study.samples[0], study.samples[-1])))
    losses = " and ".join(f"{rounded(loss.sel(samples=n))} with {n} samples" for n in ends)
    return [
        _CHART_OF_MODES(
            "learned_fraction",
            log="x",
            title="Learned fraction of each mode",
            caption=f"Fraction of each mode that kernel regression learns from {' to '.join(map(str, ends))} samples. "
            f"Points show the {study.average} over training sets. Lines show the prediction, which uses no training "
            "set.",
        ),
        Chart(
            "loss",
            over="samples",
            log="xy",
            error="loss_deviation",
            title="Test loss",
            caption=f"The test loss is {losses}. Bars show the standard deviation between training sets.",
            points=True,
        ),
        _CHART_OF_MODES(
            "coefficients",
            log="xy",
            title="Learned coefficients",
            y_label="coefficient of the mode",
            caption="Coefficients of the modes in the learned function. The prediction is the coefficient in the "
            "target times the predicted learned fraction.",
        ),
    ]


def meaning(study: Learnability, result: Comparison) -> str:
    """The learned fractions of the first and the last mode, and the errors of the prediction."""
    learned, judged = result.observed["learned_fraction"], result.quantities
    shares = " ".join(
        f"With {n} samples it learned {percent(learned.sel(samples=n)[0])} of the mode with the largest eigenvalue and "
        f"{percent(learned.sel(samples=n)[-1])} of the mode with the smallest."
        for n in dict.fromkeys((study.samples[0], study.samples[-1]))
    )
    words = {"loss": "of the test loss", "learned_fraction": "of the learned fractions"}
    errors = [f"{rounded(judged[name].error)} {of}" for name, of in words.items() if name in judged]
    error = f"The relative error of the prediction is {' and '.join(errors)}. " if errors else ""
    return (
        f"Kernel regression fits a target of {study.modes} independent modes. The predicted fraction that it learns of "
        f"a mode grows with the kernel eigenvalue of the mode and with the number of samples. {shares} The theory "
        "predicts these fractions and the test loss from the eigenvalues, the target, the ridge and the noise variance "
        f"alone. {error}It assumes Gaussian features and predicts averages over training sets: real features can "
        "deviate, and a single training set scatters around the average."
    )
