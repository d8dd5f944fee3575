"""The scaling law for compute: the multilinear model's lowest loss is a power law in training time × neurons."""

from __future__ import annotations

import functools
import math
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge

from dynascope.studies import Reference, Values, curve_tolerance, parameter
from dynascope.studies.scaling.scaling_compute import page
from dynascope.studies.scaling.scaling_compute.best_sizes import best_sizes
from dynascope.studies.scaling.skill_losses import losses_of_models
from dynascope.studies.scaling.skill_simulation import SkillScaling
from dynascope.theory import papers
from dynascope.theory.scaling_laws import ComputeOptimum, compute_optimum, fit, time_law
from dynascope.theory.scaling_laws.allocation import finite_optimum
from dynascope.theory.scaling_laws.finite_task import learning_folds, smooth_steps
from dynascope.validation.bounded import PositiveFloat, PositiveInt

_MODELS = (
    2e-4,
    "the law replaces the sum over skills by an integral; the error is 1e-4 while only one skill is being learned",
)
_LOSS = (2e-4, "the lowest loss is interpolated between models whose losses have this error")
_OPTIMUM = (2e-3, "the loss is flat around its minimum, so small errors in the loss shift the minimum")
_FEWEST = 50  # fewest neurons of a best model, for which the correction of half a neuron is negligible


