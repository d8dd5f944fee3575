"""The least loss of a model for given compute, the product of its training time and the number of its neurons."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.scaling.skill_simulation import SkillScaling, train_skills
from dynascope.studies.study import Reference, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.theory.scaling_laws import ComputeOptimum, PowerLaw

__all__ = ["ScalingCompute"]

_MODELS = (2e-4, "the law integrates over skills, which costs 1e-4 when no more than one of them is being learned")
_LOSS = (2e-4, "as for all models, of which the best one is interpolated")
_OPTIMUM = (2e-3, "the loss is level around its least value, so that small errors of it shift its place")
_EXPONENT = (5e-4, "what half a neuron matters in the second order, from fifty neurons on")
_PREFACTOR = (2e-3, "as for the exponent, and extrapolated from the budgets to a single unit")
_GROWTH = (5e-3, "what half a neuron matters in the first order, from fifty neurons on")
_FEWEST = 50  # neurons of the best model, from which on half a neuron hardly matters
_PLACES = 20_001  # between the models, at which the best one is looked for


@dataclasses.dataclass(frozen=True)
class ScalingCompute(SkillScaling):
    """Models of many sizes N, each trained for the time T = C/N: their least loss falls with the compute as C^−α/(α+2).

    Compared are the loss of every model for every budget; the least loss for each budget, itself and over the power
    law, with the time and neurons that it takes, against the least that the law of finite time and size allows; and
    exponents and prefactors of fits against the power laws of large compute.

    Attributes:
        exponents: α of the skill frequencies P(k) ∝ k^−(α+1).
        target_scale: S, the strength of a learned skill.
        initial_strength: R₀, the strength at the start of every skill that has a neuron, below half of S.
        learning_rate: η, the gradient-flow time of a step; compute is in steps times neurons.
        least_compute: Smallest budget C.
        most_compute: Largest one.
        budgets: Number of budgets, at equal ratios.
        fewest_neurons: Neurons of the smallest model.
        most_neurons: Neurons of the largest one.
        sizes: Number of models, at about equal ratios.
    """

    learning_rate: float = 1.0
    least_compute: float = 3e6
    most_compute: float = 1e9
    budgets: int = 7
    fewest_neurons: int = 10
    most_neurons: int = 10_000
    sizes: int = 101

    name: ClassVar[str] = "scaling-compute"
    reference: ClassVar[Reference] = Reference(
        paper=SkillScaling.source,
        arxiv="2404.17563",
        claim="For given compute, time multiplied by neurons, the least loss of the multilinear model falls by the "
        "power α/(α + 2), at a time and with neurons that are known.",
    )
    along: ClassVar = ("compute", "exponent")
    minutes: ClassVar[float] = 0.1
    tolerance: ClassVar = curve_tolerance(
        loss=_LOSS,
        loss_over_law=_LOSS,
        model_loss=_MODELS,
        optimal_neurons=_OPTIMUM,
        optimal_time=_OPTIMUM,
        decay_exponent=_EXPONENT,
        prefactor=_PREFACTOR,
        neurons_exponent=_GROWTH,
    )
    tiny: ClassVar = {
        **{"exponents": [0.4, 0.8], "least_compute": 5e5, "most_compute": 5e7, "budgets": 6},
        **{"most_neurons": 2000, "sizes": 71},
    }

    def observe(self) -> xr.Dataset:
        """Train all models by gradient flow, and take the best one for each budget."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.scaling_laws import fit

        compute, losses = self._compute, self._losses()
        neurons, least = _best(self._neurons, losses)
        # A model of N neurons has the loss of N + ½ in a law that integrates over skills.
        fits = [fit(loss, compute * (1 + 0.5 / best)) for loss, best in zip(least, neurons, strict=True)]
        growth = [fit(1 / best, compute, window=(compute[0], compute[-1])).exponent for best in neurons]
        return make_record(
            {
                **self._observed("compute", least, np.array([law.loss(compute) for law in self._laws]), fits),
                "model_loss": (("exponent", "compute", "neurons"), losses),
                "optimal_neurons": (("exponent", "compute"), neurons),
                "optimal_time": (("exponent", "compute"), self.learning_rate * compute / neurons),
                "neurons_exponent": (("exponent",), growth),
            },
            {"exponent": self.exponents, "compute": compute, "neurons": self._neurons},
            attributes=self._about(*self._description),
        )

    def predict(self) -> xr.Dataset:
        """The least of the law of finite time and size, and the power laws in it."""
        import numpy as np

        from dynascope.record import make_record

        compute, sizes = self._compute, self._neurons.tolist()
        losses = np.array([[self._law(compute, number, alpha) for number in sizes] for alpha in self._exponents])
        found = np.array([[self._least(budget, alpha) for budget in compute] for alpha in self._exponents])
        neurons, least = found[..., 0], found[..., 1]
        return make_record(
            {
                **self._predicted("compute", least, np.array([law.loss(compute) for law in self._laws])),
                "model_loss": (("exponent", "compute", "neurons"), losses.swapaxes(1, 2)),
                "optimal_neurons": (("exponent", "compute"), neurons),
                "optimal_time": (("exponent", "compute"), self.learning_rate * compute / neurons),
                "neurons_exponent": (("exponent",), 1 / (self._exponents + 2)),
                "limiting_neurons": (("exponent", "compute"), [each.neurons for each in self._limits]),
            },
            {"exponent": self.exponents, "compute": compute, "neurons": self._neurons},
            attributes=self._theory(*self._description),
        )

    def _losses(self) -> np.ndarray:
        """Of all models with all budgets, (exponent, compute, neurons).

        As no skill enters the gradient of another, the first N skills of the largest model learn as those of a model
        with N neurons do, and it is trained for all.
        """
        import numpy as np
        from scipy.special import zeta

        neurons, ranks = self._neurons, np.arange(1.0, self.most_neurons + 1)
        total = zeta(self._exponents + 1)[:, None]
        frequencies = ranks ** -(self._exponents[:, None] + 1) / total
        absent = zeta(self._exponents[:, None] + 1, neurons + 1) / total
        steps, place = np.unique(self._compute[:, None] / neurons, return_inverse=True)
        learned = train_skills(frequencies, self.learning_rate * steps, _present, frequencies, neurons, **self._model)
        chosen = learned[place.reshape(-1, len(neurons)), :, np.arange(len(neurons))]
        return np.moveaxis(chosen, -1, 0) + self.target_scale**2 / 2 * absent[:, None]

    def _law(self, compute: np.ndarray | float, neurons: float, alpha: float) -> np.ndarray:
        from dynascope.theory.scaling_laws import time_law

        return time_law(compute / neurons, alpha, learning_rate=self.learning_rate, neurons=neurons, **self._model)

    def _least(self, compute: float, alpha: float) -> tuple[float, float]:
        """The number of neurons, not rounded, at which the law is least, and that loss."""
        from scipy.optimize import minimize_scalar

        found = minimize_scalar(
            lambda log_neurons: float(self._law(compute, math.exp(log_neurons), alpha)),
            bounds=(math.log(self.fewest_neurons), math.log(self.most_neurons)),
            method="bounded",
            options={"xatol": 1e-6},
        )
        return math.exp(found.x), float(found.fun)

    @functools.cached_property
    def _limits(self) -> list[ComputeOptimum]:
        """The optima of large compute."""
        from dynascope.theory.scaling_laws import compute_optimum

        return [
            compute_optimum(self._budgets, alpha, learning_rate=self.learning_rate, **self._model)
            for alpha in self._exponents
        ]

    @functools.cached_property
    def _laws(self) -> list[PowerLaw]:
        from dynascope.theory.scaling_laws import power_laws

        return [power_laws(alpha, learning_rate=self.learning_rate, **self._model).compute for alpha in self._exponents]

    @functools.cached_property
    def _neurons(self) -> np.ndarray:
        from dynascope.arguments import require

        neurons = self._sizes("neurons", self.fewest_neurons, self.most_neurons, self.sizes)
        # The loss of models that are a little too large rises within a factor of their size of this logarithm.
        width = 1 / ((max(self.exponents) + 2) * self._width)
        needed = 1 + math.ceil(math.log(self.most_neurons / self.fewest_neurons) / width)
        require(
            self.sizes >= needed,
            f"sizes is {self.sizes}",
            argument="sizes",
            value=self.sizes,
            remedy=f"choose {needed} or more, so that the best model is seen between its neighbours",
        )
        return neurons

    @functools.cached_property
    def _budgets(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require, require_positive

        require_positive(least_compute=self.least_compute, most_compute=self.most_compute)
        require(
            20 * self.least_compute <= self.most_compute,
            f"least_compute is {self.least_compute:g} and most_compute {self.most_compute:g}",
            argument="most_compute",
            value=self.most_compute,
            remedy="choose twenty times least_compute or more",
        )
        require(
            self.budgets >= 3,
            f"budgets is {self.budgets}",
            argument="budgets",
            value=self.budgets,
            remedy="choose three or more, to fit a power law",
        )
        return np.geomspace(self.least_compute, self.most_compute, self.budgets)

    @functools.cached_property
    def _compute(self) -> np.ndarray:
        """The budgets, for which the models are neither all too large nor all too small."""
        from dynascope.arguments import require

        needed = self._neurons[-1] * max(self._first_steps(alpha, self.learning_rate) for alpha in self._exponents)
        require(
            self.least_compute >= needed,
            f"with least_compute {self.least_compute:g} the largest model has hardly learned a skill",
            argument="least_compute",
            value=self.least_compute,
            remedy=f"choose {needed:.3g} or more, or smaller models",
        )
        smallest = min(each.neurons[0] for each in self._limits)
        largest = max(each.neurons[-1] for each in self._limits)
        require(
            smallest >= max(_FEWEST, 2 * self.fewest_neurons),
            f"the best model for least_compute {self.least_compute:g} has {smallest:.0f} neurons",
            argument="least_compute",
            value=self.least_compute,
            remedy=f"choose more, for {_FEWEST} neurons and twice those of the smallest model",
        )
        require(
            largest <= self.most_neurons / 2,
            f"the best model for most_compute {self.most_compute:g} has {largest:.0f} neurons",
            argument="most_compute",
            value=self.most_compute,
            remedy="choose less, for half the neurons of the largest model",
        )
        return self._budgets

    @property
    def _description(self) -> list[str]:
        return ["Infinitely many skills, of which each model has a neuron for its most frequent ones; fresh samples."]


def _present(missing: Any, frequencies: Any, neurons: Any) -> Any:
    """Of the skills that there are neurons for, for every number of neurons."""
    import jax.numpy as jnp

    return jnp.cumsum(frequencies * missing**2, axis=-1)[..., neurons - 1] / 2


def _best(neurons: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Neurons of least loss, and that loss, along a spline through ln L over ln N of the models."""
    import numpy as np
    from scipy.interpolate import CubicSpline

    places = np.log(np.geomspace(neurons[0], neurons[-1], _PLACES))
    curves = CubicSpline(np.log(neurons), np.log(losses), axis=-1)(places)
    return np.exp(places[curves.argmin(axis=-1)]), np.exp(curves.min(axis=-1))
