"""Theory of SGD with momentum on one linear regression, along the modes of its loss."""

from __future__ import annotations

import dataclasses
import functools
import warnings
from typing import Any

import numpy as np

from dynascope.studies.noise.limiting_dynamics.phase_space import PhaseSpace
from dynascope.theory import SGD
from dynascope.theory.noise import (
    ModeMoments,
    QuadraticLoss,
    equipartition_ratio,
    finite_data_moments,
    finite_data_stationary_moments,
    langevin_moments,
    langevin_stationary_moments,
    oscillation,
    quadratic_loss,
    stationary_law,
)

__all__ = ["RegressionLaws"]


@dataclasses.dataclass(frozen=True, eq=False)
class RegressionLaws:
    """The exact moments of SGD, and the Langevin law for small learning rates.

    Attributes:
        inputs: X, shape (N, d).
        targets: y, shape (N,).
        sgd: η, β, λ and S.
    """

    inputs: np.ndarray
    targets: np.ndarray
    sgd: SGD

    @functools.cached_property
    def loss(self) -> QuadraticLoss:
        """The quadratic loss."""
        return quadratic_loss(self.inputs, self.targets, weight_decay=self.sgd.weight_decay)

    @property
    def least(self) -> float:
        """The minimum of the loss."""
        return float(np.mean((self.inputs @ self.loss.minimum - self.targets) ** 2) / 2)

    @property
    def start(self) -> np.ndarray:
        """The initial distance from the centre along each mode; the initial weights are zero."""
        return -self.loss.centre @ self.loss.directions

    @property
    def modes(self) -> dict[str, Any]:
        """Curvature and noise of the modes."""
        return {"curvature": self.loss.curvature, "noise": self.loss.mode_noise}

    def exact(self, steps: np.ndarray) -> ModeMoments:
        """The exact moments of SGD on these data."""
        found = finite_data_moments(steps, self.inputs, self.targets, self.sgd)
        parts = (found.position_covariance, found.covariance, found.velocity_covariance)
        q = self.loss.directions
        return ModeMoments((found.position - self.loss.centre) @ q, found.velocity @ q, *map(self._along, parts))

    def langevin(self, steps: np.ndarray) -> ModeMoments:
        """The moments of Langevin dynamics."""
        return langevin_moments(steps * self.sgd.learning_rate, self.sgd, **self.modes, position=self.start)

    @functools.cached_property
    def limit(self) -> ModeMoments:
        """The stationary moments of Langevin dynamics."""
        return _quietly(langevin_stationary_moments, self.sgd, **self.modes)

    @property
    def scales(self) -> tuple[np.ndarray, np.ndarray]:
        """The stationary standard deviations of position and velocity under Langevin dynamics."""
        return np.sqrt(self.limit.position_variance), np.sqrt(self.limit.velocity_variance)

    @functools.cached_property
    def off(self) -> np.ndarray:
        """Relative deviation of the exact stationary variances from Langevin dynamics."""
        found = finite_data_stationary_moments(self.inputs, self.targets, self.sgd)
        return self._along(found.position_covariance) / self.limit.position_variance - 1

    @property
    def equipartition(self) -> np.ndarray:
        """The stationary ratio Var b/Var a."""
        return _quietly(equipartition_ratio, self.sgd.without_batches, curvature=self.loss.curvature)

    @property
    def circulation(self) -> np.ndarray:
        """The predicted circulation E(a b' − b a')/η = −s/(S(1 − β)) in the stationary state."""
        return -self.loss.mode_noise / (self.sgd.batch_size * (1 - self.sgd.momentum))

    @property
    def swings(self) -> np.ndarray:
        """Whether each mode oscillates."""
        return oscillation(self.loss.curvature, self.sgd.without_batches).oscillates

    def modified_loss(self, phase: PhaseSpace) -> np.ndarray:
        """The modified loss κΦ along each mode."""
        law = _quietly(stationary_law, *phase, self.sgd, **self.modes)
        return law.inverse_temperature * law.modified_loss

    def _along(self, covariance: np.ndarray) -> np.ndarray:
        q = self.loss.directions
        return np.einsum("im,...ij,jm->...m", q, covariance, q)


def _quietly(law: Any, *arguments: Any, **named: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return law(*arguments, **named)
