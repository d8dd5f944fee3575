"""The loss of a model that has neurons for its most frequent skills only, against their number."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from dynascope.studies.fields import count
from dynascope.studies.scaling.skill_flow import expected_loss, train_skills
from dynascope.studies.scaling.skill_simulation import FITTED, NAM, SkillScaling, exponent_chart, law_chart, ratio_chart
from dynascope.studies.study import Reference, curve_tolerance
from dynascope.tasks.parity.skills import skill_frequencies
from dynascope.theory.scaling_laws import PowerLaw, fit, missing_loss, parameter_law, power_laws

__all__ = ["ScalingParameters"]

_LOSS = (1e-12, "the law is an exact sum, and training goes on until no digit of it is left to learn")
_EXPONENT = (
    2e-3,
    "N + ½ leaves a correction of the order 1/N², whose largest effect is 1.3e-3, from 5 max(1, α) neurons on",
)
_PREFACTOR = (5e-3, "as for the exponent, and extrapolated to a single neuron")
_AFTER = 35.0  # e-folds after the rarest skill with a neuron was half learned


class ScalingParameters(SkillScaling):
    """The loss of the multilinear model after long training with N neurons, which falls as N^−α.

    Compared are the loss, itself and over the power law A_N (N + ½)^−α, and the exponent and prefactor of a fit to it,
    where the loss of the skills that an infinite task would have too is added first.
    """

    skills: int = count(50_000, "Number of skills.")
    fewest_neurons: int = count(
        10, "Neurons of the smallest model, at least five, and five times the largest exponent."
    )
    most_neurons: int = count(3000, "Neurons of the largest one, fewer than skills.")
    sizes: int = count(13, "Number of models, at about equal ratios; a power law is fitted to three or more.", least=3)

    name: ClassVar[str] = "scaling-parameters"
    reference: ClassVar[Reference] = Reference(
        paper=NAM,
        arxiv="2404.17563",
        claim="After long training the loss of the multilinear model falls with the number of its neurons by the power "
        "α, with a prefactor that is known.",
    )
    axes: ClassVar = ("exponent", "neurons")
    along: ClassVar = ("neurons", "exponent")
    title: ClassVar[str] = "The scaling law of model size"
    question: ClassVar[str] = "How much does a larger model help when most of what there is to learn is rare?"
    figures: ClassVar = (
        law_chart(
            "neurons",
            "The loss after long training with so many neurons. Straight and dashed is the power law of endlessly "
            "many skills; dashed through the points is the exact law for as many as there are.",
            points=True,
        ),
        ratio_chart(
            "neurons",
            "The same loss over its power law, which is that of endlessly many skills: with {parameters.skills} skills "
            "less is left to learn, the more so the smaller α is.",
            points=True,
        ),
        exponent_chart("α"),
    )
    meaning: ClassVar[str] = (
        "Models of {parameters.fewest_neurons} to {parameters.most_neurons} neurons are trained to the end on "
        "{parameters.skills} skills, the k-th of which is asked for with a frequency in proportion to 1/k¹⁺ᵅ. A "
        "model learns one skill with each neuron, the most frequent first, and lacks the rest. With what endlessly "
        "many skills would add, its loss falls with the fitted exponent "
        f"{FITTED}: faster than with time or "
        "data, where it is α/(α + 1). In the model a neuron is a skill; a network needs several for one, and does not "
        "always take the most frequent first (see the study emergence-parameters)."
    )
    minutes: ClassVar[float] = 0.1
    tolerance: ClassVar = curve_tolerance(
        loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR
    )
    tiny: ClassVar = {"exponents": [0.4, 0.8], "skills": 5000, "most_neurons": 300, "sizes": 9}

    def trained(self) -> Mapping[str, Any]:
        """Train models of all sizes on fresh samples by gradient flow, and fit power laws."""
        losses, at = self._losses(), self._neurons + 0.5
        fits = [
            fit(
                each,
                at,
                window=(self.fewest_neurons, self.most_neurons + 1),
                missing=missing_loss(alpha, self.skills + 0.5, target_scale=self.target_scale),
            )
            for alpha, each in zip(self._exponents, losses, strict=True)
        ]
        return self._fitted(losses, at, fits)

    def exact(self) -> Mapping[str, Any]:
        """What the skills without a neuron cost, and the power law in it."""
        neurons, size = self._neurons, {"target_scale": self.target_scale, "skills": self.skills}
        losses = np.array([parameter_law(neurons, alpha, **size) for alpha in self._exponents])
        return self._expected(losses, neurons + 0.5)

    def labels(self) -> Mapping[str, Any]:
        """Exponents and sizes."""
        return {"exponent": self.exponents, "neurons": self._neurons}

    def check(self) -> None:
        """The smallest model follows the law, and the largest one has something left to learn."""
        super().check()
        self._check_span("neurons")
        self.require(
            self.fewest_neurons >= 5 * max(1, *self.exponents),
            "fewest_neurons",
            "choose five times the largest exponent or more, and at least five",
        )
        self.require(
            self.most_neurons < self.skills,
            "most_neurons",
            "choose fewer than skills, so that something is left to learn",
            problem=f"most_neurons is {self.most_neurons} and skills is {self.skills}",
        )

    def _losses(self) -> np.ndarray:
        """Of all skills at the end of training, (exponent, neurons)."""
        frequencies = np.array([skill_frequencies(self.skills, alpha) for alpha in self._exponents])
        # A smaller model is padded with skills that are never asked for and do not count.
        held = np.arange(self.most_neurons) < self._neurons[:, None]
        present = frequencies[:, None, : self.most_neurons] * held
        absent = np.array([[each[number:][::-1].sum() for number in self._neurons] for each in frequencies])
        growth = 2 * self.target_scale * frequencies[:, self.most_neurons - 1].min()
        end = np.array([(self._offset + _AFTER) / growth])
        return train_skills(present, end, expected_loss, present, **self._model)[0] + self.target_scale**2 / 2 * absent

    @functools.cached_property
    def _neurons(self) -> np.ndarray:
        return self._spaced("neurons", self.sizes)

    @functools.cached_property
    def _laws(self) -> list[PowerLaw]:
        found = [power_laws(alpha, **self._model).parameters for alpha in self._exponents]
        # A_N is as A.
        return [
            law._replace(prefactor=law.prefactor * self._more_frequent(alpha, self.skills))
            for alpha, law in zip(self._exponents, found, strict=True)
        ]

    @property
    def _description(self) -> list[str]:
        return [
            f"{self.skills} skills, of which each model has a neuron for its most frequent ones, and fresh samples.",
            "Training goes on until nothing that there are neurons for is left to learn.",
        ]
