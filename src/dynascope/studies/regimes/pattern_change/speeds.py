"""Speeds of the norm and of the direction of a neuron's map, measured in one small step of gradient descent."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from dynascope.studies.power_fit import fitted_exponent
from dynascope.studies.regimes.pattern_change.descent import trained_networks
from dynascope.tasks import Task
from dynascope.theory import neuron
from dynascope.theory.neuron.state import weights_of

if TYPE_CHECKING:
    from dynascope.studies.regimes.pattern_change.two_samples import TwoSamples

__all__ = ["LAYERS", "Speeds"]

#: Names of the initialisations, in the order of their imbalances.
LAYERS = ("downstream", "balanced", "upstream")
_IMBALANCES = np.array([-1.0, 0.0, 1.0])
_STEP = 1e-4  # largest rotation in the step, in units of the gradient
_AXES = ("initialization", "map_norm")
_LIMITS = {"radial_exponent": np.array([0.0, 1.0, 0.0]), "angular_exponent": np.array([1.0, 0.0, -1.0])}


class Speeds:
    """Measures the speeds of the map β = a w of small neurons, divided by the components of the gradient.

    |d‖β‖/dt| / |β̂·g| = R, ‖dβ̂/dt‖ / ‖g − β̂ (β̂·g)‖ = (R + δ)/(2 ‖β‖), R = √(δ² + 4 ‖β‖²)

    Attributes:
        norms: ‖β‖, shape (norms,).
        samples: The two samples and the initial direction of the weights.
    """

    def __init__(self, norms: np.ndarray, samples: TwoSamples):
        self.norms, self.samples = norms, samples

    def trained(self) -> dict[str, Any]:
        """Measure both factors in one step, and fit their exponents in the norm of the map."""
        before = self._maps
        rate = _STEP * float(self.norms.min())
        x, y = self.samples.inputs, self.samples.targets
        a, w = weights_of(before, np.broadcast_to(_IMBALANCES[:, None], before.shape[:-1]))
        task = Task(x, y[:, None], name="two samples")
        flat = a.reshape(-1, 1), w.reshape(-1, 1, 2)
        run = trained_networks(task, *flat, "relu", rate, [0, 1])
        steps = run["output_weight"].to_numpy() * run["weights"].to_numpy()[..., 0, :]
        first, second = (steps[:, each].reshape(before.shape) for each in (0, 1))
        # Within the pattern, the gradient in β is that of a linear neuron on masked inputs.
        masked = neuron.fixed_pattern(x, y, w)
        gradient = np.einsum("...ij,...j->...i", masked.second_moment, first) - masked.correlation
        sizes = [np.linalg.norm(each, axis=-1, keepdims=True) for each in (first, second)]
        directions = first / sizes[0], second / sizes[1]
        along = np.sum(directions[0] * gradient, axis=-1)
        across = gradient - along[..., None] * directions[0]
        radial = np.abs((sizes[1] - sizes[0])[..., 0]) / rate / np.abs(along)
        angular = np.linalg.norm(directions[1] - directions[0], axis=-1) / rate / np.linalg.norm(across, axis=-1)
        return {**_logarithms(radial, angular), **self._exponents(radial, angular)}

    def exact(self) -> dict[str, Any]:
        """Evaluate both factors, and their exponents in the limit of small maps."""
        limits = {name: (_AXES[:1], values) for name, values in _LIMITS.items()}
        return {**_logarithms(*self._factors), **limits}

    @property
    def corrections(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """For each exponent, its limits, and the deviations of the exact factors at these norms from them."""
        fitted = self._exponents(*self._factors)
        return {name: (values, fitted[name][1] - values) for name, values in _LIMITS.items()}

    @functools.cached_property
    def _maps(self) -> np.ndarray:
        """Initial maps, shape (initialisations, norms, 2)."""
        direction = self.samples.start[1][0] / np.linalg.norm(self.samples.start[1][0])
        return np.tile(self.norms[:, None] * direction, (len(_IMBALANCES), 1, 1))

    @functools.cached_property
    def _factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Both factors: the speeds for a gradient whose components along and across the map are one."""
        maps = self.norms[:, None] * np.array([1.0, 0.0])
        speeds = neuron.neuron_speeds(maps, np.ones(2), _IMBALANCES[:, None])
        return np.asarray(speeds.radial), np.asarray(speeds.angular)

    def _exponents(self, radial: np.ndarray, angular: np.ndarray) -> dict[str, Any]:
        named = {"radial_exponent": radial, "angular_exponent": angular}
        return {
            name: (_AXES[:1], np.array([fitted_exponent(self.norms, each)[0] for each in values]))
            for name, values in named.items()
        }


def _logarithms(radial: np.ndarray, angular: np.ndarray) -> dict[str, Any]:
    return {"log_radial_factor": (_AXES, np.log10(radial)), "log_angular_factor": (_AXES, np.log10(angular))}
