"""Two-layer linear networks learn the data rank by rank."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar, Literal

from dynascope.record.clock import other_scale
from dynascope.studies.study import Reference, Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["LinearStaircase"]


@dataclasses.dataclass(frozen=True)
class LinearStaircase(Study):
    """Levels, times and slopes of the loss staircase of a two-layer linear network.

    Attributes:
        data: "digits" for the 1797 handwritten digits, or "gaussian" for regression on random correlated inputs.
        scale: Factor on the initial weights; the slopes are measured between it and 1e-4 of it.
        width: Number of hidden neurons.
        samples: Number of samples of the Gaussian data.
        inputs: Number of inputs of the Gaussian data.
        outputs: Number of outputs of the Gaussian data.
        condition: Ratio of the largest to the smallest input variance of the Gaussian data.
        seed: Seed of the initial weights and of the Gaussian data.
    """

    data: Literal["digits", "gaussian"] = "digits"
    scale: float = 1e-12
    width: int = 50
    samples: int = 500
    inputs: int = 8
    outputs: int = 3
    condition: float = 2.0
    seed: int = 0

    name: ClassVar[str] = "linear-staircase"
    reference: ClassVar[Reference] = Reference(
        paper="Z. Li, Y. Luo, K. Lyu, Towards resolving the implicit bias of gradient descent for matrix factorization",
        arxiv="2012.09839",
        claim="From small initialisation a two-layer linear network visits the reduced-rank regressions of the data in "
        "order of rank, at times that grow as log(1/scale) with slopes set by the residual singular values.",
    )
    minutes: ClassVar[float] = 0.3
    tiny: ClassVar = {"data": "gaussian", "samples": 60, "inputs": 4, "outputs": 2, "width": 6, "scale": 1e-20}

    @functools.cached_property
    def _task(self):
        import numpy as np

        from dynascope.arguments import require, require_seed
        from dynascope.tasks import digits, regression

        if self.data == "digits":
            return digits()
        require(
            1 <= self.condition < np.inf,
            f"condition is {self.condition}",
            argument="condition",
            value=self.condition,
            remedy="choose a finite ratio of at least one",
        )
        require_seed(self.seed)
        draw = np.random.default_rng(self.seed)
        turn, _ = np.linalg.qr(draw.normal(size=(self.inputs, self.inputs)))
        variances = np.geomspace(1.0, 1.0 / self.condition, self.inputs)
        # Well separated strengths, so that the jumps can be told apart at the default scale.
        strengths = 2.0 ** -np.arange(min(self.inputs, self.outputs))
        rows, _ = np.linalg.qr(draw.normal(size=(self.inputs, len(strengths))))
        columns, _ = np.linalg.qr(draw.normal(size=(self.outputs, len(strengths))))
        return regression(
            samples=self.samples,
            input_covariance=(turn * variances) @ turn.T,
            target_map=(rows * strengths) @ columns.T,
            seed=self.seed,
        )

    def _observe(self, scale: float) -> xr.Dataset:
        from dynascope.networks import network_for
        from dynascope.observation import observe

        return observe(self._task, network_for("linear", self._task, width=self.width, seed=self.seed), scale=scale)

    def observe(self) -> xr.Dataset:
        """Train at the given scale."""
        return self._observe(self.scale)

    def predict(self) -> xr.Dataset:
        """Greedy low-rank learning from the actual initial weights."""
        from dynascope.networks import network_for
        from dynascope.prediction import predict

        network = network_for("linear", self._task, width=self.width, seed=self.seed)
        return predict(self._task, network, scale=self.scale)

    @functools.cached_property
    def _at_other_scale(self) -> xr.Dataset:
        """Trained once, however often it is compared."""
        return self._observe(other_scale(self.scale))

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Levels and times at one scale, slopes between two."""
        from dynascope.comparison import compare

        return compare(observed, predicted, at_other_scale=self._at_other_scale, attributes=self.attributes())
