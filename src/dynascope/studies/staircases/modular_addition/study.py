"""Quadratic networks learn modular addition one frequency at a time."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Literal

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.flows import GradientFlow, gradient_flow
from dynascope.flows.solvers.solver import Solver
from dynascope.groups import encoding_from_frequencies
from dynascope.networks import TwoLayer
from dynascope.results import Staircase, other_scale
from dynascope.studies import Reference, StaircaseStudy, parameter
from dynascope.studies.staircases.loss_parts import loss_parts
from dynascope.studies.staircases.modular_addition import page
from dynascope.studies.staircases.modular_addition.frequency_neurons import (
    frequency_projection,
    neurons_near_frequencies,
)
from dynascope.tasks.algebra import modular_addition
from dynascope.theory import papers
from dynascope.theory.modular.addition import modular_addition_staircase
from dynascope.validation.bounded import FiniteFloat, PositiveInt, Seed

_NEURONS = 6  # neurons that a frequency needs to be learned completely
_LARGEST_PLAIN = 0.05  # largest scale in the plain flow, at which times are known to within 25 %
_SMALLEST_PLAIN = 1e-3  # smallest scale in the plain flow, at which training takes minutes


class ModularAddition(StaircaseStudy):
    """Tests the predicted loss staircase of a two-layer quadratic network, trained on all pairs of numbers.

    The study compares predicted and observed plateau losses, jump times and slopes. The slopes measure how fast the
    jump times grow as the initial scale decreases. Each neuron is initialised near one frequency, with random phases
    and norm `scale`; the frequencies are assigned to the neurons in turn. If `clock` is "plain", the phases of the
    three weight vectors of a neuron are aligned, so all neurons of a frequency grow at the same time.
    """

    p: Annotated[int, Ge(3)] = parameter(17, "Modulus of the addition.")
    frequencies: list[PositiveInt] = parameter([1, 2, 4], "Frequencies of the encoding, with random phases.")
    amplitudes: list[FiniteFloat] = parameter([0.8, 0.52, 0.36], "Amplitude of each frequency.", repeats=True)
    clock: Literal["normalised", "plain"] = parameter(
        "normalised",
        '"normalised" for the flow in which each neuron has the learning rate 1/norm, so times grow as '
        'log(1/scale); "plain" for gradient flow, in which times grow as 1/scale and a scale of 0.02 is already small.',
    )
    width: PositiveInt = parameter(
        60,
        "Number of neurons, at least six per frequency. With twelve per frequency, unfavourable phases have little "
        "effect.",
    )
    scale: Annotated[float, Interval(gt=0, le=0.1)] = parameter(
        1e-6,
        "Initial norm of the neurons. The slopes are measured between this scale and 1e-4 times this scale (half of "
        "this scale with the plain clock).",
    )
    seed: Seed = parameter(0, "Seed of the phases.")

    reference = Reference.of(
        papers.ALTERNATING,
        "From small initialisation, a two-layer quadratic network learns modular addition one frequency of the "
        "encoding at a time, the strongest first. The time at which a frequency is learned depends on the cube of its "
        "Fourier coefficient.",
    )
    title = "Modular addition, one frequency at a time"
    question = "In which order does a network learn the frequencies of modular addition?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"\mathcal{L} = \frac{1}{2} \left( \|x\|^2 - \sum_{\xi \in K} E_\xi \right), \quad E_\xi = "
        r"\frac{2}{p} \left| \hat{x}[\xi] \right|^2"
    )
    minutes = 0.2
    names = {
        "frequency_loss": ("loss in the frequency", "1"),
        "frequency": ("frequency of the Fourier transform", "1"),
    }
    tiny = {"p": 7, "frequencies": [1, 2], "amplitudes": [1.0, 0.6], "width": 24}

    def check(self) -> None:
        """Check that each frequency has an amplitude and enough neurons, and that the clock allows the scale."""
        amplitudes, frequencies = len(self.amplitudes), len(self.frequencies)
        self.require(amplitudes == frequencies, "amplitudes", "pass one amplitude per frequency", beside="frequencies")
        remedy = f"choose at least {_NEURONS * frequencies}, which is {_NEURONS} neurons per frequency"
        self.require(self.width >= _NEURONS * frequencies, "width", remedy, beside="frequencies")
        remedy = f"choose at least {_SMALLEST_PLAIN}, or the normalised clock"
        problem = f"scale is {self.scale}, but the plain flow requires a training time of order 1/scale"
        self.require(self._normalised or self.scale >= _SMALLEST_PLAIN, "scale", remedy, problem=problem)
        small = self._normalised or self.scale <= _LARGEST_PLAIN
        self.require(small, "scale", f"choose at most {_LARGEST_PLAIN} with the plain clock")

    def trained_from(self, scale: float) -> xr.Dataset:
        """Train on the average loss over all pairs of numbers."""
        # A drop takes a time of order one, a large part of the total time at a large scale.
        beyond = max(1.4, 1.25 - 2 / math.log(scale)) if self._normalised else 1.4
        duration = beyond * float(self._staircase(scale).times.max())
        # In the plain flow, plateaus last for times of order 1/scale and jumps for times of order one.
        solver = Solver() if self._normalised else Solver("stabilised", relative_tolerance=1e-3)
        waves = [frequency_projection(self.p, each) for each in self.frequencies]
        statistics = {"frequency_loss": (loss_parts(self._task, self._encoding, waves), ("frequency",))}
        method = GradientFlow(
            duration=duration, normalised=self._normalised, solver=solver, save=4000, statistics=statistics
        )
        record = gradient_flow(self._task, self._network, method, scale=scale)
        return record.assign_coords(frequency=self.frequencies)

    def second_scale(self) -> float:
        """A much smaller scale if times grow as log(1/scale), and half the scale if they grow as 1/scale."""
        return other_scale(self.scale, degree=3, normalised=self._normalised, divisor=2.0)

    def predicted(self) -> xr.Dataset:
        """Predict from the utilities of the frequencies and the growth of every neuron up to its activation."""
        if self._normalised:
            times = 1 / math.log(1 / self.scale), "times are predicted to within one e-fold of growth of the neurons"
            slopes = 0.01, "the neglected part of the times is the same at both scales, unless drops overlap"
        else:
            times = 5 * self.scale, "the neglected part of the times decreases with the scale"
            slopes = 0.05, "the neglected part of the times changes little between the two scales"
        return self.predicted_record(self._staircase(self.scale), "two-layer quadratic", jump_time=times, slope=slopes)

    @property
    def _normalised(self) -> bool:
        return self.clock == "normalised"

    def _staircase(self, scale: float) -> Staircase:
        neurons = self._network.neurons
        return modular_addition_staircase(self._encoding, scale=scale, neurons=neurons, normalised=self._normalised)

    @functools.cached_property
    def _encoding(self) -> np.ndarray:
        phases = np.random.default_rng(self.seed).uniform(0, 2 * np.pi, len(self.frequencies))
        # A phase at frequency p/2 would only rescale the amplitude.
        phases[2 * np.array(self.frequencies) == self.p] = 0.0
        amplitudes = dict(zip(self.frequencies, self.amplitudes, strict=True))
        return encoding_from_frequencies(self.p, amplitudes, dict(zip(self.frequencies, phases, strict=True)))

    @functools.cached_property
    def _task(self) -> modular_addition.ModularAddition:
        return modular_addition.ModularAddition(self._encoding)

    @functools.cached_property
    def _network(self) -> TwoLayer:
        usual = {"neurons": self.width, "aligned": not self._normalised, "seed": [self.seed, 1]}
        rows = neurons_near_frequencies(self._encoding, self.frequencies, **usual)
        return TwoLayer(2 * self.p, self.width, self.p, activation="quadratic").with_neurons(rows)
