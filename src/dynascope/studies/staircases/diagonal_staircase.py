"""Diagonal linear networks select features one saddle after the other."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar

from dynascope.record.clock import other_scale
from dynascope.studies.study import Reference, Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["DiagonalStaircase"]


@dataclasses.dataclass(frozen=True)
class DiagonalStaircase(Study):
    """Levels, times and slopes of the loss staircase of a diagonal linear network on Gaussian data.

    Attributes:
        samples: Number of samples; fewer than inputs leaves many interpolators to choose from.
        inputs: Number of inputs.
        relevant: How many inputs the target depends on.
        correlation: Correlation of neighbouring inputs, ρ^|i−j|.
        noise: Standard deviation of the noise on the targets.
        scale: Initial value of u; the slopes are measured between it and 1e-4 of it.
        seed: Seed of the data.
    """

    samples: int = 100
    inputs: int = 10
    relevant: int = 4
    correlation: float = 0.3
    noise: float = 0.1
    scale: float = 1e-8
    seed: int = 0

    name: ClassVar[str] = "diagonal-staircase"
    reference: ClassVar[Reference] = Reference(
        paper="S. Pesme, N. Flammarion, Saddle-to-saddle dynamics in diagonal linear networks",
        arxiv="2304.00488",
        claim="From vanishing initialisation a diagonal linear network jumps between the constrained least-squares "
        "solutions of an explicit path, at times that grow as log(1/scale) with known slopes.",
    )
    minutes: ClassVar[float] = 0.2
    tiny: ClassVar = {"samples": 20, "inputs": 3, "relevant": 2, "correlation": 0.0, "noise": 0.0, "scale": 1e-12}

    @functools.cached_property
    def _task(self):
        import numpy as np

        from dynascope.arguments import require, require_seed
        from dynascope.tasks import regression

        require(
            0 < self.relevant <= self.inputs,
            f"relevant is {self.relevant} of {self.inputs} inputs",
            argument="relevant",
            value=self.relevant,
            remedy="choose a number from 1 to inputs",
        )
        distance = np.abs(np.subtract.outer(np.arange(self.inputs), np.arange(self.inputs)))
        covariance = np.where(distance == 0, 1.0, self.correlation**distance)
        require_seed(self.seed)
        draw = np.random.default_rng(self.seed)
        target_map = np.zeros((self.inputs, 1))
        strengths = draw.choice([-1.0, 1.0], self.relevant) * 2.0 ** -np.arange(self.relevant)
        target_map[draw.permutation(self.inputs)[: self.relevant], 0] = strengths
        return regression(
            samples=self.samples,
            input_covariance=covariance,
            target_map=target_map,
            noise=self.noise,
            seed=self.seed,
        )

    def _observe(self, scale: float) -> xr.Dataset:
        from dynascope.observation import observe

        return observe(self._task, "diagonal", scale=scale)

    def observe(self) -> xr.Dataset:
        """Train at the given scale."""
        return self._observe(self.scale)

    def predict(self) -> xr.Dataset:
        """The path of successive saddles."""
        from dynascope.prediction import predict

        return predict(self._task, "diagonal", scale=self.scale)

    @functools.cached_property
    def _at_other_scale(self) -> xr.Dataset:
        """Trained once, however often it is compared."""
        return self._observe(other_scale(self.scale))

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Levels and times at one scale, slopes between two."""
        from dynascope.comparison import compare

        return compare(observed, predicted, at_other_scale=self._at_other_scale, attributes=self.attributes())
