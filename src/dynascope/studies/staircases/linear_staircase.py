"""Two-layer linear networks learn their target map rank by rank."""

from __future__ import annotations

import math
from typing import Annotated, Literal

import xarray as xr
from annotated_types import Ge, Interval

from dynascope.networks import network_for
from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.results.staircase import with_tolerances
from dynascope.studies import Reference, Setup, StaircaseStudy, parameter
from dynascope.studies.staircase_study import jump_times
from dynascope.tasks import digits
from dynascope.tasks.known_modes import halving_modes
from dynascope.theory import papers
from dynascope.validation.bounded import PositiveInt, Seed

# Predicted times neglect up to 2.2 e-folds of growth. This error usually changes by 0.55 e-folds between the scales.
# With few neurons for the rank it changes by 1.5 e-folds, because the initial weights contain little of the last modes.
_CHANGE, _CHANGE_OF_FEW = 0.55, 1.5
_SLOPE_LIMITS = 0.05, 0.24  # bounds on the tolerance of the slopes; a change by all 2.2 e-folds gives the upper bound
_OVERLAPPING = "neighbouring modes overlap, less so at smaller scales and larger widths; the tolerance is at least 5 %"


class LinearStaircase(StaircaseStudy):
    """Tests the predicted loss staircase of a two-layer linear network.

    The study compares predicted and observed plateau losses, jump times and slopes. The slopes measure how fast the
    jump times grow as the initial scale decreases.
    """

    data: Literal["digits", "gaussian"] = parameter(
        "digits", '"digits" for the 1797 handwritten digits, or "gaussian" for regression on random correlated inputs.'
    )
    scale: Annotated[float, Interval(gt=0, le=0.01)] = parameter(
        1e-12,
        "Factor that multiplies the initial weights. The slopes are measured between this scale and 1e-4 times this "
        "scale.",
    )
    width: PositiveInt = parameter(50, "Number of hidden neurons.")
    samples: Annotated[int, Ge(2)] = parameter(500, "Number of samples of the Gaussian data.")
    inputs: PositiveInt = parameter(8, "Number of inputs of the Gaussian data.")
    outputs: PositiveInt = parameter(3, "Number of outputs of the Gaussian data.")
    condition: Annotated[float, Ge(1)] = parameter(
        2.0, "Ratio of the largest to the smallest input variance of the Gaussian data."
    )
    seed: Seed = parameter(0, "Seed of the initial weights and of the Gaussian data.")

    reference = Reference.of(
        papers.GREEDY,
        "From small initialisation, a two-layer linear network visits the reduced-rank regressions of the data in "
        "order of rank. The jump times grow as log(1/scale), with slopes determined by the residual singular values.",
    )
    title = "Rank-by-rank learning in linear networks"
    question = "In which order does a linear network learn the modes of its data, and when?"
    equation = (
        r"\mathcal{L}_k = \frac{1}{2} \left( \mathrm{tr}\, \Sigma_{yy} - \sum_{j \leq k} s_j^2 \right), \quad "
        r"s_j = \sigma_j\left(\Sigma_{yx} \Sigma_{xx}^{-1/2}\right)"
    )
    minutes = 0.2
    tiny = {"data": "gaussian", "samples": 60, "inputs": 4, "outputs": 2, "width": 6, "scale": 1e-20}

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the loss, and the strengths of the modes."""
        return [
            *super().figures(result),
            Chart(
                "mode_strength",
                title="Strengths of the singular modes",
                caption="Strength of the learned map in each singular mode of the input–output correlation, in order "
                "of decreasing singular value. Modes grow exponentially before they are large enough to change the "
                "loss.",
            ),
        ]

    def meaning(self, result: Comparison) -> str:
        """Summarise the meaning of a jump, and the times of the first and last jumps."""
        data = "handwritten digits" if self.data == "digits" else "Gaussian data"
        return (
            f"A linear network with {self.width} hidden neurons was trained on {data} from initial weights scaled by "
            f"{rounded(self.scale)}. Theory predicts that the rank of the learned map increases by one at each jump: "
            "the network learns one more input direction and the corresponding output direction. The plateau losses "
            "and jump times are computed before training, from the moments of the data and the initial weights. "
            f"{jump_times(result)} Closely spaced jumps overlap, so the loss barely reaches the plateau between them. "
            "Smaller initial weights separate the jumps."
        )

    def predicted(self) -> xr.Dataset:
        """Predict the staircase, with a wider tolerance on the slopes if the modes overlap more."""
        predicted = super().predicted()
        few = self.width < 2 * predicted.sizes["jump"]
        change = (_CHANGE_OF_FEW if few else _CHANGE) / -math.log(self.scale)
        least, most = _SLOPE_LIMITS
        return with_tolerances(predicted, slope=(min(max(change, least), most), _OVERLAPPING))

    def setup(self) -> Setup:
        """The data, and a two-layer linear network."""
        options = {name: getattr(self, name) for name in ("samples", "inputs", "outputs", "condition", "seed")}
        task = digits() if self.data == "digits" else halving_modes(**options)
        return Setup(task, network_for("linear", task, width=self.width, seed=self.seed))
