"""Alternating Gradient Flows of two-layer linear networks: greedy low-rank learning, and the data that escape it."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar, Literal

from dynascope.record.clock import other_scale
from dynascope.studies.study import Reference, Study

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

__all__ = ["AgfLinear"]

_CROSS = ((2.0, 0.3, -0.1), (0.2, 1.2, 0.25), (0.1, -0.3, 0.7))
_POWER = ((1.0, 0.3, 0.1), (0.3, 1.5, -0.2), (0.1, -0.2, 0.6))
# The strengths σ of independent modes are in another order than σ/√(variance), by which rank-one maps are chosen.
_STRENGTHS, _VARIANCES = (2.0, 1.5, 0.6), (4.0, 1.0, 0.5)
# Power of the targets that no input explains.
_UNEXPLAINED = 0.1


@dataclasses.dataclass(frozen=True)
class AgfLinear(Study):
    """Levels, times and slopes of a two-layer linear network on data with exactly known moments.

    Generic moments are learned by the reduced-rank regressions of the data, rank by rank. Moments that commute decouple
    into modes, which are learned in the order of the singular values of Σyx. The rank-one map that is reached first is
    then a saddle of the rank-one problem that symmetry protects, not its best map: the example has a plateau at 1.485,
    and none at 0.86.

    Attributes:
        moments: "whitened" for Σxx = I, "general", or "commuting" for modes of Σyx that are eigenvectors of Σxx.
        data: "example" for three given inputs and outputs, or "random".
        scale: Factor on the initial weights; the slopes are measured between it and 1e-4 of it.
        width: Number of hidden neurons.
        size: Number of inputs and of outputs of the random data.
        seed: Seed of the initial weights, of the samples and of the random data.
    """

    moments: Literal["whitened", "general", "commuting"] = "general"
    data: Literal["example", "random"] = "example"
    scale: float = 1e-15
    width: int = 10
    size: int = 4
    seed: int = 0

    name: ClassVar[str] = "agf-linear"
    reference: ClassVar[Reference] = Reference(
        paper="Z. Li, Y. Luo, K. Lyu, Towards resolving the implicit bias of gradient descent for matrix factorization",
        arxiv="2012.09839",
        claim="Alternating Gradient Flows of a two-layer linear network are greedy low-rank learning: reduced-rank "
        "regressions for generic data, and the singular modes of the correlations where the moments commute.",
    )
    minutes: ClassVar[float] = 0.3
    tiny: ClassVar = {"moments": "commuting", "width": 6}

    @functools.cached_property
    def _task(self):
        import numpy as np

        from dynascope.arguments import require, require_positive, require_seed
        from dynascope.tasks import regression

        for field, known in (("moments", ("whitened", "general", "commuting")), ("data", ("example", "random"))):
            require(
                getattr(self, field) in known,
                f"{field} is {getattr(self, field)!r}",
                argument=field,
                value=getattr(self, field),
                remedy=f"choose {', '.join(known[:-1])} or {known[-1]}",
            )
        require_positive(size=self.size)
        require_seed(self.seed)
        cross, power = self._random_moments() if self.data == "random" else self._example_moments()
        independent = self.data == "example" and self.moments == "commuting"
        return regression(
            samples=4 * len(power),
            input_covariance=power,
            target_map=np.linalg.solve(power, cross.T),
            noise=0.0 if independent else float(np.sqrt(_UNEXPLAINED / len(cross))),
            seed=self.seed,
            exact_moments=True,
        )

    def _example_moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Σyx and Σxx."""
        import numpy as np

        if self.moments == "commuting":
            return np.diag(_STRENGTHS), np.diag(_VARIANCES)
        return np.array(_CROSS), np.array(_POWER) if self.moments == "general" else np.eye(3)

    def _random_moments(self) -> tuple[np.ndarray, np.ndarray]:
        import numpy as np

        draw = np.random.default_rng(self.seed)
        left, right, axes = (np.linalg.qr(draw.normal(size=(self.size, self.size)))[0] for _ in range(3))
        # Well separated strengths, so that the jumps can be told apart at the default scale.
        cross = (left * 2.0 ** (1 - np.arange(self.size))) @ right.T
        variances = draw.permutation(np.geomspace(0.5, 2.0, self.size))
        if self.moments == "whitened":
            return cross, np.eye(self.size)
        axes = right if self.moments == "commuting" else axes
        power = (axes * variances) @ axes.T
        return cross, (power + power.T) / 2

    @functools.cached_property
    def _network(self):
        from dynascope.networks import network_for

        return network_for("linear", self._task, width=self.width, seed=self.seed)

    def _observe(self, scale: float) -> xr.Dataset:
        from dynascope.observation import observe

        return observe(self._task, self._network, scale=scale)

    def observe(self) -> xr.Dataset:
        """Train at the given scale."""
        return self._observe(self.scale)

    def predict(self) -> xr.Dataset:
        """Greedy low-rank learning from the actual initial weights."""
        from dynascope.prediction import predict

        return predict(self._task, self._network, scale=self.scale)

    @functools.cached_property
    def _at_other_scale(self) -> xr.Dataset:
        """Trained once, however often it is compared."""
        return self._observe(other_scale(self.scale))

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Levels and times at one scale, slopes between two."""
        from dynascope.comparison import compare

        return compare(observed, predicted, at_other_scale=self._at_other_scale, attributes=self.attributes())
