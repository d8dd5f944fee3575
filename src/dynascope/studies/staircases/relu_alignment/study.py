"""ReLU neurons align with a few directions before the loss decreases."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Literal

import xarray as xr
from annotated_types import Ge, Interval

from dynascope.comparison import compare
from dynascope.results import Comparison
from dynascope.studies import Reference, StaircaseStudy, Values, curve_tolerance, parameter
from dynascope.studies.staircases.relu_alignment import page
from dynascope.studies.staircases.relu_alignment.experiment import Experiment
from dynascope.studies.tolerances import with_limits
from dynascope.tasks import Task
from dynascope.validation.bounded import NonNegativeInt, PositiveInt

_ROUNDING = 1e-12  # smallest scale at which the rounding of orthogonal inputs cannot activate a neuron
_LAG = "gradient descent lags behind gradient flow by a fraction of a step"
_LIMITS = curve_tolerance(
    loss=(1e-3, "the outputs stay below a thousandth of the targets"),
    direction=(2e-3, f"{_LAG}, and oscillates about a kink"),
    angle=(2e-3, f"{_LAG}, and oscillates about a kink"),
    growth=(5e-3, _LAG),
)


class ReluAlignment(StaircaseStudy):
    """Tests the predicted direction and growth of every neuron of a ReLU network, or the predicted loss staircase.

    The network is f(x) = Σ aᵢ relu(wᵢ·x), with |aᵢ| = ‖wᵢ‖ at t = 0. On data in the plane, training stops when the
    largest neuron has reached a norm of 0.001. Neurons that are predicted to shrink more than twentyfold are excluded,
    because discrete steps break the balance |aᵢ| = ‖wᵢ‖ of such small neurons. The tolerances on these data are 0.001
    for the loss, 0.002 for directions and angles, and 0.005 for the growth of the neurons. On other data, the study
    compares plateau losses, jump times and slopes.
    """

    data: Literal["plane", "orthogonal", "general"] = parameter(
        "plane",
        '"plane" for Gaussian inputs in the plane and Gaussian targets; "orthogonal" for orthogonal inputs, '
        'one per dimension, with targets of both signs; "general" for Gaussian inputs in three dimensions and a '
        "teacher with two neurons of opposite sign, for which only alternating gradient flow predicts the staircase.",
    )
    samples: Annotated[int, Ge(2)] = parameter(6, "Number of samples. The general data contain ten times as many.")
    width: PositiveInt = parameter(60, "Number of neurons.")
    # Neurons must align before they become large.
    scale: Annotated[float, Interval(gt=0, le=1e-4)] = parameter(
        1e-8,
        "Factor that multiplies the initial weights. With orthogonal data, the slopes are measured between this scale "
        "and 1e-4 times this scale.",
    )
    seed: NonNegativeInt = parameter(10, "Seed of the data and of the initial weights.")

    reference = Reference.of(
        "H. Maennel, O. Bousquet, S. Gelly, Gradient descent quantizes ReLU network features (arXiv 1803.08367)",
        "From vanishing initialisation, the neurons of a ReLU network rotate towards a few directions that depend only "
        "on the data, along paths that theory predicts exactly. With orthogonal inputs, the loss then drops in steps, "
        "at predicted times and to predicted levels (arXiv 2206.00939).",
    )
    title = "Alignment of ReLU neurons"
    figures, meaning = page.figures, page.meaning
    trains = "relu"
    symbols = {"neuron": ""}
    equation = (
        r"\dot w = a \, D(w), \quad \dot a = w \cdot D(w), \quad D(w) = \frac{1}{n} \sum_{w \cdot x_j > 0} "
        r"y_j x_j"
    )
    minutes = 0.2
    names = {
        "extremal_direction": ("extremal direction", "1"),
        "growth": ("logarithm of the growth of the neuron", "1"),
        "rate": ("growth rate", "1"),
        "kind": ("kind of extremal direction", "1"),
    }
    tiny = {"samples": 3, "width": 8, "scale": 1e-6}

    @property
    def question(self) -> str:
        """The question for data in the plane, or for a staircase."""
        return (
            "With which directions do ReLU neurons align before the loss decreases?"
            if self.data == "plane"
            else "When does the loss of a ReLU network with small initial weights drop, and how high is each plateau?"
        )

    def observed(self) -> xr.Dataset:
        """Train by small steps of descent during the alignment, or by gradient flow through the jumps."""
        return self._experiment.trained_to_align() if self.data == "plane" else self.trained_from(self.scale)

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train by gradient flow through the jumps."""
        return self._experiment.trained_to_learn(scale)

    def predicted(self) -> xr.Dataset:
        """Predict the path of each neuron under constant residuals, or the staircase."""
        if self.data == "plane":
            values, theory = self._experiment.predicted_paths(), "early alignment of ReLU networks"
            return with_limits(self.record(values, theory=theory, reference=self.reference.paper), _LIMITS)
        if self.data == "general":
            return self._experiment.alternation
        staircase = self._experiment.staircase(self.scale)
        never_learned = any("not learned" in each for each in staircase.warnings)
        problem = (
            f"at scale {self.scale}, rounding errors of orthogonal inputs activate neurons that should stay inactive"
        )
        remedy = f"choose at least {_ROUNDING:g}, or more neurons"
        self.require(self.scale >= _ROUNDING or not never_learned, "scale", remedy, problem=problem)
        offset = (
            "times are predicted up to an offset, which is below 0.5 in random problems; the tolerance is "
            "1/log(1/scale)"
        )
        inactive = "neurons that are inactive on some data change the slopes by up to one percent"
        times, slopes = (1.0 / -math.log(self.scale), offset), (0.02, inactive)
        return self.predicted_record(staircase, "relu", jump_time=times, slope=slopes)

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare directions, growth and loss over time, or levels, times and slopes of a staircase."""
        if self.data != "plane":
            return super().compared(observed, predicted)
        return compare(observed, predicted)

    def labels(self) -> Values:
        """Labels of the times and neurons of the paths."""
        return {"time": self._experiment.times, "neuron": self._experiment.compared}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

    @property
    def _task(self) -> Task:
        return self._experiment.task
