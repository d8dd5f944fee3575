"""Synaptic saliency is conserved at every unit and across every cut, except for predicted violations."""

from __future__ import annotations

import functools
from typing import Annotated

import numpy as np
from annotated_types import Ge

from dynascope.studies import Reference, Study, Values, exact, parameter
from dynascope.studies.interventions.saliency_conservation import page
from dynascope.studies.interventions.saliency_conservation.experiment import Experiment
from dynascope.studies.interventions.saliency_conservation.zoo import ZOO
from dynascope.validation.bounded_scalars import PositiveInt, Seed

_ROUNDING = 1e-10
_REASON = "both sides are sums of a few thousand terms in double precision"


class SaliencyConservation(Study):
    """Compares the synaptic saliency on both sides of every unit and every cut of random networks.

    The synaptic saliency of a weight is S(θ) = θ ∂R/∂θ, where R is a function of the outputs; here, R is the
    cross-entropy. The theory states two laws for homogeneous activations. First, the saliency of the incoming weights
    and the bias of a unit equals the saliency of its outgoing weights. Second, the saliency of every cut (weights that
    separate inputs from outputs), including skip connections and the biases at or after the cut, equals ⟨∂R/∂y, y⟩ at
    the outputs y. The units are found by program analysis, so the first law is tested without information about the
    architecture. The study also measures three violations of the first law and compares them with closed forms: units
    with tanh, the scores of the pruning method GraSP, and batch normalisation with running means.
    """

    networks: list[str] = parameter(list(ZOO), "Names of the architectures.", options=list(ZOO))
    draws: PositiveInt = parameter(5, "Number of draws of weights and data for each architecture.")
    samples: Annotated[int, Ge(2)] = parameter(50, "Number of samples.")
    seed: Seed = parameter(0, "Seed of the weights and data.")

    reference = Reference(
        "H. Tanaka, D. Kunin, D. L. K. Yamins, S. Ganguli, Pruning neural networks without any data by iteratively "
        "conserving synaptic flow",
        "2006.05467",
        "Synaptic saliency is conserved at every hidden unit and across every cut of a network with homogeneous "
        "activations.",
    )
    theory = "conservation of synaptic saliency"
    task = "random data"
    notes = ("Each network receives {samples} Gaussian inputs with random labels of three classes.",)
    trains = "random networks"
    along = ("unit", "cut", "tanh_unit", "channel")
    title = "Conservation of synaptic saliency"
    question = "Is the importance of a unit the same, whether measured by its incoming or by its outgoing weights?"
    figures, meaning = page.figures, page.meaning
    equation = (
        r"\sum_{\text{in}} \theta \frac{\partial R}{\partial \theta} = "
        r"\sum_{\text{out}} \theta \frac{\partial R}{\partial \theta}"
    )
    names = {
        "incoming_saliency": ("saliency of the incoming weights and bias", "1"),
        "cut_saliency": ("saliency of the cut", "1"),
        "grasp_difference": ("incoming minus outgoing GraSP scores", "1"),
        "tanh_difference": ("incoming minus outgoing saliency of tanh units", "1"),
        "running_mean_difference": ("drop in saliency across the normalisation layer", "1"),
        "unit": ("hidden unit", "1"),
        "cut": ("cut", "1"),
        "tanh_unit": ("tanh unit", "1"),
        "channel": ("channel", "1"),
    }
    minutes = 0.3
    tolerance = exact(
        *("incoming_saliency", "cut_saliency", "grasp_difference", "tanh_difference", "running_mean_difference"),
        error=_ROUNDING,
        reason=_REASON,
    )
    tiny = {"networks": ["dense, ReLU"], "draws": 2, "samples": 10}

    def trained(self) -> Values:
        """The saliency of incoming weights and of cuts, and the measured violations."""
        experiment = self._experiment
        grasp = experiment.grasp
        return {
            "incoming_saliency": ("unit", experiment.saliency.incoming),
            "cut_saliency": ("cut", experiment.cuts.incoming),
            "grasp_difference": ("unit", grasp.incoming - grasp.outgoing),
            "tanh_difference": ("tanh_unit", experiment.tanh[0]),
            "running_mean_difference": ("channel", experiment.running_mean[0]),
            "loss": ("run", experiment.losses),
            **self._numbers,
        }

    def exact(self) -> Values:
        """The saliency of outgoing weights and of outputs, and the closed forms of the violations."""
        experiment = self._experiment
        return {
            "incoming_saliency": ("unit", experiment.saliency.outgoing),
            "cut_saliency": ("cut", experiment.cuts.outgoing),
            "grasp_difference": ("unit", experiment.grasp_defect()),
            "tanh_difference": ("tanh_unit", experiment.tanh[1]),
            "running_mean_difference": ("channel", experiment.running_mean[1]),
            **self._numbers,
        }

    @property
    def _numbers(self) -> Values:
        experiment = self._experiment
        sizes = {
            "unit": experiment.saliency.incoming.size,
            "cut": experiment.cuts.incoming.size,
            "tanh_unit": experiment.tanh[0].size,
            "channel": experiment.running_mean[0].size,
            "run": self.draws * len(self.networks),
        }
        return {name: (name, np.arange(size)) for name, size in sizes.items()}

    @functools.cached_property
    def _experiment(self) -> Experiment:
        return self.part(Experiment)
