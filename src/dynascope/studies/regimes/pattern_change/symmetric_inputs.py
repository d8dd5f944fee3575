"""Leaky ReLU neurons on mirror-symmetric inputs with odd labels, and controls that break the equivalence."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from dynascope.comparison import Claim
from dynascope.studies.regimes.pattern_change.descent import trained_networks
from dynascope.tasks import Task
from dynascope.tasks.random_maps import orthonormal
from dynascope.theory import neuron

if TYPE_CHECKING:
    from dynascope.studies.regimes.pattern_change.study import PatternChange

__all__ = ["SymmetricInputs"]

_REST = 12.0  # training time after the neuron has grown, in time constants
_CURVE = ("negative_slope", "symmetric_time")


class SymmetricInputs:
    """Trains leaky ReLU neurons on inputs x and −x with labels b·x, and evaluates the equivalent linear neurons.

    The inputs are whitened and ‖b‖ = 1. The initial weights w(0) are orthogonal to b and turn by 90°, so about half of
    the activations change.

    Attributes:
        study: The study, whose fields are the settings.
        target: b, shape (d,).
    """

    def __init__(self, study: PatternChange):
        self.study = study
        self._axes = orthonormal(np.random.default_rng([study.seed, 1]), study.dimension)
        self.target = self._axes[:, 0]

    @functools.cached_property
    def inputs(self) -> np.ndarray:
        """Inputs in pairs x and −x with E[x xᵀ] = I, shape (2 pairs, d)."""
        size = (self.study.pairs, self.study.dimension)
        half = np.linalg.qr(np.random.default_rng([self.study.seed, 2]).normal(size=size))[0] * np.sqrt(size[0])
        return np.concatenate([half, -half])

    @property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Initial weights a, shape (2,), and W, shape (2, d), of two opposite neurons; the first is trained alone."""
        opposite = np.array([1.0, -1.0])
        return self.study.initial_size * opposite, self.study.initial_size * np.outer(opposite, self._axes[:, 1])

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """Numbers of the recorded steps, evenly spaced."""
        # The linear neuron grows like exp(s t/2) with s = 1 + γ.
        duration = 2 * (np.log1p(1 / self.study.initial_size**2) + _REST)
        return np.unique(np.linspace(0, duration / self.study.learning_rate, self.study.times).astype(int))

    @property
    def times(self) -> np.ndarray:
        """Times of the recorded steps."""
        return self.steps * self.study.learning_rate

    def trained(self) -> dict[str, Any]:
        """Train one neuron for each slope, and the controls."""
        runs = [self._run(slope, self.inputs @ self.target) for slope in self.study.negative_slopes]
        weights = np.stack([each["weights"].to_numpy()[0, :, 0] for each in runs])
        active = weights @ self.inputs.T > 0
        return {
            "symmetric_time": (("symmetric_time",), self.times),
            "symmetric_loss": (_CURVE, np.stack([each["loss"].to_numpy()[0] for each in runs])),
            "symmetric_map": ((*_CURVE, "feature"), np.stack([_maps(each) for each in runs])),
            "changed_activations": (("negative_slope",), np.mean(active[:, 0] != active[:, -1], axis=-1)),
            **{f"{name}_deviation": ((), value) for name, value in self._controls(runs[self._smallest]).items()},
        }

    def exact(self) -> dict[str, Any]:
        """Evaluate the equivalent linear neurons in closed form."""
        (a, w), loss, maps = self.start, [], []
        for slope in self.study.negative_slopes:
            same = neuron.linear_equivalent(slope)
            path = neuron.neuron_trajectory(
                float(a[0]), w[0], same.target_factor * self.target, same.time_factor * self.times
            )
            loss.append(same.time_factor * np.asarray(path.excess_loss) + same.unexplained / 2)
            maps.append(np.asarray(path.coefficients))
        return {
            "symmetric_time": (("symmetric_time",), self.times),
            "symmetric_loss": (_CURVE, np.stack(loss)),
            "symmetric_map": ((*_CURVE, "feature"), np.stack(maps)),
        }

    def claims(self, found: Any, tolerance: float) -> list[Claim]:
        """The claims that activations change, and that the equivalence fails for both controls."""
        changed = float(found["changed_activations"][1].min())
        controls = {
            "even_labels": "If the labels have an even part, the map of the neuron differs from that of the linear "
            "neuron; the value is the relative difference.",
            "two_neurons": "The loss of two opposite neurons differs from the loss that the equivalence would give for "
            "the linear network; the value is the relative difference.",
        }
        flips = "Activations change during training on symmetric inputs; the value is the smallest fraction that does."
        return [
            Claim("symmetric_changes", flips, changed, least=1 / len(self.inputs)),
            *(
                Claim(name, text, float(found[f"{name}_deviation"][1]), least=3 * tolerance)
                for name, text in controls.items()
            ),
        ]

    @functools.cached_property
    def _smallest(self) -> int:
        """Position of the smallest slope, which the controls use."""
        return int(np.argmin(self.study.negative_slopes))

    def _controls(self, single: xr.Dataset) -> dict[str, float]:
        """Relative deviations of the controls from the equivalence."""
        slope, odd = self.study.negative_slopes[self._smallest], self.inputs @ self.target
        same = neuron.linear_equivalent(slope)
        even = np.abs(self.inputs @ self._axes[:, 1])
        mixed = self._run(slope, odd + self.study.even_part * even)
        pair = self._run(slope, odd, neurons=2)
        # The number of steps is the same, so the learning rate scales the time.
        linear = self._run(1.0, same.target_factor * odd, neurons=2, time_factor=same.time_factor)
        equivalent = same.time_factor * linear["loss"].to_numpy() + same.unexplained / 2
        return {
            "even_labels": _relative_distance(_maps(mixed), _maps(single)),
            "two_neurons": _relative_distance(pair["loss"].to_numpy(), equivalent),
        }

    def _run(self, slope: float, labels: np.ndarray, *, neurons: int = 1, time_factor: float = 1.0) -> xr.Dataset:
        task = Task(self.inputs, labels[:, None], name="symmetric inputs")
        a, w = (each[None, :neurons] for each in self.start)
        activation = "linear" if slope == 1 else f"leaky-relu-{slope!r}"
        return trained_networks(task, a, w, activation, time_factor * self.study.learning_rate, self.steps.tolist())


def _maps(run: xr.Dataset) -> np.ndarray:
    """Σ aᵢ wᵢ of the only network of a run, shape (steps, d)."""
    return (run["output_weight"] * run["weights"]).sum("neuron").isel(seed=0).transpose("step", "feature").to_numpy()


def _relative_distance(values: np.ndarray, reference: np.ndarray) -> float:
    return float(np.linalg.norm(values - reference) / np.linalg.norm(reference))
