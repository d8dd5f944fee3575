"""The least loss of a model for given compute, the product of its training time and the number of its neurons."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dynascope.studies import Reference, Values, curve_tolerance
from dynascope.studies.fields import count, positive
from dynascope.studies.scaling.scaling_compute.best_sizes import best_sizes
from dynascope.studies.scaling.scaling_compute.page import FIGURES, MEANING
from dynascope.studies.scaling.skill_losses import losses_of_models
from dynascope.studies.scaling.skill_simulation import SkillScaling
from dynascope.theory import papers
from dynascope.theory.scaling_laws import ComputeOptimum, compute_optimum, fit, time_law
from dynascope.theory.scaling_laws.allocation import finite_optimum
from dynascope.theory.scaling_laws.finite_task import learning_folds, smooth_steps

_MODELS = (2e-4, "the law integrates over skills, which costs 1e-4 when no more than one of them is being learned")
_LOSS = (2e-4, "as for all models, of which the best one is interpolated")
_OPTIMUM = (2e-3, "the loss is level around its least value, so that small errors of it shift its place")
_FEWEST = 50  # neurons of the best model, from which on half a neuron hardly matters


class ScalingCompute(SkillScaling):
    """Models of many sizes N, each trained for the time T = C/N: their least loss falls with the compute as C^−α/(α+2).

    Compared are the loss of every model for every budget; the least loss for each budget, itself and over the power
    law, with the time and neurons that it takes, against the least that the law of finite time and size allows; and
    exponents and prefactors of fits against the power laws of large compute.
    """

    learning_rate: float = positive(1.0, "η, the gradient-flow time of a step; compute is in steps times neurons.")
    least_compute: float = positive(3e6, "Smallest budget C.")
    most_compute: float = positive(1e9, "Largest budget, at least twenty times the smallest.")
    budgets: int = count(7, "Number of budgets, at equal ratios; a power law is fitted to three or more.", least=3)
    fewest_neurons: int = count(10, "Neurons of the smallest model.")
    most_neurons: int = count(10_000, "Neurons of the largest one.")
    sizes: int = count(101, "Number of models, at about equal ratios.", least=3)

    reference = Reference.of(
        papers.SKILLS,
        "For given compute, time multiplied by neurons, the least loss of the multilinear model falls by the power "
        "α/(α + 2), at a time and with neurons that are known.",
    )
    law = "compute"
    told = (
        *SkillScaling.told,
        "Infinitely many skills, of which each model has a neuron for its most frequent ones; fresh samples.",
    )
    axes = ("exponent", "compute")
    labelled = {"neurons": "_neurons"}
    along = ("compute", "exponent")
    title = "The scaling law of compute"
    question = "For a given budget of computation, how large should a model be, and how good can it get?"
    figures = FIGURES
    meaning = MEANING
    minutes = 0.2
    names = {
        **SkillScaling.names,
        "model_loss": ("loss of the multilinear model", "1"),
        "neurons_exponent": ("exponent of the best number of neurons", "1"),
        "limiting_neurons": ("best number of neurons, law of large compute", "neurons"),
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
        decay_exponent=(5e-4, "what half a neuron matters in the second order, from fifty neurons on"),
        prefactor=(2e-3, "as for the exponent, and extrapolated from the budgets to a single unit"),
        neurons_exponent=(5e-3, "what half a neuron matters in the first order, from fifty neurons on"),
    )
    tiny = {
        **{"exponents": [0.4, 0.8], "least_compute": 5e5, "most_compute": 5e7, "budgets": 6},
        **{"most_neurons": 2000, "sizes": 71},
    }

    def trained(self) -> Values:
        """Train all models by gradient flow, and take the best one for each budget."""
        compute, times = self._amounts, self.learning_rate * (self._amounts[:, None] / self._neurons)
        losses = losses_of_models(self._exponents, self._neurons, times, **self._model)
        neurons, least = best_sizes(self._neurons, losses)
        # A model of N neurons has the loss of N + ½ in a law that integrates over skills.
        fits = [fit(loss, compute * (1 + 0.5 / best), floor=0.0) for loss, best in zip(least, neurons, strict=True)]
        growth = [fit(1 / best, compute, window=(compute[0], compute[-1]), floor=0.0).exponent for best in neurons]
        return {**self._fitted(least, compute, fits), **self._optimum(losses, neurons, growth)}

    def exact(self) -> Values:
        """The least of the law of finite time and size, and the power laws in it."""
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
        """The best model for each budget is among the models, and its loss follows the power law."""
        super().check()
        self._check_span("neurons")
        # The loss of models that are a little too large rises within a factor of their size of this logarithm.
        width = 1 / ((max(self.exponents) + 2) * learning_folds(self._contrast))
        needed = 1 + math.ceil(math.log(self.most_neurons / self.fewest_neurons) / width)
        remedy = f"choose {needed} or more, so that the best model is seen between its neighbours"
        self.require(self.sizes >= needed, "sizes", remedy)
        least, most = self.least_compute, self.most_compute
        remedy = "choose twenty times least_compute or more"
        self.require(20 * least <= most, "most_compute", remedy, beside="least_compute")
        needed = self._neurons[-1] * max(smooth_steps(alpha, **self._theory) for alpha in self._exponents)
        problem = f"with least_compute {least:g} the largest model has hardly learned a skill"
        remedy = f"choose {needed:.3g} or more, or smaller models"
        self.require(least >= needed, "least_compute", remedy, problem=problem)
        smallest = min(each.neurons[0] for each in self._limits)
        problem = f"the best model for least_compute {least:g} has {smallest:.0f} neurons"
        remedy = f"choose more, for {_FEWEST} neurons and twice those of the smallest model"
        self.require(smallest >= max(_FEWEST, 2 * self.fewest_neurons), "least_compute", remedy, problem=problem)
        largest = max(each.neurons[-1] for each in self._limits)
        problem = f"the best model for most_compute {most:g} has {largest:.0f} neurons"
        remedy = "choose less, for half the neurons of the largest model"
        self.require(largest <= self.most_neurons / 2, "most_compute", remedy, problem=problem)

    def _optimum(self, losses: np.ndarray, neurons: np.ndarray, growth: Any) -> dict[str, Any]:
        """The losses of all models, the best one for each budget, and the power by which it grows."""
        return {
            "model_loss": ((*self.axes, "neurons"), losses),
            "optimal_neurons": neurons,
            "optimal_time": self.learning_rate * self._amounts / neurons,
            "neurons_exponent": ("exponent", growth),
        }

    @functools.cached_property
    def _limits(self) -> list[ComputeOptimum]:
        """The optima of large compute."""
        return [compute_optimum(self._amounts, alpha, **self._theory) for alpha in self._exponents]

    @functools.cached_property
    def _neurons(self) -> np.ndarray:
        return self._spaced("neurons")

    @functools.cached_property
    def _amounts(self) -> np.ndarray:
        return np.geomspace(self.least_compute, self.most_compute, self.budgets)
