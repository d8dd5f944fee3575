"""Four equivalent ways to move a scalar network from lazy to rich learning: scale weights, target, input or output."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.regimes.scalar_network import page
from dynascope.studies.regimes.scalar_training import trained_curves
from dynascope.theory.scalar_networks.scalar import (
    ScalarLimit,
    Scaling,
    Setting,
    equivalent_scalings,
    scalar_limit,
    scalar_trajectory,
)
from dynascope.validation.bounded import FiniteFloat, PositiveFloat, PositiveInt, Seed

_DIALS = ("target", "output", "input", "weights")


class ScalarNetwork(Study):
    """Trains the network f(x) = (x/Z) Σ aᵢ bᵢ on y = S x under four scalings, each with the same factors c.

    One scaling multiplies the target by c. The others divide the output by c, the input by c (with unchanged labels),
    or the weights by √c. The learning rate compensates for the time scale of each scaling, so that the distance to the
    target decays as exp(−t) at late times. Theory then predicts the same curves for all four scalings: the growth ln γ
    of the weights, the learned part of the target, and the relative loss.
    """

    factors: list[PositiveFloat] = parameter(
        [0.1, 1.0, 10.0], "Factors c. Large factors make learning rich, and small factors make it lazy."
    )
    neurons: PositiveInt = parameter(8, "Number of hidden neurons.")
    target: FiniteFloat = parameter(
        1.0, "Slope S of the target before scaling. It must not be zero and may be negative."
    )
    weight_scale: PositiveFloat = parameter(1.0, "Standard deviation of the initial weights, multiplied by √neurons.")
    input_power: PositiveFloat = parameter(1.0, "Second moment E[x²] of the input before scaling.")
    divisor: FiniteFloat = parameter(1.0, "Divisor Z of the output before scaling. It must not be zero.")
    samples: PositiveInt = parameter(10, "Number of samples.")
    times: Annotated[int, Ge(2)] = parameter(200, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the initial weights and of the samples.")

    reference = Reference.of(
        "Y. Nam, S. H. Lee, C. C. J. Dominé, Y. Park, C. London, W. Choi, N. Göring, S. Lee, Position: Solve Layerwise "
        "Linear Models First to Understand Neural Dynamical Phenomena (arXiv 2502.21009)",
        "Small weights, a large target, a small output and a small input make learning in a two-layer network rich in "
        "exactly the same way. The training curves differ only in their time scale.",
        also="The equivalence of the four scalings is a theorem in Y. Nam, DPhil thesis (2024).",
    )
    title = "Four equivalent routes to rich learning"
    question = "Do small weights, large targets, small outputs and small inputs lead to the same regime?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"f(x) = \frac{x}{Z} \sum_i a_i b_i, \quad \dot a_i = \frac{E[x^2]}{Z} \, b_i \left( S - \frac{1}{Z} "
        r"\sum_j a_j b_j \right)"
    )
    minutes = 0.2
    symbols = {"scaling_parameter": "c"}
    theory = "scalar network"
    axes = ("dial", "scaling_parameter", "time")
    task = "a line through the origin"
    notes = (
        "The {samples} inputs have second moment {input_power:g}, and the targets have slope {target:g}.",
        "Time is measured in units of the time constant of the final approach to the target.",
    )
    trains = "two-layer linear"
    flow = "gradient flow"
    names = {
        "time": ("training time × final rate of approach", "1"),
        "relative_loss": ("loss relative to the initial loss", "1"),
        "log_growth": ("growth ln γ of the weights", "1"),
        "final_log_growth": ("final growth ln γ of the weights", "1"),
    }
    labelled = {"dial": _DIALS, "scaling_parameter": "factors"}
    tolerance = exact("loss", "relative_loss", "learned_fraction", "log_growth")
    tiny = {"factors": [0.5, 4.0], "neurons": 3, "samples": 4, "times": 40}

    def check(self) -> None:
        """Check that target and divisor are not zero."""
        for name in ("target", "divisor"):
            self.require(getattr(self, name), name, "choose a finite number other than zero")

    def trained(self) -> Values:
        """Train every network by gradient flow."""
        inputs = np.random.default_rng([self.seed, 1]).normal(size=(self.samples, 1))
        found = self._scaled_curves(lambda setting, rate: trained_curves(setting, inputs, self._times, rate))
        return {**found, "final_log_growth": (self.axes[:2], found["log_growth"][..., -1])}

    def exact(self) -> Values:
        """Evaluate the exact solution of every network."""
        found = self._scaled_curves(self._solve)
        return {**found, "final_log_growth": (self.axes[:2], found["final_log_growth"])}

    def _scaled_curves(self, curves: Callable[[Setting, float], Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """Curves of the networks for every scaling and factor, each with its learning rate."""

        def at(dial: str, c: float) -> Values:
            scaling = self._scalings[c][dial]
            return curves(scaling.setting, 1 / (float(scaling.clock) * float(self._limits[c].rate)))

        runs = [[at(dial, c) for c in self.factors] for dial in _DIALS]
        return {name: np.array([[run[name] for run in row] for row in runs]) for name in runs[0][0]}

    def _solve(self, setting: Setting, learning_rate: float) -> Values:
        path = scalar_trajectory(setting, self._times, learning_rate=learning_rate)
        return {
            "loss": path.loss,
            "relative_loss": path.loss / path.loss[0],
            "learned_fraction": 1 - path.residual / setting.target,
            "log_growth": path.log_growth,
            "final_log_growth": scalar_limit(setting).log_growth,
        }

    @functools.cached_property
    def _scalings(self) -> dict[float, dict[str, Scaling]]:
        draw = np.random.default_rng(self.seed).normal(size=(2, self.neurons))
        output_weights, input_weights = self.weight_scale / np.sqrt(self.neurons) * draw
        setting = Setting(self.target, output_weights, input_weights, self.input_power, self.divisor)
        return {c: equivalent_scalings(setting, c) for c in self.factors}

    @functools.cached_property
    def _limits(self) -> dict[float, ScalarLimit]:
        """Limits of the networks with a scaled target; the other scalings have the same limits up to the time scale."""
        return {c: scalar_limit(each["target"].setting) for c, each in self._scalings.items()}

    @property
    def _times(self) -> np.ndarray:
        """Times until the richest network has left the saddle and converged."""
        return np.linspace(0.0, 8.0 + max(float(end.richness) for end in self._limits.values()), self.times)
