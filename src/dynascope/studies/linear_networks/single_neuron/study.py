"""The initial weights of a single linear neuron determine whether learning is lazy, rich or delayed rich."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Annotated, Literal

import numpy as np
import xarray as xr
from annotated_types import Ge, Interval

from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.linear_networks.single_neuron import page
from dynascope.studies.linear_networks.single_neuron.experiment import Experiment, trained_together
from dynascope.tasks import Task
from dynascope.theory import papers
from dynascope.validation.bounded import FiniteFloat, PositiveFloat, PositiveInt, Seed


class SingleNeuron(Study):
    """Tests exact solutions for neurons f(x) = a wᵀx with the same initial function but different layer imbalances.

    The study compares the weights, the function and the NTK with the exact solution. The tested claim is that each of
    the three neurons learns in the regime that the theory predicts from the imbalance δ of its layers, the norm of its
    initial map, and the alignment of this map with the target. The regimes are lazy, rich and delayed rich:

    - lazy: the NTK changes by less than 0.1 times its initial norm;
    - delayed rich: not lazy, δ ≤ −4 √(η_a η_w) ‖β*‖, and the map reaches half of the target after t = 10/|δ|, ten times
      the time needed to fit the norm of the map;
    - rich: all other neurons.

    The regimes are those of the paper; the thresholds are conventions of this package.
    """

    imbalance: FiniteFloat = parameter(
        -4.0,
        "Imbalance δ = weight_rate · a² − output_rate · ‖w‖², which gradient flow conserves. Neurons with imbalances 0 "
        "and −δ are also trained.",
    )
    initial_strength: PositiveFloat = parameter(0.1, "Norm ‖β‖ of the initial map β = a w; the target map has norm 1.")
    alignment: Annotated[float, Interval(gt=-1, le=1)] = parameter(
        0.2,
        "Cosine of the angle between the initial map and the target. At −1, which is excluded, a balanced neuron would "
        "converge to the saddle.",
    )
    output_rate: PositiveFloat = parameter(1.0, "Learning rate η_a of the output weight.")
    weight_rate: PositiveFloat = parameter(1.0, "Learning rate η_w of the input weights.")
    inputs: Literal["whitened", "low-rank"] = parameter(
        "whitened",
        'Covariance of the inputs. With "whitened" inputs, the weights have a closed form. With "low-rank" inputs, one '
        "direction has zero variance, and the variances of the other directions range from 1 to ½; the theory "
        "then solves an equation in function space.",
    )
    dimension: Annotated[int, Ge(2)] = parameter(2, "Number of inputs.")
    samples: PositiveInt = parameter(
        20,
        "Number of samples; the inputs are transformed to have the exact covariance.",
        least="dimension",
    )
    times: Annotated[int, Ge(10)] = parameter(300, "Number of recorded times.")
    seed: Seed = parameter(0, "Seed of the inputs and of the directions of the target and the initial map.")

    reference = Reference.of(
        papers.UNBALANCED,
        "A linear neuron learns in the regime (lazy, rich or delayed rich) that the theory predicts from its initial "
        "weights. The trajectory has an exact solution, and the final map can be computed before training.",
    )
    along = ("time", "feature")
    title = "A single neuron, lazy or rich"
    question = "Do the initial weights of a linear neuron determine whether learning is lazy or rich?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"\dot a = -\eta_a \, w \cdot (\beta - \beta^*), \quad \dot w = -\eta_w \, a \, (\beta - \beta^*), "
        r"\quad \beta = a w"
    )
    minutes = 0.2
    symbols = {"imbalance": "δ"}
    theory = "exact dynamics of a single linear neuron"
    trains = "single linear neuron"
    axes = ("imbalance", "time")
    labelled = {"imbalance": "_experiment.imbalances", "feature": "_task.feature_names"}
    names = {
        "coefficient_along_target": ("coefficient along the target", "1"),
        "coefficient_across_target": ("coefficient perpendicular to the target", "1"),
        "weight_along_target": ("input weight along the target", "1"),
        "output_weight": ("output weight", "1"),
        "interpolator": ("map at the end of training", "1"),
    }
    tolerance = {
        **exact(
            *("loss", "output_weight", "weights", "weight_along_target", "coefficients"),
            *("coefficient_along_target", "coefficient_across_target", "kernel_distance", "kernel_change"),
            reason="the theory is exact, and the local errors of the solvers are below 1e-9",
        ),
        **exact("interpolator", error=1e-5, reason="training stops when the map is within about 1e-6 of its limit"),
    }
    deciding_claims = ("regimes",)
    batched = ("imbalance", "initial_strength")
    tiny = {"imbalance": 1.0, "samples": 4, "times": 40}

    def trained(self) -> xr.Dataset:
        """Train all neurons by gradient flow."""
        return self._experiment.trained()

    @classmethod
    def trained_many(cls, studies: Sequence[SingleNeuron]) -> list[xr.Dataset]:
        """Train the neurons of studies with the same task as one ensemble."""
        return trained_together([study._experiment for study in studies])

    @classmethod
    def memory(cls, studies: Sequence[SingleNeuron]) -> float:
        """Bytes of the weights of all neurons, which are recorded at the times of all studies."""
        neurons = sum(len(each._experiment.imbalances) for each in studies)
        return sum(8 * each.times * neurons * (each.dimension + 1) for each in studies)

    def exact(self) -> Values:
        """Evaluate the exact solution of all neurons."""
        return self._experiment.exact()

    def prediction_attributes(self) -> Values:
        """The predicted regime of the requested imbalance."""
        return {"regime": str(self._experiment.predicted_regimes[0])}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return Experiment(self)

    @property
    def _task(self) -> Task:
        return self._experiment.task

    @property
    def _times(self) -> np.ndarray:
        return self._experiment.times
