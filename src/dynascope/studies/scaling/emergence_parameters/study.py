"""The number of neurons a network needs to learn each skill, forecast from networks trained on one skill."""

from __future__ import annotations

from typing import Annotated

from annotated_types import Ge

from dynascope.studies import Reference, curve_tolerance, parameter
from dynascope.studies.scaling.emergence_parameters import page
from dynascope.studies.scaling.emergence_parameters.experiment import Experiment
from dynascope.studies.scaling.emergence_study import EmergenceStudy
from dynascope.theory import papers
from dynascope.validation.bounded import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, Seed

_EXACT = (1e-6, "the limit of training is known exactly, and training converges to within rounding errors")


class EmergenceParameters(EmergenceStudy):
    """Tests forecasts of the strength R_k/S of each skill in multitask sparse parity, for networks of N neurons.

    In multitask sparse parity, each skill is the parity of a few input bits, and every sample requires one skill.
    Two-layer ReLU networks of N neurons are trained to convergence by Adam with weight decay on all inputs. The number
    of neurons N_c that one skill needs is calibrated on networks trained on one skill alone. From N_c, the study
    forecasts the mean strength of every skill, measured by correlation (`strength`) and by loss (`loss_equivalent`).
    The study also forecasts the number of neurons at which a skill reaches half strength (`half_neurons`;
    `half_neurons_ratio` is the number divided by its forecast). Individual networks vary widely: `out_of_order` is the
    fraction of networks in which a rarer skill is clearly stronger than a more frequent one.

    The verdict rests on the claim `forecast`: the number of neurons at which a skill reaches half strength is nearer to
    the forecast for this skill than to the forecast for any other skill. A further claim for each skill states that its
    strength is near one half in networks of the width forecast for half strength. Confidence intervals are over
    networks; the interval of the claim `forecast` includes the standard error of the calibration.

    The default task of two skills of three bits is small enough to train sufficiently many networks. The claim holds
    although the forecast is rough: the first skill needs 1.3 times the forecast number of neurons and the second 0.8
    times. Networks begin to learn the second skill before they have learned the first. The claim would fail if the
    calibrated N_c were a fifth larger or a third smaller. Training on three skills (`skills=3`, `bits=9`) takes more
    than ten times as long. In a run with sixteen networks of each width, trained half as long at half the learning
    rate, the claim was undecided.

    The checks test the solvable model f = Σ_k a_k Σ_l B_kl e_kl, in which each skill g_k = Σ_l e_kl/√N_c is a sum of
    N_c features. A model of N neurons has only the first N features e_kl, in order of skill frequency. After training
    on all inputs, the strength of skill k must be a fraction φ = min(max(N/N_c − (k − 1), 0), 1) of its full strength
    (`basis_strength`). Its loss must be a fraction 1 − φ of its initial loss (`basis_loss`).
    """

    skills: PositiveInt = parameter(2, "Number of skills n_s.")
    bits: PositiveInt = parameter(6, "Number of input bits n_b.")
    neurons: list[PositiveInt] = parameter(
        [*range(1, 13)],
        "Numbers of neurons N, increasing; networks of at most half the largest width are also trained on one skill "
        "alone.",
        increasing=True,
    )
    learning_rate: PositiveFloat = parameter(0.02, "Learning rate of Adam.")
    weight_decay: NonNegativeFloat = parameter(5e-5, "Coefficient λ of the weight decay ½ λ‖θ‖².")
    steps: PositiveInt = parameter(16_000, "Number of training steps.")
    batch_size: NonNegativeInt = parameter(
        0, "Number of fresh samples per step; zero for all inputs in every step.", zero="all inputs in every step"
    )
    runs: Annotated[int, Ge(2)] = parameter(96, "Number of networks of each width trained on all skills.")
    alone: Annotated[int, Ge(2)] = parameter(384, "Number of networks of each width trained on one skill.")
    features: PositiveInt = parameter(4, "Number of features N_c of each skill in the solvable model.")
    seed: Seed = parameter(0, "Seed of the networks and samples.")

    axes = ("neurons", "skill")
    labelled = {"neurons": "neurons"}
    along = ("skill",)
    deciding_claims = ("forecast",)
    shown = ("strength", "loss_equivalent", "half_neurons")
    theory = "features assigned to the most frequent skill first"
    flow = "Adam with learning rate {learning_rate:g} and weight decay"
    notes = (
        "{runs} networks of each width are trained on all skills and {alone} on one skill, for {steps} steps of Adam.",
        "The solvable model needs {features} features for a skill.",
    )
    reference = Reference.of(
        papers.SKILLS,
        "A network assigns neurons to skills in order of frequency, and each skill receives the number of neurons that "
        "it needs. Calibrated on one skill, this law forecasts how many neurons a network needs to learn the others.",
    )
    title = "How many neurons a skill needs"
    question = "How large must a network be to learn a skill, and can theory forecast the size?"
    figures, meaning = page.figures, page.meaning
    equation = r"\frac{R_k}{S} = \min\left( \max\left( \frac{N}{N_c} - (k - 1), 0 \right), 1 \right)"
    minutes = 3.0
    names = {
        **EmergenceStudy.names,
        "strength_spread": ("standard deviation of the strength over networks", "1"),
        "half_neurons": ("neurons needed to learn half of the skill", "neurons"),
        "half_neurons_ratio": ("neurons needed to learn half of the skill, relative to the forecast", "1"),
        "out_of_order": ("fraction of networks in which a rarer skill is clearly stronger", "1"),
    }
    tolerance = curve_tolerance(basis_strength=_EXACT, basis_loss=_EXACT)
    checks = tuple(tolerance)
    experiment_type = Experiment
    tiny = {
        **{"skills": 2, "bits": 4, "relevant_bits": 2, "neurons": [1, 2, 6, 8, 16], "steps": 1000, "runs": 2},
        **{"alone": 2},
    }
    published = {
        **{"neurons": [*range(1, 11), *range(12, 32, 2)], "learning_rate": 1e-3, "weight_decay": 5e-5},
        **{"steps": 500_000, "batch_size": 4000, "runs": 10, "alone": 10},
    }

    def check(self) -> None:
        """Require enough widths for calibration, a smallest network that lacks a skill, and a computable gradient."""
        super().check()
        self.require(
            len(self.experiment.narrow) >= 2,
            "neurons",
            "choose at least two numbers of neurons that are at most half the last number",
        )
        most, remedy = self.skills * self.features, "choose a larger value, or a smaller first number of neurons"
        problem = (
            f"the smallest network has {self.neurons[0]} neurons, enough for all {self.features} features of "
            f"{self.skills} skills"
        )
        self.require(self.neurons[0] < most, "features", remedy, problem=problem)
        remedy = "choose a number of fresh samples per step, or at most 16 bits"
        self.require(self.batch_size > 0 or self.experiment.task.has_expectation, "batch_size", remedy, beside="bits")
