"""Alternating Gradient Flows of diagonal networks: one path of saddles for every depth, each with its own clock."""

from __future__ import annotations

import functools
import math
from typing import Literal

import xarray as xr

from dynascope.flows import deep_diagonal_flow, diagonal_flow
from dynascope.results import Chart, Staircase, other_scale, time_unit
from dynascope.studies import Reference, StaircaseStudy
from dynascope.studies.fields import choice, count, initial_scale, seed
from dynascope.tasks import Task
from dynascope.tasks.known_modes import dropped_input, halving_inputs
from dynascope.theory import papers
from dynascope.theory.staircase.activation_times import activation_staircase


class AgfDiagonal(StaircaseStudy):
    """Levels, activation times and slopes of diagonal networks of depth two and more.

    `diagonal-staircase` predicts when the loss of the network u ⊙ v has fallen by half. Here the depth is free, and the
    times are those of Alternating Gradient Flows: when a neuron, at the residual that it sees while dormant, reaches
    norm one. At a finite scale they are those of the limit times one number, the same for all jumps.
    """

    depth: int = count(
        2, "D; two for β = u ⊙ v from u = scale, v = 0, and more for β = u^D − v^D from u = v = scale.", least=2
    )
    data: Literal["example", "gaussian"] = choice(
        "example", '"example" for three samples of four inputs of which one is dropped again, or "gaussian".'
    )
    scale: float = initial_scale(1e-12, "Initial value of the weights", beside="a smaller one")
    samples: int = count(
        40, "Number of samples of the Gaussian data; fewer than inputs makes the offsets of the times larger.", least=2
    )
    inputs: int = count(5, "Number of inputs of the Gaussian data.")
    seed: int = seed("Seed of the Gaussian data.")

    reference = Reference.of(
        papers.ALTERNATING,
        "Alternating Gradient Flows give the saddles of diagonal linear networks and the times at which neurons "
        "activate; the depth of the network changes the clock and not the path.",
    )
    title = "Diagonal networks of any depth"
    question = "In which order does a network that starts near zero take up its inputs, and what does depth change?"
    figures = (
        *StaircaseStudy.figures,
        Chart(
            "coefficient",
            title="What the network multiplies each input with",
            caption="The coefficient of each input over time. At a jump of the loss one of them leaves zero, the "
            "others adjust, and one that was learned before may return to zero.",
        ),
    )
    meaning = (
        "A network of depth {parameters.depth} in which each input has weights of its own was trained from weights of "
        "{parameters.scale}. On a plateau the loss does not move, but the weights of sleeping inputs grow; theory "
        "computes from the data alone which of them become large next, and when. It puts the first jump at time "
        "{predicted.jump_time:first} and the last at {predicted.jump_time:last}; in training they came at "
        "{residual.observed_jump_time:first} and {residual.observed_jump_time:last}. By theory the levels are those "
        "of the limit of vanishing weights and the same at every depth, as you may see with another depth; from a "
        "finite start the times are off by an amount that stays the same while the times grow."
    )
    minutes = 0.2
    tiny = {"depth": 2, "scale": 1e-14}

    def trained_from(self, scale: float) -> xr.Dataset:
        """Follow the signed coefficients, half as long again as the last neuron takes to activate, or longer."""
        last = float(self._staircase.accelerated_times[-1]) * time_unit(scale, degree=self.depth)
        flow = diagonal_flow if self.depth == 2 else functools.partial(deep_diagonal_flow, depth=self.depth)
        # A jump takes a time of order one, which is a large part of that from a large scale.
        duration = max(1.5, 1.25 - 2 / math.log(scale)) * last
        return flow(self._task, scale=scale, duration=duration).assign_attrs(task=self._task.name)

    def second_scale(self) -> float:
        """Beyond depth two times grow as a power of the scale, and half of it is another scale by far."""
        return other_scale(self.scale, degree=self.depth, divisor=2.0)

    def predict(self) -> xr.Dataset:
        """The path of saddles with the times at which neurons activate."""
        if self.depth == 2:
            offset = -4 / math.log(self.scale)
            reason = "the sizes that coefficients reach shift the times by an offset: 4/log(1/scale)"
        else:
            offset = 2 * self.depth * (self.depth - 2) * self.scale ** (self.depth - 2)
            reason = "jumps take a time of order one: two units of the clock, at least 0.2 %"
        network = "diagonal" if self.depth == 2 else f"diagonal of depth {self.depth}"
        times = min(max(offset, 0.002), 0.3), reason
        slopes = 0.01, "where no plateau is slow, the offset is nearly the same at both scales"
        return self.stated(self._staircase, network, jump_time=times, slope=slopes)

    @functools.cached_property
    def _staircase(self) -> Staircase:
        task = self._task
        options = {"scale": self.scale, "depth": self.depth, "feature_names": task.feature_names}
        return activation_staircase(task.inputs, task.targets[:, 0], **options)

    @functools.cached_property
    def _task(self) -> Task:
        return dropped_input() if self.data == "example" else halving_inputs(self.samples, self.inputs, self.seed)
