"""Quadratic networks learn modular addition one frequency after the other."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, ClassVar, Literal

from dynascope.record.clock import other_scale
from dynascope.studies.study import Reference, Study

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

__all__ = ["ModularAddition"]

# Share of the other frequencies in the start of a neuron. From fully random neurons the strongest frequency takes
# almost all: of 1000 neurons at the default fields, 989, 11 and 0.
_SPREAD = 0.02
_NEURONS = 6  # that learn a frequency completely
_SMALLEST_PLAIN = 1e-3  # scale at which the plain flow still ends in minutes


@dataclasses.dataclass(frozen=True)
class ModularAddition(Study):
    """Levels, times and slopes of the loss staircase of a two-layer quadratic network on all pairs of numbers.

    Neurons start near one frequency each, taken in turn, with random phases and unit norm times the scale. In the plain
    clock the phases of their three parts fit together, so that the neurons of a frequency grow at the same time.

    Attributes:
        p: The modulus.
        frequencies: Frequencies of the encoding; its phases are drawn at random.
        amplitudes: Their amplitudes.
        clock: "normalised" for the flow in which each neuron has the rate 1/norm, where times grow as log(1/scale);
            "plain" for gradient flow, where they grow as 1/scale and a scale of 0.02 is already small.
        width: Number of neurons; at least six for each frequency, and twice as many are safe from unlucky phases.
        scale: Norm of the neurons at the start; the slopes are measured between it and 1e-4 of it, or a half of it in
            the plain clock.
        seed: Seed of the phases.
    """

    p: int = 17
    frequencies: list[int] = dataclasses.field(default_factory=lambda: [1, 2, 4])
    amplitudes: list[float] = dataclasses.field(default_factory=lambda: [0.8, 0.52, 0.36])
    clock: Literal["normalised", "plain"] = "normalised"
    width: int = 60
    scale: float = 1e-6
    seed: int = 0

    name: ClassVar[str] = "modular-addition"
    reference: ClassVar[Reference] = Reference(
        paper="D. Kunin, G. L. Marchetti, F. Chen, D. Karkada, J. B. Simon, M. R. DeWeese, S. Ganguli, N. Miolane, "
        "Alternating gradient flows: a theory of feature learning in two-layer neural networks",
        arxiv="2506.06489",
        claim="From small initialisation a two-layer quadratic network learns modular addition one frequency of the "
        "encoding after the other, strongest first, at times set by the cube of its Fourier coefficient.",
    )
    minutes: ClassVar[float] = 0.2
    tiny: ClassVar = {"p": 7, "frequencies": [1, 2], "amplitudes": [1.0, 0.6], "width": 24}

    @functools.cached_property
    def _encoding(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require, require_seed
        from dynascope.groups.encodings import encoding_from_frequencies

        require(
            len(self.frequencies) == len(self.amplitudes) and len(set(self.frequencies)) == len(self.frequencies),
            f"there are {len(self.amplitudes)} amplitudes for the frequencies {self.frequencies}",
            argument="amplitudes",
            value=self.amplitudes,
            remedy="give different frequencies, and one amplitude for each",
        )
        require_seed(self.seed)
        phases = np.random.default_rng(self.seed).uniform(0, 2 * np.pi, len(self.frequencies))
        # The phase of p/2 would only scale its amplitude.
        phases[2 * np.array(self.frequencies) == self.p] = 0.0
        amplitudes = dict(zip(self.frequencies, self.amplitudes, strict=True))
        return encoding_from_frequencies(self.p, amplitudes, dict(zip(self.frequencies, phases, strict=True)))

    @functools.cached_property
    def _task(self):
        from dynascope.tasks.algebra import modular_addition as modular

        return modular.ModularAddition(self._encoding)

    @functools.cached_property
    def _network(self):
        import numpy as np

        from dynascope.arguments import require
        from dynascope.networks import TwoLayer

        encoding, frequencies = self._encoding, np.array(self.frequencies)
        require(
            self.width >= _NEURONS * len(frequencies),
            f"width is {self.width} for {len(frequencies)} frequencies",
            argument="width",
            value=self.width,
            remedy=f"choose at least {_NEURONS * len(frequencies)}: a frequency takes {_NEURONS} neurons to learn",
        )
        network = TwoLayer(2 * self.p, self.width, self.p, activation="quadratic")
        phases = np.random.default_rng([self.seed, 1]).uniform(0, 2 * np.pi, (self.width, 3, len(frequencies)))
        if self.clock == "plain":
            turn = np.angle(np.fft.fft(encoding)[frequencies])
            phases[:, 2] = phases[:, 0] + phases[:, 1] - turn
        angles = 2 * np.pi / self.p * np.multiply.outer(frequencies, np.arange(self.p))
        own = np.arange(self.width)[:, None] % len(frequencies) == np.arange(len(frequencies))
        waves = np.cos(phases[..., None] + angles) * np.where(own, 1.0, _SPREAD)[:, None, :, None]
        rows = waves.sum(axis=2).reshape(self.width, -1)
        return network.with_neurons(rows / np.linalg.norm(rows, axis=1, keepdims=True))

    def _staircase(self, scale: float):
        from dynascope.theory.modular.addition import modular_addition_staircase

        return modular_addition_staircase(
            self._encoding, scale=scale, neurons=self._network.neurons, normalised=self.clock == "normalised"
        )

    def _observe(self, scale: float) -> xr.Dataset:
        from dynascope import flows

        normalised = self.clock == "normalised"
        return flows.gradient_flow(
            self._network,
            self._task,
            scale=scale,
            duration=1.4 * float(self._staircase(scale).times.max()),
            save=4000,
            normalised=normalised,
            # The plain flow waits 1/scale for what then happens in a time of order one.
            **({} if normalised else {"solver": "stabilised", "relative_tolerance": 1e-3}),
        )

    def observe(self) -> xr.Dataset:
        """Train on the average over all pairs."""
        return self._observe(self.scale)

    def predict(self) -> xr.Dataset:
        """The utilities of the frequencies, and the growth of every neuron until one of them takes it."""
        import math

        from dynascope.arguments import require
        from dynascope.record import staircase_record

        require(
            self.clock in ("normalised", "plain"),
            f"clock is {self.clock!r}",
            argument="clock",
            value=self.clock,
            remedy="choose normalised or plain",
        )
        normalised = self.clock == "normalised"
        require(
            normalised or self.scale >= _SMALLEST_PLAIN,
            f"scale is {self.scale}, and the plain flow takes a time of 1/scale",
            argument="scale",
            value=self.scale,
            remedy=f"choose at least {_SMALLEST_PLAIN}, or the normalised clock",
        )
        staircase = self._staircase(self.scale)
        times = (
            (1 / math.log(1 / self.scale), "times are known up to the growth of neurons by a factor of e")
            if normalised
            else (5 * self.scale, "what the times leave out falls with the scale")
        )
        slopes = (
            (0.01, "what the times leave out is the same at both scales, up to the overlap of drops")
            if normalised
            else (0.05, "what the times leave out changes little between the two scales")
        )
        return staircase_record(
            staircase,
            self._task,
            scale=self.scale,
            network="two-layer quadratic",
            jump_time_tolerance=times,
            slope_tolerance=slopes,
        )

    @functools.cached_property
    def _at_other_scale(self) -> xr.Dataset:
        """Trained once, however often it is compared."""
        return self._observe(other_scale(self.scale, degree=3, normalised=self.clock == "normalised", divisor=2.0))

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> xr.DataTree:
        """Levels and times at one scale, slopes between two."""
        from dynascope.comparison import compare

        return compare(observed, predicted, at_other_scale=self._at_other_scale, attributes=self.attributes())
