"""Linear attention learns in-context regression one principal component after the other."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar, Literal

from dynascope.record.clock import other_scale
from dynascope.studies.study import Reference, Study

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["LinearAttentionStaircase"]


@dataclasses.dataclass(frozen=True)
class LinearAttentionStaircase(Study):
    """Levels, times and slopes of the loss staircase of linear attention on in-context regression, in expectation.

    Attributes:
        inputs: Dimension d of the inputs.
        condition: Ratio of the largest to the smallest input variance; those between are spaced geometrically.
        context_length: Labelled examples in a prompt, which may be infinitely many.
        heads: Number of attention heads; each rank-one head learns one component.
        parametrisation: "rank-one" for separate rank-one keys and queries, which learn one component after the other;
            "merged" for one matrix in their place, which learns all at once.
        scale: Factor on the initial weights; the slopes are measured between it and a tenth of it.
        seed: Seed of the initial weights and of the orientation of the covariance.
    """

    inputs: int = 3
    condition: float = 3.0
    context_length: float = 20.0
    heads: int = 8
    parametrisation: Literal["rank-one", "merged"] = "rank-one"
    scale: float = 1e-3
    seed: int = 0

    name: ClassVar[str] = "linear-attention"
    reference: ClassVar[Reference] = Reference(
        paper="Y. Zhang, A. K. Singh, P. E. Latham, A. Saxe, "
        "Training dynamics of in-context learning in linear attention",
        arxiv="2501.16265",
        claim="From small initialisation linear attention with rank-one keys and queries learns in-context regression "
        "one principal component after the other, and with merged keys and queries all components in one drop.",
    )
    minutes: ClassVar[float] = 0.3
    tiny: ClassVar = {"inputs": 2, "heads": 4, "scale": 3e-3}

    @functools.cached_property
    def _task(self):
        import numpy as np

        from dynascope.arguments import require, require_positive, require_seed
        from dynascope.tasks.in_context import InContextRegression

        require_positive(inputs=self.inputs)
        require(
            1 <= self.condition < np.inf,
            f"condition is {self.condition}",
            argument="condition",
            value=self.condition,
            remedy="choose a finite ratio of at least one",
        )
        require_seed(self.seed)
        turn, _ = np.linalg.qr(np.random.default_rng(self.seed).normal(size=(self.inputs, self.inputs)))
        variances = np.geomspace(1.0, 1.0 / self.condition, self.inputs)
        return InContextRegression((turn * variances) @ turn.T, self.context_length)

    @functools.cached_property
    def _network(self):
        from dynascope.arguments import require
        from dynascope.networks.linear_attention import LinearAttention, MergedAttention

        kinds = {"rank-one": LinearAttention, "merged": MergedAttention}
        require(
            self.parametrisation in kinds,
            f"parametrisation is {self.parametrisation!r}",
            argument="parametrisation",
            value=self.parametrisation,
            remedy=f"choose {' or '.join(kinds)}",
        )
        return kinds[self.parametrisation](self.inputs, self.heads, seed=self.seed)

    def _staircase(self, scale: float):
        from dynascope.theory.attention.linear_attention import linear_attention_staircase
        from dynascope.theory.attention.merged_attention import merged_attention_staircase

        theory = linear_attention_staircase if self.parametrisation == "rank-one" else merged_attention_staircase
        task = self._task
        return theory(task.covariance, task.context_length, scale=scale, neurons=self._network.neurons)

    def _observe(self, scale: float) -> xr.Dataset:
        import numpy as np

        from dynascope.flows import gradient_flow

        # After its jump each component relaxes at least at the rate of its squared variance.
        learned = 1.2 * self._staircase(scale).times.max()
        duration = learned + 20.0 * self.condition**2
        save = np.append(np.linspace(0.0, learned, 5000, endpoint=False), np.linspace(learned, duration, 200))
        # The explicit solver is the more accurate one, but its steps cannot grow along a long plateau.
        solver = "explicit" if duration < 3e5 else "stabilised"
        return gradient_flow(self._network, self._task, scale=scale, duration=duration, save=save, solver=solver)

    def observe(self) -> xr.Dataset:
        """Train on the exact population loss."""
        return self._observe(self.scale)

    def predict(self) -> xr.Dataset:
        """Follow each small head to its blow-up."""
        from dynascope.record import staircase_record

        return staircase_record(
            self._staircase(self.scale),
            self._task,
            scale=self.scale,
            network=f"linear attention, {self.parametrisation}",
            jump_time_tolerance=(0.01 + 10 * self.scale, "what the times leave out falls with the scale"),
            slope_tolerance=(0.02, "what the times leave out changes little between the two scales"),
        )

    @functools.cached_property
    def _at_other_scale(self) -> xr.Dataset:
        """Trained once, however often it is compared."""
        return self._observe(
            other_scale(self.scale, degree=self._staircase(self.scale).degree, factor=0.1, divisor=10.0)
        )

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Levels and times at one scale, slopes between two."""
        from dynascope.comparison import compare

        return compare(observed, predicted, at_other_scale=self._at_other_scale, attributes=self.attributes())