class ScalingCompute(SkillScaling):
    """Tests the predicted lowest loss for a compute budget C among models of N neurons trained for a time C/N.

    In the multilinear model f = Σ_k a_k b_k g_k, each skill g_k has separate weights, and a_k b_k is its strength.
    Theory predicts that the lowest loss decays as C^(−α/(α+2)). The study compares the loss of every model at every
    budget with the law for finite time and size. For each budget, the study compares four results with the optimum of
    this law: the lowest loss, its ratio to the power law, the best training time and the best number of neurons. Fitted
    exponents and prefactors are compared with the power laws for large compute.
    """

    learning_rate: PositiveFloat = parameter(
        1.0,
        "Learning rate η, the gradient-flow time of one step; compute is the number of steps times the number of "
        "neurons.",
    )
    least_compute: PositiveFloat = parameter(3e6, "Smallest budget C.")
    most_compute: PositiveFloat = parameter(1e9, "Largest budget, at least twenty times `least_compute`.")
    budgets: Annotated[int, Ge(3)] = parameter(7, "Number of budgets, spaced geometrically.")
    fewest_neurons: PositiveInt = parameter(10, "Number of neurons of the smallest model.")
    most_neurons: PositiveInt = parameter(10_000, "Number of neurons of the largest model.")
    sizes: Annotated[int, Ge(3)] = parameter(101, "Number of models, in an approximately geometric sequence of sizes.")

    reference = Reference.of(
        papers.SKILLS,
        "The lowest loss of the multilinear model for a compute budget C, training time × neurons, decays as "
        "C^(−α/(α + 2)). Theory also predicts the training time and number of neurons that attain this loss.",
    )
    law = "compute"
    notes = (
        *SkillScaling.notes,
        "Infinitely many skills; each model has one neuron for each of the most frequent skills. Samples are fresh.",
    )
    axes = ("exponent", "compute")
    labelled = {"neurons": "_neurons"}
    along = ("compute", "exponent")
    title = "The scaling law for compute"
    question = "Given a compute budget, how large should a model be, and how low can its loss get?"
    figures, meaning = page.figures, page.meaning
    equation = r"\min_{T N = C} L(T, N) \propto C^{-\alpha / (\alpha + 2)}, \quad P(k) \propto k^{-(\alpha + 1)}"
    minutes = 0.2
    names = {
        **SkillScaling.names,
        "model_loss": ("loss of the multilinear model", "1"),
        "neurons_exponent": ("growth exponent of the best number of neurons", "1"),
        "limiting_neurons": ("best number of neurons according to the law for large compute", "neurons"),
        "optimal_neurons": ("best number of neurons", "neurons"),
        "optimal_time": ("best training time", "gradient-flow time"),
        "compute": ("compute, training time × neurons", "time × neurons"),
    }
    tolerance = curve_tolerance(
        loss=_LOSS,
        loss_over_law=_LOSS,
        model_loss=_MODELS,
        optimal_neurons=_OPTIMUM,
        optimal_time=_OPTIMUM,
        decay_exponent=(5e-4, "the law replaces N by N + ½ neurons, which changes this exponent at second order"),
        prefactor=(2e-3, "extrapolation to one unit of compute magnifies the error of the exponent"),
        neurons_exponent=(5e-3, "the law replaces N by N + ½ neurons, which changes this exponent at first order"),
    )
    tiny = {
        **{"exponents": [0.4, 0.8], "least_compute": 5e5, "most_compute": 5e7, "budgets": 6},
        **{"most_neurons": 2000, "sizes": 71},
    }

    def trained(self) -> Values:
        """Train all models by gradient flow and select the best one for each budget."""
        compute, times = self._amounts, self.learning_rate * (self._amounts[:, None] / self._neurons)
        losses = losses_of_models(self._exponents, self._neurons, times, **self._model)
        neurons, least = best_sizes(self._neurons, losses)
        # In a law that integrates over skills, a model of N neurons corresponds to N + ½.
        fits = [fit(loss, compute * (1 + 0.5 / best), floor=0.0) for loss, best in zip(least, neurons, strict=True)]
        growth = [fit(1 / best, compute, window=(compute[0], compute[-1]), floor=0.0).exponent for best in neurons]
        return {**self._fitted(least, compute, fits), **self._optimum(losses, neurons, growth)}

    def exact(self) -> Values:
        """The optimum of the law for finite time and size, and the power laws for large compute."""
        compute, ends, model = self._amounts, (self.fewest_neurons, self.most_neurons), self._theory
        losses = [
            [time_law(compute / each, alpha, neurons=each, **model) for each in self._neurons.tolist()]
            for alpha in self._exponents
        ]
        optima = [
            [finite_optimum(each, alpha, *ends, **model) for each in compute.tolist()] for alpha in self._exponents
        ]
        neurons, least = np.moveaxis(np.array(optima), -1, 0)
        return {
            **self._expected(least, compute),
            **self._optimum(np.swapaxes(losses, 1, 2), neurons, 1 / (self._exponents + 2)),
            "limiting_neurons": [each.neurons for each in self._limits],
        }

    def check(self) -> None:
        """Require that the best size for each budget lies within the trained sizes and follows the power law."""
        super().check()
        self._check_span("neurons")
        # Logarithm of the factor in size over which the loss rises above the best size.
        width = 1 / ((max(self.exponents) + 2) * learning_folds(self._contrast))
        needed = 1 + math.ceil(math.log(self.most_neurons / self.fewest_neurons) / width)
        remedy = f"choose {needed} or more, so that the models resolve the best size"
        self.require(self.sizes >= needed, "sizes", remedy)
        least, most = self.least_compute, self.most_compute
        remedy = "choose twenty times least_compute or more"
        self.require(20 * least <= most, "most_compute", remedy, beside="least_compute")
        needed = self._neurons[-1] * max(smooth_steps(alpha, **self._theory) for alpha in self._exponents)
        problem = f"with least_compute {least:g}, the largest model learns hardly any skill"
        remedy = f"choose {needed:.3g} or more, or smaller models"
        self.require(least >= needed, "least_compute", remedy, problem=problem)
        smallest = min(each.neurons[0] for each in self._limits)
        problem = f"the best model for least_compute {least:g} has only {smallest:.0f} neurons"
        remedy = (
            f"choose a larger value, for which the best model has at least {_FEWEST} neurons and twice as many as the "
            "smallest model"
        )
        self.require(smallest >= max(_FEWEST, 2 * self.fewest_neurons), "least_compute", remedy, problem=problem)
        largest = max(each.neurons[-1] for each in self._limits)
        problem = f"the best model for most_compute {most:g} has {largest:.0f} neurons"
        remedy = "choose a smaller value, for which the best model has at most half the neurons of the largest model"
        self.require(largest <= self.most_neurons / 2, "most_compute", remedy, problem=problem)

    def _optimum(self, losses: np.ndarray, neurons: np.ndarray, growth: Any) -> dict[str, Any]:
        """Losses of all models, the best size and time for each budget, and the growth exponent of the best size."""
        return {
            "model_loss": ((*self.axes, "neurons"), losses),
            "optimal_neurons": neurons,
            "optimal_time": self.learning_rate * self._amounts / neurons,
            "neurons_exponent": ("exponent", growth),
        }

    @functools.cached_property
    def _limits(self) -> list[ComputeOptimum]:
        """The optima in the limit of large compute, one for each α."""
        return [compute_optimum(self._amounts, alpha, **self._theory) for alpha in self._exponents]

    @functools.cached_property
    def _neurons(self) -> np.ndarray:
        return self._spaced("neurons")

    @functools.cached_property
    def _amounts(self) -> np.ndarray:
        return np.geomspace(self.least_compute, self.most_compute, self.budgets)
