"""SGD at rest on regressions whose inputs have a spectrum that falls as a power: how far it wanders, and should."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from dynascope.networks import DeepLinear
from dynascope.probes.diffusion import ExponentFit, fit_exponent
from dynascope.studies.noise.anomalous_diffusion.displacement import wandered
from dynascope.tasks import Task, regression
from dynascope.theory.noise import (
    QuadraticLoss,
    diffusion_window,
    discrete_stationary_moments,
    displacement_exponent,
    quadratic_loss,
    stationary_displacement,
)

__all__ = ["DECADE", "PowerLawRegression"]

DECADE = np.geomspace(1, 10, 9)  # steps at which displacements are recorded, over the first of the window
_SGD: Any = {"learning_rate": 0.05, "batch_size": 8}
_SAMPLES = 4  # for each input
_OFF = 0.1  # which the slope of a few hundred modes may be off that of infinitely many


@dataclasses.dataclass(frozen=True)
class PowerLawRegression:
    """Gaussian inputs of variances l⁻ᵖ with targets of nothing but noise, learned by plain SGD with batches of eight.

    Attributes:
        power: p.
        inputs: Number of inputs, and of modes.
        seed: Seed of the samples, of the starts and of the batches.

    Example:
        >>> task = PowerLawRegression(2.0, 100)
        >>> task.window, round(float(task.exponent), 2)
        ((155, 1550), 0.51)
    """

    power: float
    inputs: int
    seed: int = 0

    @functools.cached_property
    def window(self) -> tuple[int, int]:
        """First and last step of what is within a tenth of min(1, 1/p), at most a decade.

        Raises:
            InputError: There are too few modes for that.
        """
        rate = _SGD["learning_rate"]
        found = diffusion_window(power=self.power, modes=self.inputs, learning_rate=rate, tolerance=_OFF)
        return found.first, min(found.last, 10 * found.first)

    @functools.cached_property
    def steps(self) -> Int[np.ndarray, " decade"]:
        """The steps that are recorded."""
        return np.rint(DECADE * self.window[0]).astype(int)

    @functools.cached_property
    def exponent(self) -> float:
        """The exponent of its modes in the window, exactly but for noise that depends on the weights."""
        first, last = self.window
        return displacement_exponent(self._loss.curvature, self._loss.mode_noise, first=first, last=last, **_SGD)

    @property
    def squared_displacement(self) -> Float[np.ndarray, " decade"]:
        """E‖θ_k − θ_0‖² of its modes."""
        return stationary_displacement(self._loss.curvature, self._loss.mode_noise, self.steps, **_SGD)

    def simulated(self, runs: int) -> Float[np.ndarray, "runs decade"]:
        """‖θ_k − θ_0‖² of SGD from starts that are drawn from the stationary law."""
        loss, draw = self._loss, np.random.default_rng([self.seed, 1])
        still = discrete_stationary_moments(curvature=loss.curvature, noise=loss.mode_noise, **_SGD)
        away = draw.normal(size=(runs, self.inputs)) * np.sqrt(still.position_variance)
        networks = [
            eqx.tree_at(lambda each: each.weights, DeepLinear((self.inputs, 1)), (start[:, None],))
            for start in loss.minimum + away @ loss.directions.T
        ]
        return wandered(networks, self._task, self.steps, seed=self.seed, **_SGD)

    def fitted(self, displacements: Float[np.ndarray, "runs decade"]) -> ExponentFit:
        """The exponent of what was simulated, in the window."""
        first, last = self.window
        return fit_exponent(self.steps, displacements, first=first, last=last)

    @functools.cached_property
    def _loss(self) -> QuadraticLoss:
        return quadratic_loss(self._task.inputs, self._task.targets)

    @functools.cached_property
    def _task(self) -> Task:
        return regression(
            samples=_SAMPLES * self.inputs,
            input_covariance=np.arange(1.0, self.inputs + 1) ** -self.power,
            target_map=np.zeros(self.inputs),
            noise=1.0,
            seed=self.seed,
            exact_moments=True,
        )
