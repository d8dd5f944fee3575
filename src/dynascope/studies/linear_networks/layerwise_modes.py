"""A diagonal linear network learns its modes one after the other; each mode strength follows a sigmoid."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np
import xarray as xr
from annotated_types import Ge

from dynascope.flows.solvers.solver import Solver
from dynascope.networks import DiagonalLinear
from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.tasks import Task
from dynascope.tasks.known_modes import power_law_modes
from dynascope.theory.scalar_networks import mode_strength
from dynascope.validation.bounded import FiniteFloat, PositiveFloat, PositiveInt, Seed


class LayerwiseModes(Study):
    """Tests closed forms for the mode strengths and the loss of a diagonal linear network.

    The model is f(x) = Σ aᵢ bᵢ xᵢ with uncorrelated inputs, E[xᵢ xⱼ] = λᵢ δᵢⱼ and λᵢ = i^−(exponent + 1). The targets
    are y = target · Σ xᵢ. The strength of mode i is aᵢ bᵢ.
    """

    modes: PositiveInt = parameter(5, "Number of modes, equal to the number of inputs.")
    exponent: FiniteFloat = parameter(0.6, "Exponent α of the spectrum λᵢ = i^−(α + 1).")
    target: FiniteFloat = parameter(1.0, "Strength S of every mode in the target; it may be negative but not zero.")
    initial_strength: PositiveFloat = parameter(
        1e-4, "Initial |a·b| of every mode, smaller than |S|; a·b has the sign of S."
    )
    imbalance: FiniteFloat = parameter(0.0, "Initial log|b/a|; at zero, both layers have the same norm.")
    samples: PositiveInt = parameter(
        50,
        "Number of samples; the inputs are transformed to have the exact second moments.",
        least="modes",
    )
    times: Annotated[int, Ge(2)] = parameter(400, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the inputs.")

    reference = Reference.of(
        "A. M. Saxe, J. L. McClelland, S. Ganguli, Exact solutions to the nonlinear dynamics of learning in deep "
        "linear neural networks (arXiv 1312.6120)",
        "Each mode of a two-layer diagonal linear network follows an independent sigmoid that has a closed form. The "
        "modes are learned in stages, in order of decreasing input variance.",
    )
    title = "Modes learned one by one"
    question = "In which order does a network learn the modes of its data, and how fast?"
    equation = r"\dot a_i = \lambda_i \, b_i \, (S - a_i b_i), \quad \dot b_i = \lambda_i \, a_i \, (S - a_i b_i)"
    minutes = 0.1
    theory = "sigmoidal modes"
    trains = "diagonal"
    tolerance = exact(
        "loss", "mode_strength", reason="the theory is exact, and the local error of the solver is below 1e-9"
    )
    tiny = {"modes": 2, "samples": 6, "times": 40, "initial_strength": 1e-2}

    def check(self) -> None:
        """Check that the target is not zero and that the initial strength is below |target|."""
        self.require(self.target, "target", "choose a finite number other than zero")
        remedy = "choose a positive number smaller than |target|"
        self.require(self.initial_strength < abs(self.target), "initial_strength", remedy, beside="target")

    def trained(self) -> xr.Dataset:
        """Train by gradient flow on the weights."""
        network = DiagonalLinear(self.modes).with_neurons(np.stack(self._start, axis=1))
        return self.integrate(network, _mode_strength, solver=Solver(relative_tolerance=1e-9, absolute_tolerance=1e-12))

    def exact(self) -> Values:
        """Evaluate the closed form of each mode, and the resulting loss."""
        powers = np.diag(self._task.input_moment)
        mode = mode_strength(self._times[:, None], self.target, powers, *self._start)
        return {
            "loss": np.sum(powers * np.asarray(mode.residual) ** 2, axis=1) / 2,
            "mode_strength": (("time", "mode"), mode.strength),
        }

    def figures(self, result: Comparison) -> list[Chart]:
        """The figures: the strengths of the modes, and the loss."""
        loss = result.observed["loss"]
        return [
            Chart(
                "mode_strength",
                residual=True,
                title="Strength of each mode",
                caption=f"Strength of each mode over time. The variance of input i is i^{rounded(-self.exponent - 1)}. "
                "A mode with a small initial strength stays near zero for a long time and then rises quickly. The "
                "lower panel shows training minus theory.",
            ),
            Chart(
                "loss",
                title="Loss",
                caption=f"Loss over time. The loss falls from {rounded(loss[0])} at initialisation to "
                f"{rounded(loss[-1])}.",
            ),
        ]

    def meaning(self, result: Comparison) -> str:
        """Summarise the order of the modes, and the deviation of training from the closed form."""
        return (
            f"A diagonal linear network f(x) = Σ aᵢ bᵢ xᵢ was trained on {self.modes} uncorrelated inputs. Every input "
            f"has the same coefficient in the target, but the variance of input i is i^{rounded(-self.exponent - 1)}. "
            "The theory predicts that the strength of each mode follows a sigmoid, with a rate proportional to the "
            "variance of its input: modes with a large variance are learned first. The mode strengths in training "
            f"differ from the closed form by at most {rounded(result.quantities['mode_strength_maximum'].error)} of "
            "the largest strength. This is the simplest case of stage-like learning: because the inputs are "
            "uncorrelated, the modes do not interact."
        )

    @functools.cached_property
    def _task(self) -> Task:
        return power_law_modes(self.modes, self.exponent, self.target, samples=self.samples, seed=self.seed)

    @property
    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        size, ratio = np.full(self.modes, np.sqrt(self.initial_strength)), np.exp(self.imbalance / 2)
        # With the opposite sign, a mode would have to cross zero, a saddle at which balanced layers stop.
        return size / ratio, np.sign(self.target) * size * ratio

    @property
    def _times(self) -> np.ndarray:
        """Times until long after the mode with the smallest variance is learned."""
        rate = 2 * abs(self.target) * self.modes ** -(self.exponent + 1)
        return np.linspace(0.0, (np.log(abs(self.target) / self.initial_strength) + 8) / rate, self.times)


def _mode_strength(network: DiagonalLinear) -> dict[str, tuple[tuple[str, ...], Any]]:
    return {"mode_strength": (("mode",), network.coefficients)}
