"""Linear attention learns in-context regression one principal component after the other."""

from __future__ import annotations

import functools
from typing import Any, Literal

import jax
import numpy as np
import xarray as xr

from dynascope.arguments import require_context
from dynascope.flows import gradient_flow
from dynascope.networks import LinearAttention, MergedAttention
from dynascope.results import Chart, Staircase, other_scale
from dynascope.studies import Reference, StaircaseStudy
from dynascope.studies.fields import checked, choice, count, initial_scale, number, seed
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.random_maps import covariance
from dynascope.theory import papers
from dynascope.theory.attention import linear_attention_staircase, merged_attention_staircase

_KINDS = {
    "rank-one": (LinearAttention, linear_attention_staircase),
    "merged": (MergedAttention, merged_attention_staircase),
}


class LinearAttentionStaircase(StaircaseStudy):
    """Levels, times and slopes of the loss staircase of linear attention on in-context regression, in expectation."""

    inputs: int = count(3, "Dimension d of the inputs.")
    condition: float = number(
        3.0, "Ratio of the largest to the smallest input variance; those between are spaced geometrically.", least=1.0
    )
    context_length: float = checked(
        20.0, "Labelled examples in a prompt, which may be infinitely many.", require_context
    )
    heads: int = count(8, "Number of attention heads; each rank-one head learns one component.")
    parametrisation: Literal["rank-one", "merged"] = choice(
        "rank-one",
        '"rank-one" for separate rank-one keys and queries, which learn one component after the other; "merged" for '
        "one matrix in their place, which learns all at once.",
    )
    scale: float = initial_scale(1e-3, beside="a tenth of it", most=0.03)
    seed: int = seed("Seed of the initial weights and of the orientation of the covariance.")

    name = "linear-attention"
    reference = Reference.of(
        papers.ATTENTION,
        "From small initialisation linear attention with rank-one keys and queries learns in-context regression one "
        "principal component after the other, and with merged keys and queries all components in one drop.",
    )
    question = "In which order does attention learn to do regression on the examples in a prompt?"
    figures = (
        *StaircaseStudy.figures,
        Chart(
            "learned_fraction",
            title="What is read from the prompt along each direction",
            caption="Along each principal direction of the inputs, the one of largest variance first: the share of the "
            "regression coefficient that the network reads from its prompt. With finitely many examples the best "
            "share is below one. With rank-one heads, each rise is the work of one head.",
        ),
    )
    meaning = (
        "A layer of linear attention with {parameters.heads} heads ({parameters.parametrisation} keys and queries) was "
        "trained to answer a query from the {parameters.context_length} labelled examples in its prompt, from weights "
        "of {parameters.scale}. Theory follows each head while it is small and tells which one grows large first, and "
        "when: its first jump is at time {predicted.jump_time:first}, its last at {predicted.jump_time:last}; training "
        "had them at {residual.observed_jump_time:first} and {residual.observed_jump_time:last}. By theory, with "
        "separate rank-one keys and queries the directions of the inputs are learned one at a time, with merged ones "
        "all together. The attention has no softmax, and the loss is the exact mean over all prompts."
    )
    minutes = 0.2
    tiny = {"inputs": 2, "heads": 4, "scale": 3e-3}

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train on the exact population loss."""
        # After its jump each component relaxes at least at the rate of its squared variance.
        learned = 1.2 * self._staircase(scale).times.max()
        duration = learned + 20.0 * self.condition**2
        save = np.append(np.linspace(0.0, learned, 5000, endpoint=False), np.linspace(learned, duration, 200))
        # The explicit solver takes less to compile, but its steps cannot grow along a long plateau.
        solver = "explicit" if duration < 3e5 else "stiff"
        read = jax.tree_util.Partial(_learned_fraction, *np.linalg.eigh(self._task.covariance))
        statistics = {"learned_fraction": (read, ("mode",))}
        return gradient_flow(
            self._network, self._task, scale=scale, duration=duration, save=save, solver=solver, statistics=statistics
        )

    def second_scale(self) -> float:
        """A tenth of the scale, both where times grow as log(1/scale) and where as a power of it."""
        return other_scale(self.scale, degree=self._staircase(self.scale).degree, factor=0.1, divisor=10.0)

    def predict(self) -> xr.Dataset:
        """Follow each small head to its blow-up."""
        network = f"linear attention, {self.parametrisation}"
        times = 0.01 + 10 * self.scale, "what the times leave out falls with the scale"
        slopes = 0.02, "what the times leave out changes little between the two scales"
        return self.stated(self._staircase(self.scale), network, jump_time=times, slope=slopes)

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
    """Diagonal of Σ P in the principal directions, largest variance first: one where a prompt is read in full."""
    return (variances * ((axes.T @ network.matrix) * axes.T).sum(axis=1))[::-1]
