"""A network with four parameters learns a parity neuron by neuron, at predicted times."""

from __future__ import annotations

import functools
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.probes.half_strength import first_passages
from dynascope.studies import Reference, Study, Values, curve_tolerance, parameter
from dynascope.studies.scaling.four_parameter_parity import page
from dynascope.studies.scaling.four_parameter_parity.network import TiedParity
from dynascope.tasks import Task
from dynascope.theory import papers
from dynascope.theory.skills import parity_relu
from dynascope.theory.skills.multilinear import skill_strengths
from dynascope.theory.skills.parity_relu import INPUTS, TiedWeights
from dynascope.validation.bounded import FiniteFloat, PositiveFloat

_MODES = 3
_SETTLED = 12.0  # duration of training after the last half-saturation, in slowest time constants of the fixed point
_FIGURE = 1 / 3  # ℬ² of the multilinear model in the paper's figure
_END = (1e-4, "training lasts at least twelve times the slowest time constant at the fixed point")
_EXACT = (1e-6, "the equations are exact, and both solvers use a relative tolerance of 1e-10")


class FourParameterParity(Study):
    """Trains a ReLU network w·σ(W x + b) + c with tied weights on all eight inputs of the parity of three bits.

    The rows of W are α(−1, 1, −1), β(−1, 1, −1) and γ(1, −1, 1), b = (0, β, −γ) and w = (−2α, β, γ). The parameters α,
    β, γ and c are trained by gradient flow. The study compares training with the closed equations for α², β², γ² and c.
    The compared curves are the parameters, the loss and the strength of each neuron over time. The study also compares
    the time at which each neuron first reaches half of its final strength, and the fixed point α² = β² = γ² = 2S, c =
    −S. The strength of the skill is the sum over neurons. The skill rises over a longer time than the logistic curve of
    the multilinear model (`multilinear_strength`), which is shown but does not affect the verdict.
    """

    target_scale: PositiveFloat = parameter(5.0, "Magnitude S of the targets ±S.")
    scales: list[PositiveFloat] = parameter(
        [0.1, 0.01, 0.001], "Scales of the initial weights; one network is trained per scale."
    )
    neurons: list[PositiveFloat] = parameter(
        [1.0, 1.0, 1.0], "Initial values of α, β and γ at scale one.", fewest=_MODES, repeats=True
    )
    bias: FiniteFloat = parameter(0.0, "Initial value of c at scale one.")
    learning_rate: PositiveFloat = parameter(1.0, "Learning rate η.")
    times: Annotated[int, Ge(200)] = parameter(
        400, "Number of recorded times, enough to interpolate the half-saturation times."
    )

    reference = Reference.of(
        papers.SKILLS,
        "In a network with four parameters, the neurons learn their parts of a parity at different times, which closed "
        "equations predict.",
        also="See also appendix C.4 of Y. Nam, DPhil thesis (2024); this study corrects its formulas.",
    )
    theory = "four-parameter parity"
    axes = ("scale", "time")
    task = "parity of three bits"
    notes = ("All eight inputs, with targets ±{target_scale:g}.",)
    trains = "ReLU, three tied neurons and a bias"
    flow = "gradient flow"
    labelled = {"scale": "scales", "weight": ("α²", "β²", "γ²", "c")}
    along = ("time", "scale")
    title = "A parity learned neuron by neuron"
    question = "Why does a skill saturate more slowly than it rises?"
    figures, meaning = page.figures, page.meaning
    equation = r"f(x) = w \cdot \sigma(W x + b) + c, \quad w = (-2\alpha, \beta, \gamma)"
    minutes = 0.2
    names = {
        "multilinear_strength": ("strength in the multilinear model", "1"),
        "strength": ("strength of the skill", "1"),
        "half_saturation_time": ("time at which a neuron reaches half of its final strength", "gradient-flow time"),
        "parameters": ("parameter of the network", "1"),
    }
    tolerance = curve_tolerance(
        **dict.fromkeys(("loss", "parameters", "mode_strength", "strength"), _EXACT),
        half_saturation_time=(1e-5, "half-saturation times are interpolated between recorded times"),
        final_parameters=_END,
    )
    tiny = {"scales": [0.3, 0.1], "target_scale": 2.0, "times": 200}

    def trained(self) -> Values:
        """Train the network by gradient flow from initial weights of every scale."""
        parity = self.target_scale * (-1.0) ** INPUTS.sum(axis=1, keepdims=True)
        run, end = gradient_flow(
            Task(INPUTS, parity, name="parity of three bits"),
            TiedParity(np.asarray(self.neurons, float), np.asarray(self.bias, float)),
            GradientFlow(
                # The slowest rate at the fixed point is η 3/8, of the bias, at large S and η 4S/7 at small S; the sum
                # of both time constants bounds that of any S.
                duration=float(self._times[-1] + _SETTLED * (8 / 3 + 7 / (4 * self.target_scale)) / self.learning_rate),
                learning_rate=self.learning_rate,
                solver=Solver(relative_tolerance=1e-10),
                save=self._times,
                statistics=_STATISTICS,
            ),
            scale=self.scales,
            return_networks=True,
        )
        strength = run["neuron_outputs"].to_numpy() @ parity[:, 0] / (len(INPUTS) * self.target_scale**2)
        parameters = run["parameters"].to_numpy()
        halves = [first_passages(self._times, each[:, :_MODES], self.target_scale) for each in parameters]
        ends = np.column_stack([end.neurons**2, end.bias])
        return {"loss": run["loss"], **self._compared(parameters, strength, halves, ends)}

    def exact(self) -> Values:
        """The solution of the equations and their fixed point."""
        scale = self.target_scale
        model = {"target_scale": scale, "learning_rate": self.learning_rate}
        paths = [parity_relu.integrated_path(self._times, start, **model) for start in self._starts]
        modes = np.array([parity_relu.mode_strengths(path, scale) for path in paths])
        rate = _FIGURE * scale * self.learning_rate
        multilinear = [
            skill_strengths(self._times, [1.0], target_scale=1.0, initial_strength=start, learning_rate=rate)[:, 0]
            for start in modes[:, 0].sum(axis=-1)
        ]
        ends = np.tile(np.array(parity_relu.fixed_point(scale)), (len(self.scales), 1))
        return {
            "loss": [parity_relu.loss(path, scale) for path in paths],
            **self._compared(np.array([np.stack(path, axis=-1) for path in paths]), modes, self._half_times, ends),
            "multilinear_strength": multilinear,
        }

    def check(self) -> None:
        """Require that every neuron starts below half of its final strength."""
        self.require(len(self.neurons) == _MODES, "neurons", "give three numbers")
        problem = f"scales is {self.scales}, but a neuron starts above half of its final strength"
        remedy = "give smaller numbers, so that (scale·neuron)² is below target_scale"
        largest = (max(self.scales) * max(self.neurons)) ** 2
        self.require(largest < self.target_scale, "scales", remedy, problem=problem)

    def _compared(self, parameters: np.ndarray, modes: np.ndarray, halves: Any, ends: np.ndarray) -> dict[str, Any]:
        """The compared variables: parameters, strengths, half-saturation times and final parameters."""
        return {
            "parameters": ((*self.axes, "weight"), parameters),
            "mode_strength": ((*self.axes, "mode"), modes),
            "strength": modes.sum(axis=-1),
            "half_saturation_time": (("scale", "mode"), halves),
            "final_parameters": (("scale", "weight"), ends),
        }

    @functools.cached_property
    def _starts(self) -> list[TiedWeights]:
        first, second, third = np.asarray(self.neurons, float) ** 2
        return [TiedWeights(first * s**2, second * s**2, third * s**2, self.bias * s) for s in self.scales]

    @functools.cached_property
    def _half_times(self) -> np.ndarray:
        model = {"target_scale": self.target_scale, "learning_rate": self.learning_rate}
        return np.array([parity_relu.half_saturation_times(start, **model) for start in self._starts])

    @property
    def _times(self) -> np.ndarray:
        """Recorded times, up to twice the last half-saturation time."""
        return np.linspace(0.0, 2 * self._half_times.max(), self.times)


# A module-level object, so that compiled programs are reused.
_STATISTICS = {
    "parameters": (lambda network: network.squares, ("weight",)),
    "neuron_outputs": (lambda network: network.outputs(INPUTS).T, ("mode", "sample")),
}
