"""In two-layer linear networks, Alternating Gradient Flows reduce to greedy low-rank learning or decoupled modes."""

from __future__ import annotations

from typing import Literal

from dynascope.networks import network_for
from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import Reference, Setup, StaircaseStudy, parameter
from dynascope.studies.staircase_study import jump_times
from dynascope.tasks.known_modes import moments_regression
from dynascope.theory import papers
from dynascope.validation.bounded import OpenFraction, PositiveInt, Seed


class AgfLinear(StaircaseStudy):
    """Tests the predicted loss staircase of a two-layer linear network on data with exactly known moments.

    The study compares predicted and observed plateau losses, jump times and slopes. The slopes measure how fast the
    jump times grow as the initial scale decreases. On data with generic moments, the plateaus are the reduced-rank
    regressions of the data, in order of rank. The moments commute if the right singular vectors of Σyx are eigenvectors
    of Σxx. The modes then decouple, and the network learns them in order of decreasing singular value of Σyx. In this
    case, the first plateau can be a rank-one saddle protected by symmetry instead of the best rank-one map. In the
    commuting example, the loss on the first plateau is 1.485, whereas the best rank-one map has a loss of 0.86.
    """

    moments: Literal["whitened", "general", "commuting"] = parameter(
        "general",
        'Moments of the data: "whitened" (Σxx = I), "general", or "commuting" (the right singular vectors of Σyx are '
        "eigenvectors of Σxx).",
    )
    data: Literal["example", "random"] = parameter(
        "example", '"example" for fixed data with three inputs and three outputs, or "random".'
    )
    scale: OpenFraction = parameter(
        1e-15,
        "Factor that multiplies the initial weights. The slopes are measured between this scale and 1e-4 times this "
        "scale.",
    )
    width: PositiveInt = parameter(10, "Number of hidden neurons.")
    size: PositiveInt = parameter(4, "Number of inputs of the random data, which equals the number of outputs.")
    seed: Seed = parameter(0, "Seed of the initial weights, of the samples and of the random data.")

    reference = Reference.of(
        papers.GREEDY,
        "Alternating Gradient Flows of a two-layer linear network reduce to greedy low-rank learning. For generic "
        "data, the plateaus are the reduced-rank regressions. If the moments commute, the network learns one "
        "singular mode of the input–output correlation at each jump.",
    )
    title = "Greedy low-rank learning in linear networks"
    question = "Does a linear network with small initial weights learn the best map of each rank in turn?"
    equation = (
        r"\mathcal{L}_k = \frac{1}{2} \left( \mathrm{tr}\, \Sigma_{yy} - \sum_{j \leq k} s_j^2 \right), \quad "
        r"s_j = \sigma_j\left(\Sigma_{yx} \Sigma_{xx}^{-1/2}\right)"
    )
    minutes = 0.2
    tiny = {"moments": "commuting", "width": 6}

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the loss, and the strengths of the modes."""
        return [
            *super().figures(result),
            Chart(
                "mode_strength",
                title="Strengths of the singular modes",
                caption="Strength of the learned map in each singular mode of the input–output correlation Σyx, in "
                "order of decreasing singular value. With correlated inputs, one jump can change the strengths of "
                "several modes.",
            ),
        ]

    def meaning(self, result: Comparison) -> str:
        """Summarise the jumps, the final loss, and the order that theory predicts for these moments."""
        plateaus = (
            "Because these moments commute, theory predicts that the network learns the modes one by one, in order of "
            "decreasing singular value of Σyx. A plateau need not be the best map of its rank."
            if self.moments == "commuting"
            else "Theory predicts that each jump increases the rank of the learned map by one, and that the map on "
            "each plateau is the best map of its rank."
        )
        predicted, observed = result.predicted["loss_after"], result.residual["observed_loss_after"]
        last = (
            f" After the last jump, the predicted loss is {rounded(predicted[-1])} and the observed loss is "
            f"{rounded(observed[-1])}."
            if predicted.size
            else ""
        )
        return (
            f"A linear network with {self.width} hidden neurons was trained on data with {self.moments} moments, from "
            f"initial weights scaled by {rounded(self.scale)}. {plateaus} {jump_times(result)}{last} The "
            "theory is exact in the limit of vanishing initial weights."
        )

    def setup(self) -> Setup:
        """Data with the requested moments, and a two-layer linear network."""
        task = moments_regression(self.moments, self.size if self.data == "random" else None, self.seed)
        return Setup(task, network_for("linear", task, width=self.width, seed=self.seed))
