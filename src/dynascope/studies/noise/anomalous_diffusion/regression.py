"""Measured and predicted displacement of the weights under stationary SGD on regressions."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import equinox as eqx
import numpy as np
from jaxtyping import Float, Int

from dynascope.networks import DeepLinear
from dynascope.probes.diffusion import ExponentFit, fit_exponent
from dynascope.studies.noise.anomalous_diffusion.displacement import squared_displacements
from dynascope.tasks import Task, regression
from dynascope.theory import SGD
from dynascope.theory.noise import (
    QuadraticLoss,
    diffusion_window,
    discrete_stationary_moments,
    displacement_exponent,
    quadratic_loss,
    stationary_displacement,
)

__all__ = ["DECADE", "PowerLawRegression"]

DECADE = np.geomspace(1, 10, 9)  # recorded steps, relative to the first step of the window
_RATE, _BATCH = 0.05, 8
_SAMPLES = 4  # samples per input
_ERROR = 0.1  # largest deviation of the exponent of a few hundred modes from that of infinitely many


@dataclasses.dataclass(frozen=True)
class PowerLawRegression:
    """Linear regression of noise on Gaussian inputs with variances l⁻ᵖ, trained by SGD with minibatches of eight.

    Attributes:
        power: p.
        inputs: Number of inputs, which is the number of modes.
        seed: Seed of the samples, the initial weights and the minibatches.

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
        """First and last step of the window, at most a decade, in which the exponent is within 0.1 of min(1, 1/p).

        Raises:
            InputError: There are too few modes for a window.
        """
        found = diffusion_window(power=self.power, modes=self.inputs, learning_rate=_RATE, tolerance=_ERROR)
        return found.first, min(found.last, 10 * found.first)

    @functools.cached_property
    def steps(self) -> Int[np.ndarray, " decade"]:
        """The recorded steps."""
        return np.rint(DECADE * self.window[0]).astype(int)

    @functools.cached_property
    def exponent(self) -> float:
        """The predicted exponent within the window, exact if the noise does not depend on the weights."""
        first, last = self.window
        return displacement_exponent(self._loss.curvature, self._loss.mode_noise, self._sgd, first=first, last=last)

    @property
    def squared_displacement(self) -> Float[np.ndarray, " decade"]:
        """The predicted E‖θ_k − θ_0‖², summed over the modes."""
        return stationary_displacement(self._loss.curvature, self._loss.mode_noise, self.steps, self._sgd)

    def simulated(self, runs: int) -> Float[np.ndarray, "runs decade"]:
        """Simulate ‖θ_k − θ_0‖² under SGD, from initial weights drawn from the stationary distribution."""
        loss, draw = self._loss, np.random.default_rng([self.seed, 1])
        stationary = discrete_stationary_moments(self._sgd, curvature=loss.curvature, noise=loss.mode_noise)
        offsets = draw.normal(size=(runs, self.inputs)) * np.sqrt(stationary.position_variance)
        networks = [
            eqx.tree_at(lambda each: each.weights, DeepLinear((self.inputs, 1)), (start[:, None],))
            for start in loss.minimum + offsets @ loss.directions.T
        ]
        training: Any = {"learning_rate": _RATE, "batch_size": _BATCH}
        return squared_displacements(self._task, networks, self.steps, seed=self.seed, **training)

    def fitted(self, displacements: Float[np.ndarray, "runs decade"]) -> ExponentFit:
        """The exponent of simulated displacements within the window."""
        first, last = self.window
        return fit_exponent(self.steps, displacements, first=first, last=last)

    @property
    def _sgd(self) -> SGD:
        return SGD(_RATE, batch_size=_BATCH)

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
