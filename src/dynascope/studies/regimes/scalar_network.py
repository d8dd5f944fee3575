"""Weights, target, input and output of a scalar network are four equivalent dials, from lazy to rich."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dynascope.results import Chart
from dynascope.studies import Reference, Study, Values, exact
from dynascope.studies.fields import count, number, numbers, positive, seed
from dynascope.studies.regimes.scalar_training import trained_curves
from dynascope.theory.scalar_networks.scalar import Limit, Scaling, Setting, equivalent_scalings, limit, trajectory

_DIALS = ("target", "output", "input", "weights")


class ScalarNetwork(Study):
    """The network f(x) = (x/Z) Σ aᵢ bᵢ learns y = S x under four dials, each turned by the same factors c.

    The dials are the target times c, the output divided by c, the input divided by c for the same labels, and the
    weights divided by √c. Each is trained on samples at the learning rate that undoes its clock, and at which the
    distance to the target falls as exp(−t) in the end; theory then says that the four coincide at all times, with the
    same growth of the weights ln γ, and the same part of the target and of the loss.
    """

    factors: list[float] = numbers(
        [0.1, 1.0, 10.0], "Factors c; large ones make learning rich, small ones lazy.", above=0.0
    )
    neurons: int = count(8, "Number of hidden neurons.")
    target: float = number(1.0, "S ≠ 0, of any sign, before it is scaled.", nonzero=True)
    weight_scale: float = positive(
        1.0, "Standard deviation of the initial weights, times the square root of the number of neurons."
    )
    input_power: float = positive(1.0, "E[x²] before it is scaled.")
    divisor: float = number(1.0, "Z ≠ 0 before it is scaled.", nonzero=True)
    samples: int = count(10, "Number of samples.")
    times: int = count(200, "Number of times at which both are recorded.", least=2)
    seed: int = seed("Seed of the initial weights and of the samples.")

    reference = Reference.of(
        "Y. Nam, S. H. Lee, C. C. J. Dominé, Y. Park, C. London, W. Choi, N. Göring, S. Lee, Position: Solve Layerwise "
        "Linear Models First to Understand Neural Dynamical Phenomena (arXiv 2502.21009)",
        "Small weights, a large target, a small output and a small input make a two-layer network rich in exactly the "
        "same way: the four trainings differ in nothing but their clock.",
        also="; theorem in Nam, DPhil thesis (2024)",
    )
    title = "Four equivalent dials"
    question = "Are small weights, large targets, small outputs and small inputs four ways to the same thing?"
    figures = (
        Chart(
            "final_log_growth",
            "dial",
            "By how much the weights have grown at the end of training (ln γ), when one of four things is changed by "
            "a factor c: the target times c, the output or the input divided by c, or the weights divided by √c. "
            "Points of one colour are level where all four have the same effect.",
            title="Four dials, one effect",
            x_label="what is changed",
        ),
        Chart(
            "log_growth",
            "time",
            "The growth over time where the target is changed; under the other dials training takes the same course, "
            "with its clock undone by the learning rate. The panel below shows training less theory; of all dials, "
            "both differ by at most {agreement.log_growth_maximum} of the size of a curve.",
            places={"dial": (0,)},
            residual=True,
            title="The growth over time",
        ),
        Chart(
            "learned_fraction",
            "time",
            "The part of the target that is learned, where the weights are changed. Time is counted in units of the "
            "last approach to the target: rich networks (large c) are slow to leave their start, lazy ones approach "
            "the target from the beginning. It starts below zero where the first weights make a line of the wrong "
            "sign.",
            places={"dial": (-1,)},
            title="What is learned over time",
        ),
    )
    meaning = (
        "A network of one input and {parameters.neurons} linear hidden neurons learns the slope of a line, from "
        "weights, targets, outputs or inputs that are changed by factors c. How much its weights grow says how rich "
        "learning is: hardly in a lazy network, manyfold in a rich one. For c = {observed.scaling_parameter:first} "
        "their power grows by ln γ between {observed.final_log_growth[scaling_parameter=first]:least} and "
        "{observed.final_log_growth[scaling_parameter=first]:most} over the four dials, for c = "
        "{observed.scaling_parameter:last} between {observed.final_log_growth[scaling_parameter=last]:least} and "
        "{observed.final_log_growth[scaling_parameter=last]:most}; theory says "
        "{predicted.final_log_growth[scaling_parameter=first]:mean} and "
        "{predicted.final_log_growth[scaling_parameter=last]:mean} for all of them. By theory richness is one number "
        "in this network, and each dial is a way to set it; in larger and nonlinear networks the four need not be "
        "alike."
    )
    minutes = 0.2
    symbols = {"scaling_parameter": "c"}
    theory = "scalar network"
    axes = ("dial", "scaling_parameter", "time")
    task = "a line through the origin"
    told = (
        "{samples} inputs of second moment {input_power:g}, and targets of slope {target:g}.",
        "Times are in units of the final rate of approach.",
    )
    trains = "two-layer linear"
    flow = "gradient flow"
    names = {
        "time": ("training time × final rate of approach", "1"),
        "relative_loss": ("loss relative to its start", "1"),
        "log_growth": ("growth of the weights (its logarithm)", "1"),
        "final_log_growth": ("growth of the weights at the end (its logarithm)", "1"),
    }
    labelled = {"dial": _DIALS, "scaling_parameter": "factors"}
    tolerance = exact("loss", "relative_loss", "learned_fraction", "log_growth")
    tiny = {"factors": [0.5, 4.0], "neurons": 3, "samples": 4, "times": 40}

    def trained(self) -> Values:
        """Train every network on its samples by gradient flow."""
        inputs = np.random.default_rng([self.seed, 1]).normal(size=(self.samples, 1))
        found = self._turned(lambda setting, rate: trained_curves(setting, inputs, self._times, rate))
        return {**found, "final_log_growth": (self.axes[:2], found["log_growth"][..., -1])}

    def exact(self) -> Values:
        """The exact solution of every network."""
        found = self._turned(self._solve)
        return {**found, "final_log_growth": (self.axes[:2], found["final_log_growth"])}

    def _turned(self, curves: Callable[[Setting, float], Mapping[str, Any]]) -> dict[str, np.ndarray]:
        """The curves of the networks with every dial turned by every factor, each at its learning rate."""

        def at(dial: str, c: float) -> Values:
            scaling = self._scalings[c][dial]
            return curves(scaling.setting, 1 / (float(scaling.clock) * float(self._ends[c].rate)))

        runs = [[at(dial, c) for c in self.factors] for dial in _DIALS]
        return {name: np.array([[run[name] for run in row] for row in runs]) for name in runs[0][0]}

    def _solve(self, setting: Setting, learning_rate: float) -> Values:
        path = trajectory(setting, self._times, learning_rate=learning_rate)
        return {
            "loss": path.loss,
            "relative_loss": path.loss / path.loss[0],
            "learned_fraction": 1 - path.residual / setting.target,
            "log_growth": path.log_growth,
            "final_log_growth": limit(setting).log_growth,
        }

    @functools.cached_property
    def _scalings(self) -> dict[float, dict[str, Scaling]]:
        draw = np.random.default_rng(self.seed).normal(size=(2, self.neurons))
        output_weights, input_weights = self.weight_scale / np.sqrt(self.neurons) * draw
        setting = Setting(self.target, output_weights, input_weights, self.input_power, self.divisor)
        return {c: equivalent_scalings(setting, c) for c in self.factors}

    @functools.cached_property
    def _ends(self) -> dict[float, Limit]:
        """Where the networks with a scaled target end; the others end there by their own clocks."""
        return {c: limit(each["target"].setting) for c, each in self._scalings.items()}

    @property
    def _times(self) -> np.ndarray:
        """Until the richest network has long left the saddle and come to its end."""
        return np.linspace(0.0, 8.0 + max(float(end.richness) for end in self._ends.values()), self.times)
