"""Diagonal linear networks select features one saddle after the other."""

from __future__ import annotations

import dataclasses

from dynascope.results import Chart
from dynascope.studies import Reference, Setup, StaircaseStudy
from dynascope.studies.fields import count, initial_scale, number, seed
from dynascope.tasks.known_modes import sparse_regression


class DiagonalStaircase(StaircaseStudy):
    """Levels, times and slopes of the loss staircase of a diagonal linear network on Gaussian data."""

    samples: int = count(100, "Number of samples; fewer than inputs leaves many interpolators to choose from.", least=2)
    inputs: int = count(10, "Number of inputs.")
    relevant: int = count(4, "How many inputs the target depends on.", most="inputs")
    correlation: float = number(0.3, "Correlation of neighbouring inputs, ρ^|i−j|.", above=-1.0, below=1.0)
    noise: float = number(0.1, "Standard deviation of the noise on the targets.", least=0.0)
    scale: float = initial_scale(1e-8, "Initial value of u")
    seed: int = seed("Seed of the data.")

    reference = Reference.of(
        "S. Pesme, N. Flammarion, Saddle-to-saddle dynamics in diagonal linear networks (arXiv 2304.00488)",
        "From vanishing initialisation a diagonal linear network jumps between the constrained least-squares "
        "solutions of an explicit path, at times that grow as log(1/scale) with known slopes.",
    )
    question = "Which inputs does a network select, one after the other, when it starts near zero?"
    figures = (
        dataclasses.replace(StaircaseStudy.figures[0], log="xy", decades=8),
        Chart(
            "coefficient",
            log="x",
            title="What the network multiplies each input with",
            caption="The coefficient of each input over time. One after the other they leave zero; those of inputs "
            "that do not matter stay near it, and end where the noise in the targets puts them.",
        ),
    )
    meaning = (
        "A network in which each of {parameters.inputs} inputs has two weights of its own was trained from weights of "
        "{parameters.scale}, on targets that depend on some inputs ({parameters.relevant}) and on noise. By theory it "
        "passes from one least-squares fit that uses few inputs to the next, along a path that an algorithm computes "
        "from the data without training. So the first jump is at time {predicted.jump_time:first}, and it came at "
        "{residual.observed_jump_time:first}; the largest error of a time is {agreement.jump_time:percent}. As the "
        "strongest inputs come first and noise is fitted late, stopping early selects inputs; the path is that of the "
        "limit of vanishing weights."
    )
    minutes = 0.1
    tiny = {"samples": 20, "inputs": 3, "relevant": 2, "correlation": 0.0, "noise": 0.0, "scale": 1e-12}

    def setup(self) -> Setup:
        """Correlated inputs, and a target that depends on some of them, each half as much as the one before."""
        asked = {"correlation": self.correlation, "noise": self.noise, "seed": self.seed}
        return Setup(sparse_regression(self.samples, self.inputs, self.relevant, **asked), "diagonal")
