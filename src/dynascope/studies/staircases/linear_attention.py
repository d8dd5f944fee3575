"""Linear attention learns in-context regression one principal component at a time."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any, Literal

import jax
import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.flows import GradientFlow, gradient_flow
from dynascope.networks import LinearAttention, MergedAttention
from dynascope.results import Chart, Comparison, Staircase, other_scale
from dynascope.results.numbers import rounded
from dynascope.studies import Reference, StaircaseStudy, parameter
from dynascope.studies.staircase_study import jump_times
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.random_maps import covariance
from dynascope.theory import papers
from dynascope.theory.attention import linear_attention_staircase, merged_attention_staircase
from dynascope.validation import require_at_least
from dynascope.validation.bounded import PositiveInt, Seed

_KINDS = {
    "rank-one": (LinearAttention, linear_attention_staircase),
    "merged": (MergedAttention, merged_attention_staircase),
}


class LinearAttentionStaircase(StaircaseStudy):
    """Tests the predicted loss staircase of linear attention trained on in-context regression.

    The study compares predicted and observed plateau losses, jump times and slopes. The slopes measure how fast the
    jump times grow as the initial scale decreases.
    """

    inputs: PositiveInt = parameter(3, "Dimension d of the inputs.")
    condition: Annotated[float, Ge(1)] = parameter(
        3.0, "Ratio of the largest to the smallest input variance; the variances are spaced geometrically."
    )
    context_length: float = parameter(20.0, "Number of labelled examples in a prompt; infinity is allowed.")
    heads: PositiveInt = parameter(8, "Number of attention heads; each rank-one head learns one component.")
    parametrisation: Literal["rank-one", "merged"] = parameter(
        "rank-one",
        '"rank-one" for separate rank-one keys and queries, which learn one component at a time; "merged" for a single '
        "key-query matrix, which learns all components at once.",
    )
    scale: Annotated[float, Interval(gt=0, le=0.03)] = parameter(
        1e-3,
        "Factor that multiplies the initial weights. The slopes are measured between this scale and a tenth of this "
        "scale.",
    )
    seed: Seed = parameter(0, "Seed of the initial weights and of the orientation of the covariance.")

    name = "linear-attention"
    reference = Reference.of(
        papers.ATTENTION,
        "From small initialisation, linear attention with rank-one keys and queries learns in-context regression one "
        "principal component at a time. With merged keys and queries, it learns all components at once, in a single "
        "drop in the loss.",
    )
    title = "In-context regression with linear attention"
    question = "In which order does linear attention learn the principal components of in-context regression?"
    equation = (
        r"\dot v = k^\top M q, \quad \dot k = v M q, \quad \dot q = v M^\top k, \quad M = \Sigma^2 \text{ on "
        r"the modes not yet learned}"
    )
    minutes = 0.2
    tiny = {"inputs": 2, "heads": 4, "scale": 3e-3}

    def check(self) -> None:
        """Check that a prompt has at least one example; it may have infinitely many."""
        require_at_least("context_length", self.context_length, 1)

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the loss, and the learned fraction along each principal direction."""
        return [
            *super().figures(result),
            Chart(
                "learned_fraction",
                title="Learned fraction along each principal direction",
                caption="Fraction of the in-context regression coefficient that the network recovers from its prompt, "
                "along each principal direction of the inputs (largest variance first). With infinitely many examples, "
                "the optimum is one; with finitely many, it is smaller.",
            ),
        ]

    def meaning(self, result: Comparison) -> str:
        """Summarise how theory predicts the jumps, and the times of the first and last jumps."""
        order = (
            "From the growth of each head while all heads are small, theory predicts which head learns next, which "
            "principal direction of the inputs this head learns, and when."
            if self.parametrisation == "rank-one"
            else "Theory predicts that all principal directions of the inputs are learned at once, in a single drop in "
            "the loss."
        )
        examples = rounded(self.context_length) if math.isfinite(self.context_length) else "infinitely many"
        return (
            f"A layer of linear attention with {self.heads} heads and {self.parametrisation} keys and queries was "
            f"trained from initial weights scaled by {rounded(self.scale)}. Its task is to predict the label of a "
            f"query from {examples} labelled examples in its prompt. {order} {jump_times(result)} The attention has no "
            "softmax, and the loss is the exact expectation over prompts."
        )

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train on the exact population loss."""
        # After its jump each component relaxes at least at the rate of its squared variance.
        learned = 1.2 * self._staircase(scale).times.max()
        duration = learned + 20.0 * self.condition**2
        save = np.append(np.linspace(0.0, learned, 5000, endpoint=False), np.linspace(learned, duration, 200))
        # The explicit solver compiles faster, but its steps cannot grow on a long plateau.
        solver = "explicit" if duration < 3e5 else "stiff"
        read = jax.tree_util.Partial(_learned_fraction, *np.linalg.eigh(self._task.covariance))
        statistics = {"learned_fraction": (read, ("mode",))}
        return gradient_flow(
            self._task,
            self._network,
            GradientFlow(duration=duration, solver=solver, save=save, statistics=statistics),
            scale=scale,
        )

    def second_scale(self) -> float:
        """A tenth of the scale, whether times grow as log(1/scale) or as a power of the scale."""
        return other_scale(self.scale, degree=self._staircase(self.scale).degree, factor=0.1, divisor=10.0)

    def predicted(self) -> xr.Dataset:
        """Predict the staircase by integrating each small head until its blow-up time."""
        network = f"linear attention, {self.parametrisation}"
        times = 0.01 + 10 * self.scale, "the neglected part of the times decreases with the scale"
        slopes = 0.02, "the neglected part of the times changes little between the two scales"
        return self.predicted_record(self._staircase(self.scale), network, jump_time=times, slope=slopes)

    def _staircase(self, scale: float) -> Staircase:
        _, theory = _KINDS[self.parametrisation]
        task = self._task
        return theory(task.covariance, task.context_length, scale=scale, neurons=self._network.neurons)

    @functools.cached_property
    def _task(self) -> InContextRegression:
        drawn = covariance(np.random.default_rng(self.seed), self.inputs, self.condition)
        return InContextRegression(drawn, self.context_length)

    @functools.cached_property
    def _network(self) -> LinearAttention | MergedAttention:
        network, _ = _KINDS[self.parametrisation]
        return network(self.inputs, self.heads, seed=self.seed)


def _learned_fraction(variances: Any, axes: Any, network: LinearAttention | MergedAttention) -> Any:
    """Diagonal of Σ P in the principal directions, largest variance first; one if the network uses the full prompt."""
    return (variances * ((axes.T @ network.matrix) * axes.T).sum(axis=1))[::-1]
