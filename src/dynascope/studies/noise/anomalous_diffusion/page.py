"""Figures and text of the page of anomalous-diffusion."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "squared_displacement",
        over="window_step",
        log="xy",
        symbols={"spectrum": "p"},
        y_label="E‖θ_k − θ_0‖²",
        title="Regressions whose spectrum is a power",
        caption="How far SGD on regressions went from weights at rest. By theory (dashed) directions of large "
        "curvature come to rest first, and the steeper the spectrum falls the slower weights wander. Noise that "
        "grows with the distance from the minimum, which theory leaves out, lifts the curves by some percent.",
    ),
    Chart(
        "sgd_exponent",
        over="spectrum",
        interval=("sgd_low", "sgd_high"),
        x_label="p of the spectrum l⁻ᵖ",
        y_label="exponent",
        title="Exponents of these regressions",
        caption="The exponent over a decade of steps, with its interval over runs. By theory about min(1, 1/p).",
        points=True,
    ),
    Chart(
        "network_displacement",
        over="step",
        log="xy",
        symbols={"start": ""},
        y_label="‖θ_k − θ_0‖²",
        title="Networks that have learned, and go on",
        caption="How far each network went. Dashed is what was forecast from curvature and noise before they went "
        "on. The exponent was forecast as {observed.forecast_exponent} and is {observed.network_exponent} up to "
        "a quarter of the steps; later weights go farther than a quadratic loss would let them.",
    ),
)

MEANING = (
    "Training does not stop where the loss does: the noise of batches keeps weights on the move. Freely they would "
    "go a squared distance in proportion to the number of steps, exponent 1. But each direction in which the loss "
    "is curved holds them back after a while, the steep ones first, so that they go slower, by an exponent that "
    "the spectrum of curvatures sets. Simulated spectra l⁻ᵖ had exponents from {observed.sgd_exponent:least} to "
    "{observed.sgd_exponent:most}, where theory says {predicted.sgd_exponent:least} to "
    "{predicted.sgd_exponent:most}. Of networks that had learned images the spectrum was measured, and from it the "
    "exponent {observed.forecast_exponent} was forecast before they went on; then they had "
    "{observed.network_exponent}. The squared distance was {observed.forecast_ratio} times that of the forecast, "
    "with nothing fitted. Beyond the window the exponent was {observed.late_exponent}: real minima are not the "
    "parabolas that theory takes them for."
)
