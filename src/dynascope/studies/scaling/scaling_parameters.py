"""The loss of a model that has neurons for its most frequent skills only, against their number."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.scaling.skill_simulation import SkillScaling, train_skills
from dynascope.studies.study import Reference, curve_tolerance

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from dynascope.theory.scaling_laws import PowerLaw

__all__ = ["ScalingParameters"]

_LOSS = (1e-12, "the law is an exact sum, and training goes on until no digit of it is left to learn")
_EXPONENT = (
    2e-3,
    "N + ½ leaves a correction of the order 1/N², whose largest effect is 1.3e-3, from 5 max(1, α) neurons on",
)
_PREFACTOR = (5e-3, "as for the exponent, and extrapolated to a single neuron")
_AFTER = 35.0  # e-folds after the rarest skill with a neuron was half learned


@dataclasses.dataclass(frozen=True)
class ScalingParameters(SkillScaling):
    """The loss of the multilinear model after long training with N neurons, which falls as N^−α.

    Compared are the loss, itself and over the power law A_N (N + ½)^−α, and the exponent and prefactor of a fit to it,
    where the loss of the skills that an infinite task would have too is added first.

    Attributes:
        exponents: α of the skill frequencies P(k) ∝ k^−(α+1).
        target_scale: S, the strength of a learned skill.
        initial_strength: R₀, the strength at the start of every skill that has a neuron, below half of S.
        skills: Number of skills.
        fewest_neurons: Neurons of the smallest model, at least five, and five times the largest exponent.
        most_neurons: Neurons of the largest one.
        sizes: Number of models, at about equal ratios.
    """

    skills: int = 50_000
    fewest_neurons: int = 10
    most_neurons: int = 3000
    sizes: int = 13

    name: ClassVar[str] = "scaling-parameters"
    reference: ClassVar[Reference] = Reference(
        paper=SkillScaling.source,
        arxiv="2404.17563",
        claim="After long training the loss of the multilinear model falls with the number of its neurons by the power "
        "α, with a prefactor that is known.",
    )
    along: ClassVar = ("neurons", "exponent")
    minutes: ClassVar[float] = 0.1
    tolerance: ClassVar = curve_tolerance(
        loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR
    )
    tiny: ClassVar = {"exponents": [0.4, 0.8], "skills": 5000, "most_neurons": 300, "sizes": 9}

    def observe(self) -> xr.Dataset:
        """Train models of all sizes on fresh samples by gradient flow, and fit power laws."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.scaling_laws import fit, missing_loss

        neurons, losses = self._neurons, self._losses()
        fits = [
            fit(
                each,
                neurons + 0.5,
                window=(self.fewest_neurons, self.most_neurons + 1),
                missing=missing_loss(alpha, self.skills + 0.5, target_scale=self.target_scale),
            )
            for alpha, each in zip(self._exponents, losses, strict=True)
        ]
        return make_record(
            self._observed("neurons", losses, np.array([law.loss(neurons + 0.5) for law in self._laws]), fits),
            {"exponent": self.exponents, "neurons": neurons},
            attributes=self._about(*self._description),
        )

    def predict(self) -> xr.Dataset:
        """What the skills without a neuron cost, and the power law in it."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.scaling_laws import parameter_law

        neurons, size = self._neurons, {"target_scale": self.target_scale, "skills": self.skills}
        losses = np.array([parameter_law(neurons, alpha, **size) for alpha in self._exponents])
        return make_record(
            self._predicted("neurons", losses, np.array([law.loss(neurons + 0.5) for law in self._laws])),
            {"exponent": self.exponents, "neurons": neurons},
            attributes=self._theory(*self._description),
        )

    def _losses(self) -> np.ndarray:
        """Of all skills at the end of training, (exponent, neurons)."""
        import numpy as np

        from dynascope.tasks.parity.skills import skill_frequencies

        frequencies = np.array([skill_frequencies(self.skills, alpha) for alpha in self._exponents])
        # A smaller model is padded with skills that are never asked for and do not count.
        held = np.arange(self.most_neurons) < self._neurons[:, None]
        present = frequencies[:, None, : self.most_neurons] * held
        absent = np.array([[each[number:][::-1].sum() for number in self._neurons] for each in frequencies])
        growth = 2 * self.target_scale * frequencies[:, self.most_neurons - 1].min()
        end = np.array([(self._offset + _AFTER) / growth])
        return train_skills(present, end, _loss, present, **self._model)[0] + self.target_scale**2 / 2 * absent

    @functools.cached_property
    def _neurons(self) -> np.ndarray:
        from dynascope.arguments import require

        neurons = self._sizes("neurons", self.fewest_neurons, self.most_neurons, self.sizes)
        require(
            self.fewest_neurons >= 5 * max(1, *self.exponents),
            f"fewest_neurons is {self.fewest_neurons}",
            argument="fewest_neurons",
            value=self.fewest_neurons,
            remedy="choose five times the largest exponent or more, and at least five",
        )
        require(
            self.most_neurons < self.skills,
            f"most_neurons is {self.most_neurons} and skills is {self.skills}",
            argument="most_neurons",
            value=self.most_neurons,
            remedy="choose fewer than skills, so that something is left to learn",
        )
        return neurons

    @functools.cached_property
    def _laws(self) -> list[PowerLaw]:
        from dynascope.theory.scaling_laws import PowerLaw, power_laws
        from dynascope.theory.scaling_laws.skill_model import skill_model

        laws = []
        for alpha in self._exponents:
            law = power_laws(alpha, **self._model).parameters
            # Of finitely many skills each is asked for more often than of infinitely many; A_N is as A.
            ratio = skill_model(alpha, skills=self.skills, **self._model).normalisation
            ratio /= skill_model(alpha, **self._model).normalisation
            laws.append(PowerLaw(law.prefactor * ratio, law.exponent))
        return laws

    @property
    def _description(self) -> list[str]:
        return [
            f"{self.skills} skills, of which each model has a neuron for its most frequent ones, and fresh samples.",
            "Training goes on until nothing that there are neurons for is left to learn.",
        ]


def _loss(missing: Any, frequencies: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sum(frequencies * missing**2, axis=-1) / 2
