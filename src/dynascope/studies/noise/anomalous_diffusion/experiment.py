"""Displacements of simulated regressions and of trained networks, with their predicted exponents."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.errors import InputError
from dynascope.studies.noise.anomalous_diffusion.networks import RestingNetworks
from dynascope.studies.noise.anomalous_diffusion.regression import PowerLawRegression
from dynascope.tasks.data.named_images import image_shape
from dynascope.theory import SGD
from dynascope.theory.noise import DiffusionWindow, anomalous_exponent, diffusion_window, displacement_exponent

if TYPE_CHECKING:
    from dynascope.studies import Values
    from dynascope.studies.noise.anomalous_diffusion.study import AnomalousDiffusion

__all__ = ["Experiment"]

_MODE_RATE = 0.01  # learning rate in the exact sum over modes
_MODE_ERROR = 0.02  # largest error of the exponent within the window of this sum


class Experiment:
    """Simulates the regressions of a study and trains its networks.

    Args:
        study: The study that defines the spectra, the networks and the data.
    """

    def __init__(self, study: AnomalousDiffusion):
        self.study = study

    def check_windows(self) -> None:
        """Require enough modes for every power.

        Raises:
            InputError: For some spectrum, there is no window of steps in which the exponent is close to min(1, 1/p).
        """
        for power, task in zip(self.study.powers, self.regressions, strict=True):
            try:
                _ = self._mode_window(power), task.window
            except InputError as error:
                problem, remedy = str(error).partition(":")[0], "choose powers further from one, or more inputs"
                raise InputError(problem, argument="powers", value=power, remedy=remedy) from error

    def trained(self) -> Values:
        """Simulate the regressions, train the networks, forecast their displacement, and continue training."""
        study = self.study
        height, width, _ = image_shape(self.networks.images)
        problem = f"the images have {height} × {width} pixels, but the small network requires square images"
        study.require(study.network == "resnet18" or height == width, "network", "choose resnet18", problem=problem)
        simulated = [each.simulated(study.runs) for each in self.regressions]
        fits = [task.fitted(each) for task, each in zip(self.regressions, simulated, strict=True)]
        exponents, low, high = np.transpose([each[:3] for each in fits])
        return {
            "mode_exponent": ("spectrum", [self._mode_exponent(power) for power in study.powers]),
            "sgd_exponent": ("spectrum", exponents),
            "sgd_low": ("spectrum", low),
            "sgd_high": ("spectrum", high),
            "squared_displacement": (("spectrum", "window_step"), [each.mean(axis=0) for each in simulated]),
            **self.networks.measured(),
        }

    def exact(self) -> Values:
        """Evaluate the predicted exponents min(1, 1/p)."""
        return {"mode_exponent": ("spectrum", anomalous_exponent(self.study.powers))}

    def predicted_regressions(self) -> dict[str, Any]:
        """The predicted exponents and displacements of the regressions, for the figures and the claims."""
        tasks = self.regressions
        return {
            "sgd_exponent": ("spectrum", [each.exponent for each in tasks]),
            "squared_displacement": (("spectrum", "window_step"), [each.squared_displacement for each in tasks]),
        }

    @functools.cached_property
    def networks(self) -> RestingNetworks:
        """The networks trained on images."""
        return self.study.part(RestingNetworks)

    @functools.cached_property
    def regressions(self) -> list[PowerLawRegression]:
        """One regression for each power."""
        return [PowerLawRegression(power, self.study.inputs, self.study.seed) for power in self.study.powers]

    def _mode_exponent(self, power: float) -> float:
        """The exponent of the exact sum over many modes, within the window of the theory."""
        window, curvature = self._mode_window(power), np.arange(1.0, self.study.modes + 1) ** -power
        ends = {"first": window.first, "last": window.last}
        return displacement_exponent(curvature, curvature, SGD(_MODE_RATE), **ends)

    def _mode_window(self, power: float) -> DiffusionWindow:
        options = {"learning_rate": _MODE_RATE, "tolerance": _MODE_ERROR}
        return diffusion_window(power=power, modes=self.study.modes, **options)
