"""The loss of a model that learns skills one after the other, against time: a power law, and where it ends."""

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

__all__ = ["ScalingTime"]

_LOSS = (2e-4, "the law integrates over skills, which costs 1e-4 when no more than one of them is being learned")
_EXPONENT = (
    1e-3,
    "within its window the law bends by its first and last skills, by 7e-4 where α and the window are small",
)
_PREFACTOR = (2e-3, "as for the exponent, and extrapolated from the window to a single step")
_SMALL = 0.05  # start over S, up to which the growth of the last skills hardly matters


@dataclasses.dataclass(frozen=True)
class ScalingTime(SkillScaling):
    """The loss of the multilinear model on fresh samples, which falls as T^−α/(α+1) until it runs out of skills.

    Compared are the loss, itself and over the power law, with the law of finitely many skills, from the time on at
    which several skills are being learned at once; and the exponent and the prefactor of a fit, where the loss of the
    skills that an infinite task would have too is added first. What the fit is without it (`uncorrected_exponent`) is
    shown and not judged: with few skills or a small α it is too large.

    Attributes:
        exponents: α of the skill frequencies P(k) ∝ k^−(α+1).
        target_scale: S, the strength of a learned skill.
        initial_strength: R₀, the strength of every skill at the start, below half of S.
        learning_rate: η, the gradient-flow time of a step; the power law is in steps, which are small ones.
        skills: Number of skills, and of neurons.
        times: Number of times at which the loss is recorded.
    """

    learning_rate: float = 1.0
    skills: int = 50_000
    times: int = 120

    name: ClassVar[str] = "scaling-time"
    reference: ClassVar[Reference] = Reference(
        paper=SkillScaling.source,
        arxiv="2404.17563",
        claim="The loss of the multilinear model falls with time by the power α/(α + 1), with a prefactor that is "
        "known, until the skills run out.",
    )
    along: ClassVar = ("time", "exponent")
    minutes: ClassVar[float] = 0.1
    tolerance: ClassVar = curve_tolerance(
        loss=_LOSS, loss_over_law=_LOSS, decay_exponent=_EXPONENT, prefactor=_PREFACTOR
    )
    tiny: ClassVar = {"exponents": [0.4, 0.8], "skills": 5000}

    def observe(self) -> xr.Dataset:
        """Train on fresh samples by gradient flow, and fit power laws."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.tasks.parity.skills import skill_frequencies
        from dynascope.theory.scaling_laws import fit, missing_loss

        steps = self._steps
        frequencies = np.array([skill_frequencies(self.skills, alpha) for alpha in self._exponents])
        losses = train_skills(frequencies, self.learning_rate * steps, _loss, frequencies, **self._model).T
        fits, raw = [], []
        for alpha, loss, window in zip(self._exponents, losses, self._windows, strict=True):
            # The skills that are missing would not have left their start either.
            missing = missing_loss(alpha, self.skills, target_scale=self.target_scale - self.initial_strength)
            fits.append(fit(loss, steps, window=window, missing=missing))
            raw.append(fit(loss, steps, window=window).exponent)
        laws = np.array([law.loss(steps) for law in self._laws])
        return make_record(
            {**self._observed("time", losses, laws, fits), "uncorrected_exponent": (("exponent",), raw)},
            {"exponent": self.exponents, "time": self.learning_rate * steps},
            attributes={"windows": [list(each.window) for each in fits], **self._about(*self._description)},
        )

    def predict(self) -> xr.Dataset:
        """The law of finitely many skills, from when it holds for all tasks, and the power law in it."""
        import numpy as np

        from dynascope.record import make_record
        from dynascope.theory.scaling_laws import time_law

        steps = self._steps[self._steps >= max(low for low, _ in self._windows)]
        losses = np.array(
            [
                time_law(steps, alpha, learning_rate=self.learning_rate, skills=self.skills, **self._model)
                for alpha in self._exponents
            ]
        )
        return make_record(
            self._predicted("time", losses, np.array([law.loss(steps) for law in self._laws])),
            {"exponent": self.exponents, "time": self.learning_rate * steps},
            attributes=self._theory(*self._description),
        )

    @functools.cached_property
    def _spans(self) -> list[tuple[float, float]]:
        """The steps between which the first skills of each task have been learned and its last ones not yet."""
        from dynascope.theory.scaling_laws import time_window

        return [
            time_window(alpha, self.skills, learning_rate=self.learning_rate, **self._model)
            for alpha in self._exponents
        ]

    @functools.cached_property
    def _windows(self) -> list[tuple[float, float]]:
        """Those between which each task also follows its power law smoothly."""
        from dynascope.arguments import require

        windows = []
        for alpha, (_, high) in zip(self._exponents, self._spans, strict=True):
            low = self._first_steps(alpha, self.learning_rate, self.skills)
            # The last skills, which the fit takes to be at their start, have grown from it in proportion to it.
            high *= min(1.0, _SMALL * self.target_scale / self.initial_strength)
            require(
                high >= 20 * low,
                f"the law of {self.skills} skills with α = {alpha:g} ends at {high:.3g} and begins at {low:.3g}",
                argument="skills",
                value=self.skills,
                remedy="take more skills, a larger exponent or another start",
            )
            windows.append((low, high))
        return windows

    @functools.cached_property
    def _steps(self) -> np.ndarray:
        """From before the first skill until the last window ends, where the other tasks have been learned."""
        import numpy as np

        from dynascope.arguments import require

        require(
            self.times >= 40,
            f"times is {self.times}",
            argument="times",
            value=self.times,
            remedy="choose forty or more, of which a fit has enough in its window",
        )
        low, high = zip(*self._spans, strict=True)
        return np.geomspace(0.02 * min(low), max(high), self.times)

    @functools.cached_property
    def _laws(self) -> list[PowerLaw]:
        from dynascope.theory.scaling_laws import PowerLaw, power_laws
        from dynascope.theory.scaling_laws.skill_model import skill_model

        laws = []
        for alpha in self._exponents:
            law = power_laws(alpha, learning_rate=self.learning_rate, **self._model).time
            # Of finitely many skills each is asked for more often than of infinitely many; A_T is as A^1/(α+1).
            ratio = skill_model(alpha, skills=self.skills, **self._model).normalisation
            ratio /= skill_model(alpha, **self._model).normalisation
            laws.append(PowerLaw(law.prefactor * ratio ** (1 / (alpha + 1)), law.exponent))
        return laws

    @property
    def _description(self) -> list[str]:
        return [f"{self.skills} skills, each with a neuron, and fresh samples without end."]


def _loss(missing: Any, frequencies: Any) -> Any:
    import jax.numpy as jnp

    return jnp.sum(frequencies * missing**2, axis=-1) / 2
