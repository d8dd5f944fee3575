"""Diagonal linear networks select features one at a time, from saddle to saddle."""

from __future__ import annotations

import dataclasses
from typing import Annotated

from annotated_types import Ge, Interval

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded
from dynascope.studies import Reference, Setup, StaircaseStudy, parameter
from dynascope.studies.staircase_study import jump_times
from dynascope.tasks.known_modes import sparse_regression
from dynascope.validation.bounded import NonNegativeFloat, OpenFraction, PositiveInt, Seed


class DiagonalStaircase(StaircaseStudy):
    """Tests the predicted loss staircase of a diagonal linear network on Gaussian data.

    The study compares predicted and observed plateau losses, jump times and slopes. The slopes measure how fast the
    jump times grow as the initial scale decreases.
    """

    samples: Annotated[int, Ge(2)] = parameter(
        100, "Number of samples. With fewer samples than inputs, many solutions interpolate the data."
    )
    inputs: PositiveInt = parameter(10, "Number of inputs.")
    relevant: PositiveInt = parameter(4, "Number of inputs on which the target depends.", most="inputs")
    correlation: Annotated[float, Interval(gt=-1, lt=1)] = parameter(
        0.3, "Correlation ρ between neighbouring inputs; inputs i and j have correlation ρ^|i−j|."
    )
    noise: NonNegativeFloat = parameter(0.1, "Standard deviation of the target noise.")
    scale: OpenFraction = parameter(
        1e-8, "Initial value of u. The slopes are measured between this scale and 1e-4 times this scale."
    )
    seed: Seed = parameter(0, "Seed of the data.")

    reference = Reference.of(
        "S. Pesme, N. Flammarion, Saddle-to-saddle dynamics in diagonal linear networks (arXiv 2304.00488)",
        "From vanishing initialisation, a diagonal linear network jumps between constrained least-squares solutions "
        "along an explicit path. The jump times grow as log(1/scale) with known slopes.",
    )
    title = "Saddle-to-saddle dynamics of a diagonal network"
    question = "Which inputs does a diagonal network with small initial weights select, and in which order?"
    equation = (
        r"\beta(t) = \frac{\alpha^2}{2} \sinh\left( 2 \int_0^t m \, dt' \right), \quad m = E\left[ x (y - "
        r"\beta^\top x) \right]"
    )
    minutes = 0.1
    tiny = {"samples": 20, "inputs": 3, "relevant": 2, "correlation": 0.0, "noise": 0.0, "scale": 1e-12}

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the loss and the coefficients, both with logarithmic time axes."""
        (loss,) = super().figures(result)
        return [
            dataclasses.replace(loss, log="xy", decades=8),
            Chart(
                "coefficient",
                log="x",
                title="Coefficients of the inputs",
                caption="Coefficient of each input over time. An input is selected when its coefficient becomes "
                "nonzero.",
            ),
        ]

    def meaning(self, result: Comparison) -> str:
        """Summarise how theory predicts the path, and the times of the first and last jumps."""
        return (
            f"A diagonal linear network with {self.inputs} inputs, f(x) = (u ⊙ v)·x, was trained from initial weights "
            f"u = {rounded(self.scale)} and v = 0. The targets depend on {self.relevant} of the inputs and contain "
            f"noise with standard deviation {rounded(self.noise)}. Theory predicts that the network moves from one "
            "constrained least-squares solution to the next. An algorithm computes this path from the data alone. "
            f"{jump_times(result)} Over all scored jumps, including small ones, the largest relative error of the "
            f"time is {percent(result.quantities['jump_time'].error)}. The predicted path is exact in the limit "
            "of vanishing initial weights."
        )

    def setup(self) -> Setup:
        """Correlated inputs, and a target in which each relevant input has half the strength of the one before."""
        options = {"correlation": self.correlation, "noise": self.noise, "seed": self.seed}
        return Setup(sparse_regression(self.samples, self.inputs, self.relevant, **options), "diagonal")
