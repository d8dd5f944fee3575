"""A ReLU neuron that is active on one of two samples: training and closed form of the change of its pattern."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from dynascope.comparison import Claim
from dynascope.flows.pattern_flow import pattern_flow
from dynascope.probes.kernel.path import kernel_path
from dynascope.studies.regimes.pattern_change.descent import trained_networks
from dynascope.tasks import Task
from dynascope.theory import neuron
from dynascope.theory.neuron.state import weights_of
from dynascope.theory.scalar_networks import growth_factor

if TYPE_CHECKING:
    from dynascope.studies.regimes.pattern_change.study import PatternChange

__all__ = ["TwoSamples"]

_REST = 20.0  # training time after the first sample or the pattern change, in time constants of the first sample
_FIRST_STEP = 4  # first recorded step after the initialisation
_MOST_STEPS = 200_000


class TwoSamples:
    """Trains one neuron per imbalance on two samples, and evaluates the closed form of its pattern change.

    The first sample is the unit vector (1, 0), and the angle between both samples is below 90°. The initial weights
    are active on the first sample only. All neurons have the same initial map β = a w of norm τ².

    Attributes:
        study: The study, whose fields are the settings.
        inputs: X, shape (2, 2).
        targets: y, shape (2,).
    """

    def __init__(self, study: PatternChange):
        self.study = study
        angle = np.deg2rad(study.angle)
        self.inputs = np.array([[1.0, 0.0], [np.cos(angle), np.sin(angle)]])
        self.targets = np.array(study.targets)

    @functools.cached_property
    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Initial weights a, shape (neurons,), and w, shape (neurons, 2)."""
        imbalances, below = np.array(self.study.imbalances), -np.deg2rad(self.study.initial_angle)
        initial_map = self.study.initial_size**2 * np.array([np.cos(below), np.sin(below)])
        return weights_of(np.tile(initial_map, (len(imbalances), 1)), imbalances)

    @functools.cached_property
    def change(self) -> neuron.PatternChange:
        """The predicted change of each neuron."""
        return neuron.pattern_change(self.inputs, self.targets, *self.start)

    @functools.cached_property
    def margins(self) -> np.ndarray:
        """1 − u* a*/y₁, shape (neurons,): positive if the first sample is not yet fitted where the pattern changes."""
        a, w = self.start
        first = w[:, 0]
        reached = -w[:, 1] * self.inputs[1, 1] / self.inputs[1, 0]
        return 1 - reached * np.sqrt(a**2 + reached**2 - first**2) / self.targets[0]

    @functools.cached_property
    def duration(self) -> float:
        """Training time: neurons without a change have then fitted the first sample."""
        a, w = self.start
        growing = ((a + w[:, 0]) / 2) ** 2
        changed = self.change.time[np.isfinite(self.change.time)]
        slowest = self.targets[0]
        fitted = np.log1p(slowest / growing.min()) / slowest
        return float(max(fitted, changed.max(initial=0.0)) + _REST / slowest)

    @property
    def log_times(self) -> np.ndarray:
        """Decimal logarithms of the predicted times of the change; of the training time for neurons without one."""
        return np.log10(np.minimum(self.change.time, self.duration))

    @functools.cached_property
    def steps(self) -> np.ndarray:
        """Numbers of the recorded steps, spaced logarithmically."""
        last = round(self.duration / self.study.learning_rate)
        problem = f"at learning_rate {self.study.learning_rate:g}, training takes {last} steps"
        remedy = f"choose a larger learning rate, so that {_MOST_STEPS} steps suffice"
        self.study.require(last <= _MOST_STEPS, "learning_rate", remedy, problem=problem)
        spaced = np.geomspace(_FIRST_STEP, last, self.study.times - 1)
        return np.unique(np.append(0, np.round(spaced).astype(int)))

    @property
    def times(self) -> np.ndarray:
        """Times of the recorded steps."""
        return self.steps * self.study.learning_rate

    def trained(self) -> dict[str, Any]:
        """Train all neurons by gradient descent, and locate the first activation of the second sample."""
        run = self._run()
        a, w, loss = (run[name].to_numpy() for name in ("output_weight", "weights", "loss"))
        a, w = a[..., 0], w[..., 0, :]
        found = [self._located(*each) for each in zip(a, w, strict=True)]
        time, output, weights = (np.array(each) for each in zip(*found, strict=True))
        residual = self.targets[0] - output * weights[:, 0]
        ends = kernel_path(np.stack([self._kernels(a[:, each], w[:, each]) for each in (0, -1)], axis=1))
        return {
            "loss": (("imbalance", "time"), loss[:, self.steps]),
            "changes": (("imbalance",), (w @ self.inputs[1] > 0).any(axis=1).astype(int)),
            **self._at_change(np.log10(time), residual),
            "kernel_distance": (("imbalance",), ends.distance[:, -1]),
        }

    def exact(self) -> dict[str, Any]:
        """Evaluate the closed form until the change, and the flow of the new pattern after it."""
        starts = zip(*(each[:, None] for each in self.start), strict=True)
        flows = [pattern_flow(self.times, self.inputs, self.targets, a, w) for a, w in starts]
        complete = all(each.status == "complete" for each in flows)
        self.study.require(complete, "targets", "choose more similar targets", problem="a neuron slides on a boundary")
        fixed = self._fixed_pattern_loss()
        before = self.times <= self.change.time[:, None]
        residual = self.targets[0] - self.change.output_weight * self.change.weights[:, 0]
        return {
            "loss": (("imbalance", "time"), np.where(before, fixed, [each.loss for each in flows])),
            "fixed_pattern_loss": (("imbalance", "time"), fixed),
            **self._at_change(self.log_times, residual),
        }

    def claim(self, found: Any) -> Claim:
        """The claim that exactly the predicted neurons change their pattern."""
        changes = found["changes"][1] == np.isfinite(self.change.time)
        statement = (
            "A neuron becomes active on the second sample if and only if theory predicts this from its initial "
            "weights; the value is the number of neurons with the predicted outcome."
        )
        return Claim("changes", statement, int(changes.sum()), least=len(changes))

    def _fixed_pattern_loss(self) -> np.ndarray:
        """The loss of neurons that stay in the initial pattern, shape (neurons, times), in closed form."""
        a, w = self.start
        half_sum, half_difference = ((a + sign * w[:, 0])[:, None] / 2 for sign in (1, -1))
        grown = growth_factor(self.times, self.targets[0], half_sum**2, half_difference**2, 2 / len(self.inputs))
        return (np.asarray(grown.residual) ** 2 + self.targets[1] ** 2) / (2 * len(self.inputs))

    def _at_change(self, log_time: np.ndarray, residual: np.ndarray) -> dict[str, Any]:
        """Quantities at the change, or at the end of training if the pattern does not change."""
        neurons = ("imbalance",)
        return {
            "log_change_time": (neurons, log_time),
            "change_loss": (neurons, (residual**2 + self.targets[1] ** 2) / (2 * len(self.inputs))),
            "used": (neurons, 1 - (residual / self.targets[0]) ** 2),
        }

    def _located(self, a: np.ndarray, w: np.ndarray) -> tuple[float, float, np.ndarray]:
        """Time and weights at the first zero of w·x₂ between two steps, or at the end if there is none."""
        active = w @ self.inputs[1]
        if not (active > 0).any():
            return self.duration, a[-1], w[-1]
        after = int(np.argmax(active > 0))
        share = active[after - 1] / (active[after - 1] - active[after])
        output, weights = (each[after - 1] + share * (each[after] - each[after - 1]) for each in (a, w))
        return float((after - 1 + share) * self.study.learning_rate), output, weights

    def _kernels(self, a: np.ndarray, w: np.ndarray) -> np.ndarray:
        """Tangent kernels on the two samples, shape (neurons, 2, 2)."""
        z = w @ self.inputs.T
        gates, hidden = a[:, None] * (z > 0), np.maximum(z, 0)
        overlap = self.inputs @ self.inputs.T
        return gates[:, :, None] * gates[:, None, :] * overlap + hidden[:, :, None] * hidden[:, None, :]

    def _run(self) -> xr.Dataset:
        """Train all neurons and record every step."""
        a, w = self.start
        task = Task(self.inputs, self.targets[:, None], name="two samples")
        every = range(int(self.steps[-1]) + 1)
        return trained_networks(task, a[:, None], w[:, None], "relu", self.study.learning_rate, every)
