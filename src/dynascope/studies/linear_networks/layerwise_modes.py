"""Modes of a diagonal network rise as sigmoids, one after the other."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import xarray as xr

from dynascope.networks import DiagonalLinear
from dynascope.results import Chart
from dynascope.studies import Reference, Study, Values, exact
from dynascope.studies.fields import count, number, positive, seed
from dynascope.tasks import Task
from dynascope.tasks.known_modes import power_law_modes
from dynascope.theory.scalar_networks import mode_strength


class LayerwiseModes(Study):
    """Strength of every mode, and the loss, over time, for independent inputs with power-law variances.

    The model is f(x) = Σ aᵢ bᵢ xᵢ with E[xᵢ xⱼ] = λᵢ δᵢⱼ, λᵢ = i^−(exponent + 1), and targets y = target · Σ xᵢ.
    """

    modes: int = count(5, "Number of modes.")
    exponent: float = number(0.6, "α of the spectrum λᵢ = i^−(α + 1).")
    target: float = number(1.0, "Strength S that every mode has in the target; may be negative.", nonzero=True)
    initial_strength: float = positive(
        1e-4, "|a·b| at the start of every mode, below the size of the target; its sign is the target's."
    )
    imbalance: float = number(0.0, "log(b/a) at the start; zero starts both layers equal.")
    samples: int = count(
        50, "Number of samples; the inputs are transformed so that their moments are exact.", least="modes"
    )
    times: int = count(400, "Number of times at which both are recorded.", least=2)
    seed: int = seed("Seed of the inputs.")

    reference = Reference.of(
        "A. M. Saxe, J. L. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep "
        "linear neural networks (arXiv 1312.6120)",
        "Each mode of a two-layer diagonal network follows its own closed-form sigmoid, so that modes are "
        "learned in stages, strongest first.",
    )
    title = "Modes learned one by one"
    question = "In which order, and how fast, are the modes of the data learned?"
    figures = (
        Chart(
            "mode_strength",
            residual=True,
            title="One sigmoid after the other",
            caption="What the network has learned of each mode, from the most frequent (1) to the rarest: for long "
            "next to nothing, then all within a short time. Below: training less theory.",
        ),
        Chart(
            "loss",
            title="The loss",
            caption="The loss falls with each mode that is learned, from {observed.loss:first} to "
            "{observed.loss:last}.",
        ),
    )
    meaning = (
        "A network with two weights for each of {parameters.modes} independent inputs was trained on targets that "
        "hold all inputs alike, while their variances fall as a power law; a weight that starts small grows in "
        "proportion to itself. By theory each mode waits, rises and is done, in the order of the variances, although "
        "all are equally strong in the target; there is a closed form for it, from which training differs by "
        "{agreement.mode_strength} of its size. This is the simplest case of learning in stages; in it the modes do "
        "not disturb each other."
    )
    minutes = 0.1
    theory = "sigmoidal modes"
    trains = "diagonal"
    tolerance = exact("loss", "mode_strength", reason="the theory is exact, and the solver keeps each step within 1e-9")
    tiny = {"modes": 2, "samples": 6, "times": 40, "initial_strength": 1e-2}

    def check(self) -> None:
        """Modes rise to the target."""
        remedy = "choose a positive number below the size of the target"
        self.require(self.initial_strength < abs(self.target), "initial_strength", remedy, beside="target")

    def trained(self) -> xr.Dataset:
        """Train by gradient flow on the weights."""
        network = DiagonalLinear(self.modes).with_neurons(np.stack(self._start, axis=1))
        return self.followed(network, _mode_strength, relative_tolerance=1e-9, absolute_tolerance=1e-12)

    def exact(self) -> Values:
        """The closed form of each mode, and the loss that they add up to."""
        powers = np.diag(self._task.input_moment)
        mode = mode_strength(self._times[:, None], self.target, powers, *self._start)
        return {
            "loss": np.sum(powers * np.asarray(mode.residual) ** 2, axis=1) / 2,
            "mode_strength": (("time", "mode"), mode.strength),
        }

    @functools.cached_property
    def _task(self) -> Task:
        return power_law_modes(self.modes, self.exponent, self.target, samples=self.samples, seed=self.seed)

    @property
    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        size, ratio = np.full(self.modes, np.sqrt(self.initial_strength)), np.exp(self.imbalance / 2)
        # From the other sign a mode would have to pass zero, where equal layers stay.
        return size / ratio, np.sign(self.target) * size * ratio

    @property
    def _times(self) -> np.ndarray:
        """Until the weakest mode has long been learned."""
        rate = 2 * abs(self.target) * self.modes ** -(self.exponent + 1)
        return np.linspace(0.0, (np.log(abs(self.target) / self.initial_strength) + 8) / rate, self.times)


def _mode_strength(network: DiagonalLinear) -> dict[str, tuple[tuple[str, ...], Any]]:
    return {"mode_strength": (("mode",), network.coefficients)}
