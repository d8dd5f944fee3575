"""Training of the multilinear model, which the scaling laws are held against: every skill by its own weights."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import TYPE_CHECKING, Any, ClassVar

from dynascope.studies.study import Study

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from dynascope.theory.scaling_laws import PowerLaw, PowerLawFit

__all__ = ["SkillScaling", "train_skills"]

_STEP = 0.01  # a step over the time at which it is made
_GENTLE = 4.0  # ln c below which skills are learned, and losses rise, no faster
_LONGEST = 150.0  # ln c of skills that are sure to be learned before they are left alone, at 200
_AXES = ("run", "neurons", "skill")  # of what is measured, as records have to name them


@dataclasses.dataclass(frozen=True)
class SkillScaling(Study):
    """What the studies of the scaling laws share: skills of frequency P(k) ∝ k^−(α+1), learned from a small start.

    Attributes:
        exponents: α.
        target_scale: S.
        initial_strength: R₀.
    """

    exponents: list[float] = dataclasses.field(default_factory=lambda: [0.3, 0.6, 0.9])
    target_scale: float = 1.0
    initial_strength: float = 0.01

    source: ClassVar[str] = (
        "Y. Nam, N. Fonseca, S. H. Lee, C. Mingard, A. A. Louis, An exactly solvable model for emergence and scaling "
        "laws in the multitask sparse parity problem"
    )

    @property
    def _laws(self) -> list[PowerLaw]:
        """The power law for each α."""
        raise NotImplementedError

    @functools.cached_property
    def _exponents(self) -> np.ndarray:
        import numpy as np

        from dynascope.arguments import require, require_array, require_positive

        exponents = require_array("exponents", self.exponents, (None,))
        require(
            len(exponents) > 0 and bool(np.all(exponents > 0)) and len(set(self.exponents)) == len(exponents),
            f"exponents is {self.exponents}",
            argument="exponents",
            value=self.exponents,
            remedy="give one or more different positive numbers",
        )
        require_positive(target_scale=self.target_scale, initial_strength=self.initial_strength)
        require(
            self.initial_strength < self.target_scale / 2,
            f"initial_strength is {self.initial_strength} and target_scale is {self.target_scale}",
            argument="initial_strength",
            value=self.initial_strength,
            remedy="start below half of target_scale, where skills emerge at a time",
        )
        require(
            self._offset < _LONGEST,
            f"initial_strength is {self.initial_strength:g} and target_scale is {self.target_scale:g}",
            argument="initial_strength",
            value=self.initial_strength,
            remedy=f"choose more than e^−{_LONGEST:g} of target_scale",
        )
        return exponents

    @property
    def _model(self) -> dict[str, float]:
        """What all theories of the model are told."""
        return {"target_scale": self.target_scale, "initial_strength": self.initial_strength}

    @property
    def _offset(self) -> float:
        """Ln c = ln(S/R₀ − 1), the e-folds after which a skill is half learned."""
        return math.log(self.target_scale / self.initial_strength - 1)

    @property
    def _width(self) -> float:
        """The e-folds over which a skill is learned: ln c, or 4 where it is less, as for a start near the half."""
        return max(self._offset, _GENTLE)

    def _first_steps(self, alpha: float, learning_rate: float, skills: int | None = None) -> float:
        """The steps from which on the law in time holds, which integrates over skills, to a relative 1e-4.

        Ten times those after which the first skill is half learned, ln c/(2 η S A), or more: k/((α + 1) ln c) skills
        are being learned when the skill k is half learned, and while they are less than one the loss falls in steps.
        For ln c stands 4 where it is less.
        """
        from dynascope.theory.scaling_laws.skill_model import skill_model

        model = skill_model(alpha, learning_rate=learning_rate, skills=skills, **self._model)
        return self._width / model.rate * max(10.0, ((alpha + 1) * self._width) ** (alpha + 1))

    def _sizes(self, name: str, fewest: int, most: int, number: int) -> np.ndarray:
        """Whole numbers at about equal ratios, over more than a decade.

        Raises:
            InputError: They span less, or are too few to fit a power law.
        """
        import numpy as np

        from dynascope.arguments import require

        require(
            0 < 20 * fewest <= most,
            f"fewest_{name} is {fewest} and most_{name} is {most}",
            argument=f"fewest_{name}",
            value=fewest,
            remedy=f"choose a positive number, at most a twentieth of most_{name}",
        )
        require(
            number >= 3,
            f"sizes is {number}",
            argument="sizes",
            value=number,
            remedy="choose three or more, to fit a power law",
        )
        return np.unique(np.round(np.geomspace(fewest, most, number)).astype(np.int64))

    def _observed(self, axis: str, losses: np.ndarray, laws: np.ndarray, fits: list[PowerLawFit]) -> dict[str, Any]:
        """Variables of the observed record: losses over (exponent, axis), and the power laws fitted to them."""
        return {
            **_curves(axis, losses, laws),
            "decay_exponent": (("exponent",), [each.exponent for each in fits]),
            "prefactor": (("exponent",), [each.prefactor for each in fits]),
            "decay_exponent_low": (("exponent",), [each.exponent_interval[0] for each in fits]),
            "decay_exponent_high": (("exponent",), [each.exponent_interval[1] for each in fits]),
        }

    def _predicted(self, axis: str, losses: np.ndarray, laws: np.ndarray) -> dict[str, Any]:
        """The same of the predicted record."""
        return {
            **_curves(axis, losses, laws),
            "decay_exponent": (("exponent",), [law.exponent for law in self._laws]),
            "prefactor": (("exponent",), [law.prefactor for law in self._laws]),
        }

    def _about(self, *description: str) -> dict[str, Any]:
        return {
            "task": "skills of frequency k^−(α+1)",
            "description": [f"Strengths grow from {self.initial_strength:g} to {self.target_scale:g}.", *description],
            "network": "multilinear, two weights for every skill",
            "scale": 1.0,
        }

    def _theory(self, *description: str) -> dict[str, Any]:
        return {"theory": "scaling laws", "reference": self.reference.paper, **self._about(*description)}


def _curves(axis: str, losses: np.ndarray, laws: np.ndarray) -> dict[str, Any]:
    return {"loss": (("exponent", axis), losses), "loss_over_law": (("exponent", axis), losses / laws)}


def train_skills(
    shares: np.ndarray,
    times: np.ndarray,
    measure: Callable[..., Any],
    *arrays: np.ndarray,
    target_scale: float,
    initial_strength: float,
) -> np.ndarray:
    """Train f = Σ_k a_k b_k g_k by gradient flow and measure what it has not learned.

    ȧ_k = p_k b_k (S − a_k b_k) and ḃ_k = p_k a_k (S − a_k b_k), from a_k = b_k = √R₀, are the flow of the loss on a
    training set in which the share p_k of the samples asks for skill k; as the skills do not overlap, no other enters.
    Followed for all weights at once by the classical method of fourth order, with steps of a hundredth of the time that
    has passed. A skill for which they are too long to be stable is left alone: so long after it was learned, only
    e^−200 (S/R₀ − 1) of it is missing.

    Args:
        shares: p_k ≥ 0 with any members in front, shape (..., skills).
        times: Gradient-flow times at which to measure, positive and increasing, shape (times,).
        measure: Of S − a_k b_k, shape (..., skills), and of the arrays; the same function finds a compiled program.
        arrays: What else it needs.
        target_scale: S.
        initial_strength: R₀.

    Returns:
        What was measured, one row for each time.
    """
    import jax
    import numpy as np

    from dynascope.flows import descend
    from dynascope.studies.scaling.skill_flow import skill_flow
    from dynascope.tasks import Expectation

    rate = 2 * target_scale * shares.max()
    # From zero to the first of these in one step, which is as short for the fastest skill as any later one.
    starts = np.concatenate([[min(_STEP / rate, times[0] / 2)], times[:-1]])
    counts = np.maximum(np.ceil(np.log(times / starts) / _STEP), 1)
    skills, lengths, runge_kutta_where_stable = skill_flow()
    start = np.full(shares.shape, math.sqrt(initial_strength))
    asked, scale = np.asarray(shares, np.float64), np.array(target_scale, np.float64)
    recorded = 1 + np.cumsum(counts.astype(np.int32))
    measured = jax.eval_shape(measure, start, *arrays)
    run = descend(
        skills(start, start, asked, scale, arrays),
        Expectation(_loss, "skills"),
        steps=int(recorded[-1]),
        learning_rate=lengths(starts, recorded, (times / starts) ** (1 / counts)),
        optimizer=runge_kutta_where_stable,
        record_steps=recorded,
        statistics={"measured": (_of_missing(measure), _AXES[: measured.ndim])},
    )
    return run["measured"].to_numpy()


def _loss(network: Any) -> Any:
    """Half the mean over samples of (S − a_k b_k)² of the skill that a sample asks for."""
    import jax
    import jax.numpy as jnp

    return jnp.sum(jax.lax.stop_gradient(network.shares) * network.missing**2) / 2


@functools.cache
def _of_missing(measure: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda network: measure(network.missing, *network.arrays)
