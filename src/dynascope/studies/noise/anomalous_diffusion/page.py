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
    """The figures: displacements and exponents of the regressions, and displacements of the networks."""
    forecast, measured = (result.observed[name] for name in ("forecast_exponent", "network_exponent"))
    return [
        Chart(
            "squared_displacement",
            over="window_step",
            log="xy",
            symbols={"spectrum": "p"},
            y_label="E‖θ_k − θ_0‖²",
            title="Displacement in regressions with a power-law spectrum",
            caption="Mean squared displacement of the weights under SGD, starting from the stationary distribution. "
            "The weights are confined first along directions of large curvature, so the displacement grows more slowly "
            "for larger p. Dashed lines show the prediction. The theory neglects that the gradient noise increases "
            "away from the minimum, which can raise the measured curves by a few percent.",
        ),
        Chart(
            "sgd_exponent",
            over="spectrum",
            interval=("sgd_low", "sgd_high"),
            x_label="p of the spectrum l⁻ᵖ",
            y_label="exponent",
            title="Diffusion exponents of the regressions",
            caption="Diffusion exponent fitted over a decade of steps, with its confidence interval over runs, for "
            "each exponent p of the spectrum. Theory predicts an exponent of about min(1, 1/p).",
            points=True,
        ),
        Chart(
            "network_displacement",
            over="step",
            log="xy",
            symbols={"start": ""},
            y_label="‖θ_k − θ_0‖²",
            title="Displacement in trained networks",
            caption="Squared displacement of each network against the training step. Dashed lines show the "
            "forecast from curvature and gradient noise measured beforehand. Over the first quarter of the steps, "
            f"the forecast exponent is {rounded(forecast)} and the measured exponent {rounded(measured)}. "
            "At later steps, the weights can move further than forecast, because the loss is not quadratic.",
        ),
    ]


def meaning(study: AnomalousDiffusion, result: Comparison) -> str:
    """Explain the power law of the displacement, with measured and predicted exponents."""
    found = result.observed
    seen, theory = found["sgd_exponent"], result.predicted["sgd_exponent"]
    return (
        "Minibatch noise keeps the weights moving after the loss has converged. Under free diffusion, the squared "
        "displacement grows in proportion to the number of steps; the curvature confines the weights along "
        "steep directions first, and thereby lowers the exponent below 1. For regressions with curvature spectra l⁻ᵖ, "
        "the diffusion exponent of SGD is "
        f"{_range(seen)}; the predicted exponent is {_range(theory)}. For networks trained on images, the exponent "
        "forecast from curvature and gradient noise, without fitted parameters, is "
        f"{rounded(found['forecast_exponent'])}; the measured exponent is {rounded(found['network_exponent'])}, and "
        f"the squared displacement is {rounded(found['forecast_ratio'])} times the forecast. The forecast assumes that "
        "the weights have reached their stationary distribution, that the noise is constant, and that the loss is "
        "quadratic. The forecast can fail at later steps, where the measured exponent is "
        f"{rounded(found['late_exponent'])}."
    )


def _range(values: xr.DataArray) -> str:
    least, most = rounded(values.min()), rounded(values.max())
    return least if least == most else f"between {least} and {most}"
