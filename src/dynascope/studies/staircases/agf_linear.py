"""Alternating Gradient Flows of two-layer linear networks: greedy low-rank learning, and the data that escape it."""

from __future__ import annotations

from typing import Literal

from dynascope.networks import network_for
from dynascope.results import Chart
from dynascope.studies import Reference, Setup, StaircaseStudy
from dynascope.studies.fields import choice, count, initial_scale, seed
from dynascope.tasks.known_modes import moments_regression
from dynascope.theory import papers


class AgfLinear(StaircaseStudy):
    """Levels, times and slopes of a two-layer linear network on data with exactly known moments.

    Generic moments are learned by the reduced-rank regressions of the data, rank by rank. Moments that commute decouple
    into modes, which are learned in the order of the singular values of Σyx. The rank-one map that is reached first is
    then a saddle of the rank-one problem that symmetry protects, not its best map: the example has a plateau at 1.485,
    and none at 0.86.
    """

    moments: Literal["whitened", "general", "commuting"] = choice(
        "general", '"whitened" for Σxx = I, "general", or "commuting" for modes of Σyx that are eigenvectors of Σxx.'
    )
    data: Literal["example", "random"] = choice("example", '"example" for three given inputs and outputs, or "random".')
    scale: float = initial_scale(1e-15)
    width: int = count(10, "Number of hidden neurons.")
    size: int = count(4, "Number of inputs and of outputs of the random data.")
    seed: int = seed("Seed of the initial weights, of the samples and of the random data.")

    reference = Reference.of(
        papers.GREEDY,
        "Alternating Gradient Flows of a two-layer linear network are greedy low-rank learning: reduced-rank "
        "regressions for generic data, and the singular modes of the correlations where the moments commute.",
    )
    title = "Greedy learning in linear networks"
    question = "Does a linear network that starts near zero learn the best map of each rank in turn?"
    figures = (
        *StaircaseStudy.figures,
        Chart(
            "mode_strength",
            title="What is known of each mode",
            caption="Strength of the learned map in each singular mode of the correlation of outputs and inputs, the "
            "strongest first. Where inputs are correlated, one jump of the loss can raise several.",
        ),
    )
    meaning = (
        "A linear network with {parameters.width} hidden neurons was trained from weights {parameters.scale} times as "
        "large as usual, on data with {parameters.moments} moments. Every jump of the loss adds one rank to the map "
        "that the network has learned. Theory expects the last jump at time {predicted.jump_time:last} and then a "
        "loss of {predicted.loss_after:last}; in training the jump came at {residual.observed_jump_time:last} and the "
        "loss became {residual.observed_loss_after:last}. By theory the plateaus on generic data are those of the "
        "best map of each rank, and data whose modes do not mix (commuting moments) are learned mode by mode, in an "
        "order of their own; both in the limit of vanishing weights."
    )
    minutes = 0.2
    tiny = {"moments": "commuting", "width": 6}

    def setup(self) -> Setup:
        """Greedy low-rank learning, from the actual initial weights."""
        task = moments_regression(self.moments, self.size if self.data == "random" else None, self.seed)
        return Setup(task, network_for("linear", task, width=self.width, seed=self.seed))
