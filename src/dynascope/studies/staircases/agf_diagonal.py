"""In diagonal networks, depth changes the times of the jumps but not the sequence of saddles."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Literal

import xarray as xr
from annotated_types import Ge

from dynascope.flows import deep_diagonal_flow, diagonal_flow
from dynascope.results import Chart, Comparison, Staircase, other_scale, time_unit
from dynascope.results.numbers import rounded
from dynascope.studies import Reference, StaircaseStudy, parameter
from dynascope.studies.staircase_study import jump_times
from dynascope.tasks import Task
from dynascope.tasks.known_modes import dropped_input, halving_inputs
from dynascope.theory import papers
from dynascope.theory.staircase.activation_times import activation_staircase
from dynascope.validation.bounded import OpenFraction, PositiveInt, Seed


class AgfDiagonal(StaircaseStudy):
    """Tests the predicted loss staircase of diagonal networks of depth two or more.

    The study compares predicted and observed plateau losses, activation times and slopes. The slopes measure how fast
    the activation times grow as the initial scale decreases. Alternating Gradient Flows (AGF) predict when a dormant
    neuron, driven by a constant residual (targets minus outputs), reaches norm one. At a finite scale, the predicted
    times are the limiting times multiplied by a common factor. The related study `diagonal-staircase` covers depth two
    and predicts the time at which each jump is half complete.
    """

    depth: Annotated[int, Ge(2)] = parameter(
        2,
        "Depth D. For D = 2, the coefficients are β = u ⊙ v with initial weights u = scale and v = 0. For D > 2, they "
        "are β = u^D − v^D with initial weights u = v = scale.",
    )
    data: Literal["example", "gaussian"] = parameter(
        "example",
        '"example" for three samples of four inputs, one of which the network learns and later drops, or "gaussian".',
    )
    scale: OpenFraction = parameter(
        1e-12, "Initial value of the weights. The slopes are measured between this scale and a smaller scale."
    )
    samples: Annotated[int, Ge(2)] = parameter(
        40,
        "Number of samples of the Gaussian data. With fewer samples than inputs, the jump times deviate more from the "
        "prediction.",
    )
    inputs: PositiveInt = parameter(5, "Number of inputs of the Gaussian data.")
    seed: Seed = parameter(0, "Seed of the Gaussian data.")

    reference = Reference.of(
        papers.ALTERNATING,
        "Alternating Gradient Flows predict the saddles that a diagonal linear network visits and the times at which "
        "its neurons activate. Depth changes the times but not the sequence of saddles.",
    )
    title = "Diagonal networks of any depth"
    question = (
        "In which order does a diagonal network with small initial weights learn its inputs, and does its depth matter?"
    )
    equation = (
        r"\dot\theta = \nabla_\theta \, U(\theta), \quad U(\theta) = E \left\langle f(x; \theta), \, r(x) "
        r"\right\rangle, \quad f(x; u, v) = (u^D - v^D) \, x_i"
    )
    minutes = 0.2
    tiny = {"depth": 2, "scale": 1e-14}

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the loss, and the coefficients."""
        return [
            *super().figures(result),
            Chart(
                "coefficient",
                title="Coefficients of the inputs",
                caption="Coefficient of each input over time. An input is learned when its coefficient becomes "
                "nonzero, and dropped when it returns to zero. At each jump, all active coefficients adjust.",
            ),
        ]

    def meaning(self, result: Comparison) -> str:
        """Summarise how theory predicts the jumps, the times of the first and last jumps, and the role of depth."""
        return (
            f"A diagonal linear network of depth {self.depth} was trained from initial weights of "
            f"{rounded(self.scale)}. On a plateau, the loss is almost constant while the weights of dormant inputs "
            "grow. Theory predicts from the data alone which input activates next, and when. "
            f"{jump_times(result)} In the limit of vanishing initial weights, the predicted plateaus are the same at "
            "every depth. At a finite scale, the times differ from the prediction by an offset that stays bounded as "
            "the scale decreases."
        )

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train for at least 1.5 times the activation time of the last neuron."""
        last = float(self._staircase.accelerated_times[-1]) * time_unit(scale, degree=self.depth)
        flow = diagonal_flow if self.depth == 2 else functools.partial(deep_diagonal_flow, depth=self.depth)
        # A jump takes a time of order one, a large part of the total time at a large scale.
        duration = max(1.5, 1.25 - 2 / math.log(scale)) * last
        return flow(self._task, scale=scale, duration=duration).assign_attrs(task=self._task.name)

    def second_scale(self) -> float:
        """A much smaller scale at depth two, where times grow as log(1/scale); half the scale at larger depths."""
        return other_scale(self.scale, degree=self.depth, divisor=2.0)

    def predicted(self) -> xr.Dataset:
        """Predict the saddles and the activation times of the neurons."""
        if self.depth == 2:
            offset = -4 / math.log(self.scale)
            reason = "the final coefficients shift the times by a bounded offset; the tolerance is 4/log(1/scale)"
        else:
            offset = 2 * self.depth * (self.depth - 2) * self.scale ** (self.depth - 2)
            reason = "a jump takes up to about two time units; the tolerance is at least 0.2 %"
        network = "diagonal" if self.depth == 2 else f"diagonal of depth {self.depth}"
        times = min(max(offset, 0.002), 0.3), reason
        slopes = 0.01, "the offset is nearly the same at both scales, except after slow plateaus"
        return self.predicted_record(self._staircase, network, jump_time=times, slope=slopes)

    @functools.cached_property
    def _staircase(self) -> Staircase:
        task = self._task
        options = {"scale": self.scale, "depth": self.depth, "feature_names": task.feature_names}
        return activation_staircase(task.inputs, task.targets[:, 0], **options)

    @functools.cached_property
    def _task(self) -> Task:
        return dropped_input() if self.data == "example" else halving_inputs(self.samples, self.inputs, self.seed)
