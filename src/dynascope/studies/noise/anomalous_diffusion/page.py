"""Figures and text of the study `anomalous-diffusion`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.noise.anomalous_diffusion.study import AnomalousDiffusion

__all__ = ["figures", "meaning"]


def figures(study: AnomalousDiffusion, result: Comparison) -> list[Chart]:
    """The displacements and exponents of the regressions, and the displacements of the networks."""
    forecast, measured = (result.observed[name] for name in ("forecast_exponent", "network_exponent"))
    return [
        Chart(
            "squared_displacement",
            over="window_step",
            log="xy",
            symbols={"spectrum": "p"},
            y_label="E‖θ_k − θ_0‖²",
            title="Displacement of regressions with a power-law spectrum",
            caption="Mean squared displacement of SGD from stationary weights. The theory (dashed) predicts that "
            "directions of large curvature are confined first, so that the displacement grows more slowly the steeper "
            "the spectrum. The theory neglects the increase of the noise with the distance from the minimum, which can "
            "raise the measured curves by a few percent.",
        ),
        Chart(
            "sgd_exponent",
            over="spectrum",
            interval=("sgd_low", "sgd_high"),
            x_label="p of the spectrum l⁻ᵖ",
            y_label="exponent",
            title="Diffusion exponents of the regressions",
            caption="Diffusion exponent over a decade of steps, with its confidence interval over runs. The theory "
            "predicts about min(1, 1/p).",
            points=True,
        ),
        Chart(
            "network_displacement",
            over="step",
            log="xy",
            symbols={"start": ""},
            y_label="‖θ_k − θ_0‖²",
            title="Displacement of trained networks",
            caption="Squared displacement of each network. The dashed lines show the forecast from curvature and noise "
            f"at the initial point. The forecast exponent is {rounded(forecast)} and the measured exponent is "
            f"{rounded(measured)}, both up to a quarter of the steps shown. The forecast assumes a quadratic loss; at "
            "later steps, the weights can move further than in a quadratic loss.",
        ),
    ]


def meaning(study: AnomalousDiffusion, result: Comparison) -> str:
    """Why the displacement is a power of the number of steps, with the measured and predicted exponents."""
    found = result.observed
    seen, theory = found["sgd_exponent"], result.predicted["sgd_exponent"]
    return (
        "Training does not stop when the loss stops falling: minibatch noise keeps the weights moving. Under free "
        "diffusion, the squared displacement is proportional to the number of steps, with exponent 1. The curvature of "
        "the loss confines each direction after some time, steep directions first, so that the exponent depends on the "
        f"spectrum of the curvature. On the simulated spectra l⁻ᵖ, SGD has an exponent of {_range(seen)}, and the "
        f"theory predicts {_range(theory)}. For networks trained on images, the study measured curvature and noise and "
        f"forecast an exponent of {rounded(found['forecast_exponent'])} before further training; the measured exponent "
        f"is {rounded(found['network_exponent'])}. The squared displacement is {rounded(found['forecast_ratio'])} "
        "times the forecast, which has no fitted parameters. Beyond the window of the forecast, the exponent is "
        f"{rounded(found['late_exponent'])}. The forecast assumes stationary networks, constant noise and a quadratic "
        "loss, so that it can fail there."
    )


def _range(values: xr.DataArray) -> str:
    least, most = rounded(values.min()), rounded(values.max())
    return least if least == most else f"{least} to {most}"
