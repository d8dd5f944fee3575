"""Two-layer linear networks learn the data rank by rank."""

from __future__ import annotations

import math
from typing import Literal

import xarray as xr

from dynascope.networks import network_for
from dynascope.results import Chart
from dynascope.results.staircase import with_tolerances
from dynascope.studies import Reference, Setup, StaircaseStudy
from dynascope.studies.fields import choice, count, initial_scale, number, seed
from dynascope.tasks import digits
from dynascope.tasks.known_modes import halving_modes
from dynascope.theory import papers

# Of 2.2 e-folds of growth that times may be off, so many change from one scale to the other: where neurons are few for
# the rank, what they have of the last modes at the start is little.
_CHANGE, _CHANGE_OF_FEW = 0.55, 1.5
_KNOWN = 0.05, 0.24  # slopes, at best, and where all of these e-folds change
_OVERLAPPING = "neighbouring modes overlap, less so from smaller scales and with more neurons; at least 5 %"


class LinearStaircase(StaircaseStudy):
    """Levels, times and slopes of the loss staircase of a two-layer linear network."""

    data: Literal["digits", "gaussian"] = choice(
        "digits", '"digits" for the 1797 handwritten digits, or "gaussian" for regression on random correlated inputs.'
    )
    scale: float = initial_scale(1e-12, most=0.01)
    width: int = count(50, "Number of hidden neurons.")
    samples: int = count(500, "Number of samples of the Gaussian data.", least=2)
    inputs: int = count(8, "Number of inputs of the Gaussian data.")
    outputs: int = count(3, "Number of outputs of the Gaussian data.")
    condition: float = number(
        2.0, "Ratio of the largest to the smallest input variance of the Gaussian data.", least=1.0
    )
    seed: int = seed("Seed of the initial weights and of the Gaussian data.")

    reference = Reference.of(
        papers.GREEDY,
        "From small initialisation a two-layer linear network visits the reduced-rank regressions of the data in "
        "order of rank, at times that grow as log(1/scale) with slopes set by the residual singular values.",
    )
    question = "In which order does a linear network learn what is in its data, and when?"
    figures = (
        *StaircaseStudy.figures,
        Chart(
            "mode_strength",
            title="What is known of each mode",
            caption="Strength of the learned map in each singular mode of the correlation of outputs and inputs, the "
            "strongest first: each rises at a jump of the loss, after long growth that the loss does not show.",
        ),
    )
    meaning = (
        "A linear network with {parameters.width} hidden neurons was trained from weights {parameters.scale} times as "
        "large as usual (data: {parameters.data}). By theory each jump of its loss adds one rank to the map that it "
        "has learned, which is one pattern in the inputs with one answer to it; levels and times are computed before "
        "training, from the correlations in the data and the initial weights. The first jump was expected at time "
        "{predicted.jump_time:first} and came at {residual.observed_jump_time:first}, the last at "
        "{predicted.jump_time:last} and came at {residual.observed_jump_time:last}. Jumps that follow each other "
        "closely overlap, so that their plateaus are hardly reached; smaller initial weights draw them apart."
    )
    minutes = 0.2
    tiny = {"data": "gaussian", "samples": 60, "inputs": 4, "outputs": 2, "width": 6, "scale": 1e-20}

    def predict(self) -> xr.Dataset:
        """With slopes that are known less well from larger scales, where the overlap of modes still changes."""
        predicted = super().predict()
        few = self.width < 2 * predicted.sizes["jump"]
        change = (_CHANGE_OF_FEW if few else _CHANGE) / -math.log(self.scale)
        return with_tolerances(predicted, slope=(min(max(change, _KNOWN[0]), _KNOWN[1]), _OVERLAPPING))

    def setup(self) -> Setup:
        """Greedy low-rank learning, from the actual initial weights."""
        asked = {name: getattr(self, name) for name in ("samples", "inputs", "outputs", "condition", "seed")}
        task = digits() if self.data == "digits" else halving_modes(**asked)
        return Setup(task, network_for("linear", task, width=self.width, seed=self.seed))
