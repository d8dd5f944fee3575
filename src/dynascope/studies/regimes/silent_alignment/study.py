"""The tangent kernel of a small linear network aligns before the loss falls, and rotates later on correlated inputs."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
import xarray as xr
from annotated_types import Ge, Interval
from scipy.optimize import brentq

from dynascope.flows.gradient_flow import GradientFlow, gradient_flow
from dynascope.flows.solvers.solver import Solver
from dynascope.networks import TwoLayer
from dynascope.studies import Reference, Study, Values, curve_tolerance, parameter
from dynascope.studies.regimes.silent_alignment import page
from dynascope.tasks import Task
from dynascope.tasks.gaussian import regression
from dynascope.tasks.random_maps import covariance, whitened
from dynascope.theory import regimes
from dynascope.theory.scalar_networks import growth_factor
from dynascope.validation.bounded import PositiveFloat, PositiveInt, Seed

_SMALLEST_SCALE, _LARGEST_SCALE = 1e-8, 1e-4
_SMALL = "the theory is exact for infinitely small initial weights; corrections are proportional to the scale"
_CONSTANTS = 15.0  # training time after the plateau, in time constants
_ROUNDING = 1e-16
_AFTER = 4.0  # recorded time after half of the target is learned, in units of 1/s
_GRID = "measured between recorded times"


class SilentAlignment(Study):
    """Tests when the tangent kernel of a two-layer linear network aligns and rotates, and when its loss falls.

    The networks have one output, and the kernel of inputs X is X M Xᵀ. For small initial weights, M becomes
    proportional to I + b̂ b̂ᵀ with b = E[x y] while the loss is constant. On whitened inputs, M keeps this direction. On
    correlated inputs, it rotates to I + v vᵀ while the loss falls, where v is the direction of the target map. The
    rotation is measured from the time at which the loss has fallen by a fraction α^(2/3) of its initial value, where α
    is the initial scale. At this time, the misalignment of the kernel is of order α^(4/3), and the kernel has completed
    a fraction of about α^(2/3) of its rotation.
    """

    scales: list[Annotated[float, Interval(ge=_SMALLEST_SCALE, le=_LARGEST_SCALE)]] = parameter(
        [1e-4, 1e-5, 1e-6], "Initial scales α of both layers."
    )
    inputs: Annotated[int, Ge(2)] = parameter(4, "Number of inputs.")
    width: PositiveInt = parameter(20, "Number of hidden neurons.")
    target: PositiveFloat = parameter(1.0, "Norm of the target map.")
    condition: Annotated[float, Interval(ge=2, le=20)] = parameter(
        6.0, "Largest divided by smallest variance of the correlated inputs."
    )
    misalignment: Annotated[float, Interval(ge=1e-3, le=0.05)] = parameter(
        0.01, "Difference of the cosine from one at which the kernel counts as aligned."
    )
    times: Annotated[int, Ge(100)] = parameter(400, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the initial weights and of the tasks.")

    reference = Reference.of(
        "A. Atanasov, B. Bordelon, C. Pehlevan, Neural Networks as Kernel Learners: The Silent Alignment Effect "
        "(arXiv 2111.00034)",
        "The tangent kernel of a network with small initial weights aligns with the target while the loss is constant. "
        "On whitened inputs, the kernel then only grows while the loss falls; on correlated inputs, it rotates.",
    )
    along = "scaling_parameter"
    title = "Silent alignment of the tangent kernel"
    question = "Does the kernel of a network learn its features before the loss falls?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"K = X M X^\top, \quad M = \|a\|^2 I + W^\top W \to I + \hat b \hat b^\top, \quad "
        r"t_{align} = O(1), \quad t_{half} \sim \frac{1}{s} \ln \frac{1}{\alpha}"
    )
    minutes = 0.3
    symbols = {"scaling_parameter": "α"}
    theory = "silent alignment"
    axes = ("scaling_parameter", "time")
    task = "a linear map with whitened or correlated inputs"
    trains = "two-layer linear"
    flow = "gradient flow"
    names = {
        "kernel_alignment": ("alignment of the kernel", "1"),
        "alignment_time": ("time at which the kernel aligns", "1"),
        "half_time": ("time at which half of the target is learned", "1"),
        "kernel_turn": ("rotation of the kernel on correlated inputs", "1"),
    }
    labelled = {"scaling_parameter": "scales"}
    tolerance = curve_tolerance(
        kernel_alignment=(1e-3, _SMALL),
        loss=(0.02, _SMALL),
        alignment_time=(0.02, _GRID),
        half_time=(0.01, _GRID),
        kernel_turn=(0.03, _SMALL),
    )
    tiny = {"scales": [1e-4, 1e-5], "width": 6, "times": 200}

    def trained(self) -> Values:
        """Train the networks on whitened and on correlated inputs, and measure their kernels."""
        found = self._run(self._whitened, self._times)
        aligned = np.eye(self.inputs) + np.outer(self._direction, self._direction)
        alignment = _cosine(found["matrix"].to_numpy(), aligned)
        misaligned = np.log(np.maximum(1 - alignment, _ROUNDING))
        learned = found["map"].to_numpy() @ self._direction / self.target
        # The weakest input is learned at the rate s/condition.
        turned = self._run(
            self._correlated, self._times + np.linspace(0, _CONSTANTS * self.condition / self.target, self.times)
        )
        return {
            "kernel_alignment": alignment,
            "loss": found["loss"].to_numpy(),
            "alignment_time": (
                self.axes[:1],
                [self._last_passed(each, np.log(self.misalignment)) for each in misaligned],
            ),
            "half_time": (self.axes[:1], [self._last_passed(-each, -0.5) for each in learned]),
            "kernel_turn": (self.axes[:1], self._turns(turned["matrix"].to_numpy(), turned["loss"].to_numpy())),
        }

    def exact(self) -> Values:
        """Evaluate the plateau, the logistic growth on whitened inputs, and the rotation on correlated inputs."""
        scales, layers = np.array(self.scales), self._layers
        b = self.target * self._direction
        plateau = regimes.alignment_plateau(self._times, *layers, b)
        times = [regimes.silent_alignment(*layers, b, scale=each) for each in self.scales]
        start = scales[:, None] ** 2 * times[0].growing / 2
        growth = growth_factor(self._times, self.target, start, 0.0, 2.0)
        turn = regimes.kernel_turn(self._correlated.input_moment, self._correlated.cross_moment[0])
        return {
            "kernel_alignment": np.broadcast_to(1 - plateau.misalignment, (len(scales), self.times)),
            "loss": np.asarray(growth.residual) ** 2 / 2,
            "alignment_time": (self.axes[:1], np.full(len(scales), self._alignment_time())),
            "half_time": (self.axes[:1], [each.half_time for each in times]),
            "kernel_turn": (self.axes[:1], np.full(len(scales), turn.kernel_distance)),
        }

    def _alignment_time(self) -> float:
        """The last time at which the misalignment of the plateau is the given one; zero if it is never larger."""

        def excess(t: float) -> float:
            path = regimes.alignment_plateau(t, *self._layers, self.target * self._direction)
            return float(path.misalignment[0]) - self.misalignment

        grid = [t for t in self._times if excess(t) > 0]
        after = min((t for t in self._times if not grid or t > grid[-1]), default=0.0)
        root: Any = brentq(excess, grid[-1], after) if grid else 0.0
        return float(root)

    def _last_passed(self, values: np.ndarray, limit: float) -> float:
        """The last time at which a curve falls below a limit, by linear interpolation; zero if it is never above."""
        above = np.flatnonzero(values > limit)
        if not len(above):
            return 0.0
        place = min(int(above[-1]), len(values) - 2)
        share = (values[place] - limit) / (values[place] - values[place + 1])
        return float(self._times[place] + share * (self._times[place + 1] - self._times[place]))

    def _turns(self, matrices: np.ndarray, losses: np.ndarray) -> list[float]:
        """Kernel distances between the time at which the fraction α^(2/3) of the loss is used, and the end."""
        # The error √(1 − A) ~ α/√u of the alignment and the turn u are of the same order at the fraction u = α^(2/3).
        moment, found = self._correlated.input_moment, []
        for scale, path, loss in zip(self.scales, matrices, losses, strict=True):
            start = int(np.argmax(loss <= (1 - scale ** (2 / 3)) * loss[0]))
            root = np.linalg.cholesky(moment)
            first, last = (root.T @ path[place] @ root for place in (start, -1))
            found.append(float(1 - _cosine(first, last)))
        return found

    def _run(self, task: Task, times: np.ndarray) -> xr.Dataset:
        """Train all networks on a task and record their matrices M and maps."""
        first, second = self._layers
        blank = TwoLayer(self.inputs, self.width, 1, activation="linear")
        networks = [blank.with_neurons(each * np.column_stack([first, second])) for each in self.scales]
        solver = Solver(relative_tolerance=1e-9)
        return gradient_flow(
            task, networks, GradientFlow(duration=times[-1], save=times, solver=solver, statistics=_KERNEL)
        )

    @functools.cached_property
    def _layers(self) -> tuple[np.ndarray, np.ndarray]:
        """W, shape (width, inputs), and a, shape (width,), at scale one."""
        draw = np.random.default_rng(self.seed).normal(size=(self.width, self.inputs + 1)) / np.sqrt(self.width)
        return draw[:, :-1], draw[:, -1]

    @functools.cached_property
    def _direction(self) -> np.ndarray:
        draw = np.random.default_rng([self.seed, 1]).normal(size=self.inputs)
        return draw / np.linalg.norm(draw)

    @functools.cached_property
    def _whitened(self) -> Task:
        return whitened(self.target * self._direction[:, None], "a linear map with whitened inputs")

    @functools.cached_property
    def _correlated(self) -> Task:
        """A task with the same ‖E[x y]‖, whose target map has equal components along all principal axes."""
        moment = covariance(np.random.default_rng([self.seed, 2]), self.inputs, self.condition)
        target = np.linalg.eigh(moment)[1].sum(axis=1)
        target = self.target * target / np.linalg.norm(moment @ target)
        drawn = {"samples": 4 * self.inputs, "input_covariance": moment, "target_map": target, "exact_moments": True}
        return regression(**drawn)

    @functools.cached_property
    def _times(self) -> np.ndarray:
        """Times until the loss of the smallest network has fallen."""
        b, smallest = self.target * self._direction, min(self.scales)
        half = regimes.silent_alignment(*self._layers, b, scale=smallest).half_time
        return np.linspace(0.0, half + _AFTER / self.target, self.times)


def _cosine(matrices: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Cosine between matrices, shape (..., d, d), and another one."""
    sizes = np.linalg.norm(matrices, axis=(-2, -1)) * np.linalg.norm(other)
    return np.asarray(np.sum(matrices * other, axis=(-2, -1)) / sizes)


def _matrix(network: TwoLayer) -> Any:
    return network.first @ network.first.T + jnp.sum(network.second**2) * jnp.eye(network.first.shape[0])


_KERNEL = {
    "matrix": (_matrix, ("feature", "weight")),
    "map": (lambda network: network.first @ network.second[:, 0], ("feature",)),
}
