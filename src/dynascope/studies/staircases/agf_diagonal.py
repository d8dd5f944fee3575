"""Alternating Gradient Flows of diagonal networks: one path of saddles for every depth, each with its own clock."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar, Literal

from dynascope.record.clock import other_scale
from dynascope.studies.study import Reference, Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["AgfDiagonal"]

# Three samples of four inputs on which an input is dropped again while another is learned.
_INPUTS = ((1.0, -0.75, -0.15, -0.43), (0.85, 0.94, -0.97, -0.96), (-0.99, 0.96, 0.7, -0.15))
_TARGETS = (-0.39, -1.15, 1.98)


@dataclasses.dataclass(frozen=True)
class AgfDiagonal(Study):
    """Levels, activation times and slopes of diagonal networks of depth two and more.

    `diagonal-staircase` predicts when the loss of the network u ⊙ v has fallen by half. Here the depth is free, and the
    times are those of Alternating Gradient Flows: when a neuron, at the residual that it sees while dormant, reaches
    norm one. At a finite scale they are those of the limit times one number, the same for all jumps.

    Attributes:
        depth: D; two for β = u ⊙ v from u = scale, v = 0, and more for β = u^D − v^D from u = v = scale.
        data: "example" for three samples of four inputs of which one is dropped again, or "gaussian".
        scale: Initial value of the weights; the slopes are measured between it and a smaller one.
        samples: Number of samples of the Gaussian data; fewer than inputs makes the offsets of the times larger.
        inputs: Number of inputs of the Gaussian data.
        seed: Seed of the Gaussian data.
    """

    depth: int = 2
    data: Literal["example", "gaussian"] = "example"
    scale: float = 1e-12
    samples: int = 40
    inputs: int = 5
    seed: int = 0

    name: ClassVar[str] = "agf-diagonal"
    reference: ClassVar[Reference] = Reference(
        paper="D. Kunin, G. L. Marchetti, F. Chen, D. Karkada, J. B. Simon, M. R. DeWeese, S. Ganguli, N. Miolane, "
        "Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks",
        arxiv="2506.06489",
        claim="Alternating Gradient Flows give the saddles of diagonal linear networks and the times at which neurons "
        "activate; the depth of the network changes the clock and not the path.",
    )
    minutes: ClassVar[float] = 0.1
    tiny: ClassVar = {"depth": 2, "scale": 1e-14}

    @functools.cached_property
    def _task(self):
        import numpy as np

        from dynascope.arguments import require, require_seed
        from dynascope.tasks import Task, regression

        require(
            self.data in ("example", "gaussian"),
            f"data is {self.data!r}",
            argument="data",
            value=self.data,
            remedy="choose example or gaussian",
        )
        if self.data == "example":
            targets = np.array(_TARGETS)[:, None]
            return Task(np.array(_INPUTS), targets, name="example", description=("Three samples of four inputs.",))
        require_seed(self.seed)
        draw = np.random.default_rng(self.seed)
        # Well separated strengths, so that the jumps can be told apart at the default scale.
        strengths = draw.choice([-1.0, 1.0], self.inputs) * 2.0 ** -np.arange(self.inputs)
        return regression(
            samples=self.samples,
            input_covariance=np.ones(self.inputs),
            target_map=draw.permutation(strengths)[:, None],
            seed=self.seed,
        )

    @functools.cached_property
    def _staircase(self):
        from dynascope.theory.staircase.activation_times import activation_staircase

        task = self._task
        return activation_staircase(
            task.inputs, task.targets[:, 0], scale=self.scale, depth=self.depth, feature_names=task.feature_names
        )

    def _observe(self, scale: float) -> xr.Dataset:
        from dynascope.flows import diagonal_flow
        from dynascope.flows.exact.deep_diagonal import deep_diagonal_flow
        from dynascope.record.clock import time_unit

        last = float(self._staircase.accelerated_times[-1]) * time_unit(scale, degree=self.depth)
        if self.depth == 2:
            run = diagonal_flow(self._task, scale=scale, duration=1.5 * last)
        else:
            run = deep_diagonal_flow(self._task, depth=self.depth, scale=scale, duration=1.5 * last)
        return run.assign_attrs(task=self._task.name)

    def observe(self) -> xr.Dataset:
        """Train at the given scale."""
        return self._observe(self.scale)

    def predict(self) -> xr.Dataset:
        """The path of saddles with the times at which neurons activate."""
        import numpy as np

        from dynascope.record import staircase_record

        staircase = self._staircase
        if self.depth == 2:
            offset = -4 / float(np.log(self.scale))
            reason = "the sizes that coefficients reach shift the times by an offset: 4/log(1/scale)"
        else:
            offset = 2 * self.depth * (self.depth - 2) * self.scale ** (self.depth - 2)
            reason = "jumps take a time of order one: two units of the clock, at least 0.2 %"
        return staircase_record(
            staircase,
            self._task,
            scale=self.scale,
            network="diagonal" if self.depth == 2 else f"diagonal of depth {self.depth}",
            jump_time_tolerance=(min(max(offset, 0.002), 0.3), reason),
            slope_tolerance=(0.01, "where no plateau is slow, the offset is nearly the same at both scales"),
        )

    @functools.cached_property
    def _at_other_scale(self) -> xr.Dataset:
        """Trained once, however often it is compared."""
        # Beyond depth two times grow as a power of the scale, and half of it is another scale by far.
        return self._observe(other_scale(self.scale, degree=self.depth, divisor=2.0))

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Levels and times at one scale, slopes between two."""
        from dynascope.comparison import compare

        return compare(observed, predicted, at_other_scale=self._at_other_scale, attributes=self.attributes())
