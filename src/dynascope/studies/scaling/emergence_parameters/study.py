"""With how many neurons a network learns each of its skills, forecast from one skill that is trained alone."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import optax
import xarray as xr

from dynascope.comparison import Claim
from dynascope.studies import Reference, Values, curve_tolerance
from dynascope.studies.fields import count, number, numbers, positive, seed
from dynascope.studies.scaling.emergence_parameters.page import FIGURES, MEANING
from dynascope.studies.scaling.extended_multilinear import train_with_features
from dynascope.studies.scaling.gaussian_mlp import gaussian_mlp
from dynascope.studies.scaling.skill_needs import QUARTER, SkillNeeds
from dynascope.studies.scaling.spread_skills import spread_parities
from dynascope.tasks import SparseParity
from dynascope.theory import papers
from dynascope.theory.skills import calibrate_parameters, parameter_emergence
from dynascope.theory.skills.training_set import Definition
from dynascope.training.optimizers import decayed

_DEVIATION = 0.01  # of the weights of networks at the start
_ALONE = 0.5  # widths up to this share of the largest learn one skill alone
_SWAPPED = 0.2  # by how much a rarer skill is the stronger one where the order is lost
_EXACT = (1e-6, "the end of training is known exactly, and training goes on until rounding is all that is left")


class EmergenceParameters(SkillNeeds):
    """The strength R_k/S of each skill of multitask sparse parity in networks of N neurons, trained to the end.

    Two-layer ReLU networks of N neurons are trained by Adam with L2 decay on all inputs. N_c is calibrated on networks
    that learn one skill alone, and forecasts the mean strength of every skill, in correlation (`strength`) and in loss
    (`loss_equivalent`), and the number of neurons at which it is half (`half_neurons`; over the forecast,
    `half_neurons_ratio`). Networks scatter widely: `out_of_order` is the share of those in which a rarer skill is
    clearly stronger than a more frequent one. Besides the claim that is judged, it is reported for each skill whether
    the mean over networks is about half where the forecast is. Intervals are over networks; that of the judged claim is
    over those that learn all skills and over those that learn one.

    Two skills of three bits are learned in time by as many networks as it takes to decide, and until more steps change
    little. Of the default fields the claim holds though the forecast is rough: the first skill needs 1.3 times as many
    neurons as are forecast and the second 0.8 times as many, so that networks begin it before they have the first. It
    would be lost if one skill alone needed a fifth more neurons, or a third fewer. Networks of three skills
    (`skills=3`, `bits=9`) take more than ten times as long; sixteen of each width, trained half as long at half the
    rate, did not decide.

    Checked is the model of the theory, f = Σ_k a_k Σ_l B_kl e_kl with N of the features e_kl: N_c for each skill
    g_k = Σ_l e_kl/√N_c, the most frequent skill first. Trained on all inputs, skill k must end at the share
    φ = min(max(N/N_c − (k − 1), 0), 1) of its strength (`basis_strength`) and leave 1 − φ of its loss (`basis_loss`).
    """

    skills: int = count(2, "Number of skills n_s.")
    bits: int = count(6, "Number of bits n_b.")
    neurons: list[int] = numbers(
        [*range(1, 13)],
        "Numbers of neurons N, increasing. Up to half the last, networks also learn one skill alone.",
        whole=True,
        increasing=True,
    )
    learning_rate: float = positive(0.02, "Learning rate of Adam.")
    weight_decay: float = number(5e-5, "Coefficient λ of ½ λ‖θ‖².", least=0.0)
    steps: int = count(16_000, "Steps of the networks.")
    batch_size: int = count(
        0, "Fresh samples in a step; zero for all inputs in every step.", least=0, zero="all samples in every step"
    )
    runs: int = count(96, "Networks of each width that learn all skills.", least=2)
    alone: int = count(384, "Networks of each width that learn one skill alone.", least=2)
    features: int = count(4, "N_c of the model of the theory.")
    seed: int = seed("Seed of everything that is drawn.")

    resource = "neurons"
    along_axis = staticmethod(np.float64)  # every skill needs as many neurons, and so do the forecasts differ
    calibrate = staticmethod(calibrate_parameters)
    axes = ("neurons", "skill")
    shown = ("strength", "loss_equivalent", "half_neurons")
    theory = "features in the order of the frequency of their skills"
    flow = "Adam of rate {learning_rate:g}, with weight decay"
    told = (
        "{runs} networks of each number of neurons, {alone} where they learn one skill alone, {steps} steps of Adam.",
        "The model of the theory needs {features} features for a skill.",
    )
    reference = Reference.of(
        papers.SKILLS,
        "Features go to the skills in the order of their frequency, as many to each as it needs; calibrated on one "
        "skill, this forecasts with how many neurons a network learns the others.",
    )
    title = "In how large networks skills emerge"
    question = "How large must a network be before it has a skill, and can that be forecast?"
    figures = FIGURES
    meaning = MEANING
    minutes = 3.0
    names = {
        **SkillNeeds.names,
        "strength_spread": ("spread of the strength of the skill over seeds", "1"),
        "half_neurons": ("neurons with which half the skill is learned", "neurons"),
        "half_neurons_ratio": ("neurons needed, relative to those predicted", "1"),
        "out_of_order": ("share of networks in which a rarer skill is stronger", "1"),
    }
    tolerance = curve_tolerance(basis_strength=_EXACT, basis_loss=_EXACT)
    checks = tuple(tolerance)
    tiny = {
        **{"skills": 2, "bits": 4, "relevant_bits": 2, "neurons": [1, 2, 6, 8, 16], "steps": 1000, "runs": 2},
        **{"alone": 2},
    }
    published = {
        **{"neurons": [*range(1, 11), *range(12, 32, 2)], "learning_rate": 1e-3, "weight_decay": 5e-5},
        **{"steps": 500_000, "batch_size": 4000, "runs": 10, "alone": 10},
    }

    def trained(self) -> Values:
        """Train the model of the theory and the networks, and put the claims to them."""
        strength, loss = np.moveaxis(np.array([self._descended(count) for count in self.neurons]), 1, 0)
        runs, losses = self._trained(self._task, self.neurons, self.runs)
        swapped = runs - np.minimum.accumulate(runs, axis=-1) > _SWAPPED
        return {
            "basis_strength": strength,
            "basis_loss": loss,
            **self._observed(runs, losses.mean(axis=1)),
            "strength_spread": runs.std(axis=1, ddof=1),
            "out_of_order": ("neurons", np.any(swapped, axis=-1).mean(axis=1)),
            **self._reported(runs),
        }

    def forecast(self) -> xr.Dataset:
        """The law of the model, and with N_c from networks that learn one skill the forecast for all."""
        exact = self._law(self.features)
        said = {"basis_strength": exact, "basis_loss": 1 - exact}
        return self._predicted(said, calibration="networks that learn one skill alone")

    def _descended(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Strength and loss of each skill in the model with N features; the loss over that of the zero function."""
        weights = np.abs(np.random.default_rng([self.seed, 2]).normal(size=(self.skills, self.features)))
        steps = int(400 * np.sqrt(self.features) / self._task.frequencies[-1])
        frequencies, scale = self._task.frequencies, self.target_scale
        return train_with_features(*self._basis, count, frequencies, weights, target_scale=scale, steps=steps)

    @functools.cached_property
    def _basis(self) -> tuple[np.ndarray, np.ndarray]:
        draw = np.random.default_rng([self.seed, 1])
        return spread_parities(self.skills, self.relevant_bits, self.features, draw)

    def _trained(self, parity: SparseParity, widths: list[int], runs: int) -> tuple[np.ndarray, np.ndarray]:
        """Strength R/S and loss over ½ S² of every skill, shape (widths, networks, skills)."""
        found = self._read(
            [self._network(parity, width, widths[-1], run) for width in widths for run in range(runs)],
            parity,
            [self.steps],
            "strength",
            "skill_loss",
            optimizer=decayed(optax.adam, self.weight_decay),
            # The samples by which strengths are estimated are those of zero.
            seed=self.seed + 1,
        )
        strength, loss = np.array(found).reshape(2, len(widths), runs, parity.skills)
        return strength, loss

    def _network(self, parity: SparseParity, width: int, most: int, run: int) -> Any:
        seed = int(np.random.default_rng([self.seed, parity.skills, width, run]).integers(2**31))
        return gaussian_mlp((parity.input_dimension, most, 1), _DEVIATION, seed, present=width)

    def _alone(self) -> tuple[list[int], np.ndarray, np.ndarray]:
        widths = [count for count in self.neurons if count <= _ALONE * self.neurons[-1]]
        strength, loss = self._trained(self._one_skill, widths, self.alone)
        return widths, strength[..., 0], loss[..., 0]

    def _law(self, needed: float, definition: Definition = "correlation") -> np.ndarray:
        return parameter_emergence(self.neurons, self._task.skills, needed, definition=definition)

    @property
    def _forecast_half(self) -> np.ndarray:
        return self._needs["correlation"].needed * (np.arange(self.skills) + 0.5)

    def _differences(self, runs: np.ndarray) -> list[Claim]:
        """By how much the strength of a skill differs from one half where that is forecast, within `neurons`."""
        half = self._forecast_half
        return [
            Claim.of_runs(
                f"skill {k + 1}",
                f"Networks have about half of skill {k + 1} where half is forecast.",
                self._strength_at(runs, k, half[k]) - 0.5,
                least=-QUARTER,
                most=QUARTER,
            )
            for k in self._inside(half)
        ]

    def check(self) -> None:
        """One skill can be learned alone, the smallest width does not know all, and there is something to train on."""
        super().check()
        narrow = sum(width <= _ALONE * self.neurons[-1] for width in self.neurons)
        self.require(narrow >= 2, "neurons", "give at least two numbers up to half the last")
        most, remedy = self.skills * self.features, "choose more, or fewer neurons to begin with"
        problem = f"{self.skills} skills of {self.features} features are known to {self.neurons[0]} neurons"
        self.require(self.neurons[0] < most, "features", remedy, problem=problem)
        remedy = "choose how many fresh samples to draw, or at most 16 bits"
        self.require(self.batch_size > 0 or self._task.has_expectation, "batch_size", remedy, beside="bits")
