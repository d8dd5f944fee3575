"""What the studies of the scaling laws share: skills that are learned one after the other, and power laws in them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynascope.results import Chart
from dynascope.studies import Study, Values
from dynascope.studies.fields import numbers, positive
from dynascope.theory.scaling_laws import PowerLaw, PowerLawFit, power_laws

__all__ = ["FITTED", "SkillScaling", "exponent_chart", "law_chart", "ratio_chart"]

FITTED = (
    "{observed.decay_exponent:first} for α = {observed.exponent:first} and {observed.decay_exponent:last} for α = "
    "{observed.exponent:last}, where theory says {predicted.decay_exponent:first} and {predicted.decay_exponent:last}"
)
_LONGEST = 150.0  # ln c of skills that are sure to be learned before they are left alone, at 200


class SkillScaling(Study):
    """Skills of frequency P(k) ∝ k^−(α+1), learned from a small start: losses over a resource, the second of `axes`.

    It states that resource as `theory.scaling_laws.ScalingLaws` has it (`law`), and its amounts.
    """

    exponents: list[float] = numbers([0.3, 0.6, 0.9], "α of the skill frequencies P(k) ∝ k^−(α+1).", above=0.0)
    target_scale: float = positive(1.0, "S, the strength of a learned skill.")
    initial_strength: float = positive(
        0.01, "R₀, the strength at the start of every skill that has a neuron, below half of S."
    )

    names = {
        "exponent": ("exponent α of the skill frequencies", "1"),
        "loss_over_law": ("loss relative to its power law", "1"),
        "power_law": ("power law of the loss", "1"),
        "prefactor": ("prefactor of the power law", "1"),
        "decay_exponent": ("exponent with which the loss decays", "1"),
    }
    theory = "scaling laws"
    task = "skills of frequency k^−(α+1)"
    told = (
        "An input asks for one of many skills, for the k-th with a frequency in proportion to 1/k¹⁺ᵅ.",
        "Of each the model has a strength, which grows from {initial_strength:g} to {target_scale:g} as it is learned.",
    )
    trains = "multilinear, two weights for every skill"
    flow = "gradient flow"
    symbols = {"exponent": "α"}
    law: ClassVar[str]

    if TYPE_CHECKING:
        sizes: int

    @functools.cached_property
    def _amounts(self) -> np.ndarray:
        """Of the resource: whole numbers, unless a study says otherwise."""
        return self._spaced(self.axes[1])

    def check(self) -> None:
        """Skills emerge at a time, and are sure to be learned."""
        early = "start below half of target_scale, where skills emerge at a time"
        self.require(self.initial_strength < self.target_scale / 2, "initial_strength", early, beside="target_scale")
        late = f"choose more than e^−{_LONGEST:g} of target_scale"
        self.require(math.log(self._contrast) < _LONGEST, "initial_strength", late, beside="target_scale")

    def labels(self) -> Values:
        """Exponents, and amounts of the resource."""
        return {**super().labels(), "exponent": self.exponents, self.axes[1]: self._amounts}

    @property
    def _exponents(self) -> np.ndarray:
        return np.asarray(self.exponents, float)

    @property
    def _model(self) -> dict[str, float]:
        """S and R₀, by which the model is trained."""
        return {"target_scale": self.target_scale, "initial_strength": self.initial_strength}

    @property
    def _theory(self) -> dict[str, Any]:
        """What all theories of the model are told."""
        own = [name for name in ("learning_rate", "skills") if hasattr(self, name)]
        return {**self._model, **{name: getattr(self, name) for name in own}}

    @property
    def _contrast(self) -> float:
        """C = S/R₀ − 1."""
        return self.target_scale / self.initial_strength - 1

    @functools.cached_property
    def _laws(self) -> list[PowerLaw]:
        """The power law for each α."""
        return [getattr(power_laws(alpha, **self._theory), self.law) for alpha in self._exponents]

    def _check_span(self, resource: str) -> None:
        """A power law can be fitted from the fewest to the most of a resource."""
        (fewest, most), name = self._ends(resource), f"fewest_{resource}"
        remedy = f"choose at most a twentieth of most_{resource}"
        self.require(20 * fewest <= most, name, remedy, beside=f"most_{resource}")

    def _spaced(self, resource: str) -> np.ndarray:
        """Whole numbers from the fewest to the most of a resource, at about equal ratios."""
        return np.unique(np.round(np.geomspace(*self._ends(resource), self.sizes)).astype(np.int64))

    def _ends(self, resource: str) -> tuple[int, int]:
        return getattr(self, f"fewest_{resource}"), getattr(self, f"most_{resource}")

    def _fitted(self, losses: np.ndarray, at: np.ndarray, fits: Sequence[PowerLawFit]) -> dict[str, Any]:
        """What is measured: losses over `axes`, and power laws fitted to them over the amounts `at`."""
        low, high = np.array([each.exponent_interval for each in fits]).T
        ends = {"decay_exponent_low": ("exponent", low), "decay_exponent_high": ("exponent", high)}
        return {**self._of_laws(losses, at, fits), **ends}

    def _expected(self, losses: Any, at: np.ndarray) -> dict[str, Any]:
        """What theory says of the same, and the power law."""
        return {**self._of_laws(np.array(losses), at, self._laws), "power_law": self._power_law(at)}

    def _power_law(self, at: np.ndarray) -> np.ndarray:
        return np.array([law.loss(at) for law in self._laws])

    def _of_laws(self, losses: np.ndarray, at: np.ndarray, laws: Sequence[Any]) -> dict[str, Any]:
        return {
            "loss": losses,
            "loss_over_law": losses / self._power_law(at),
            "decay_exponent": ("exponent", [law.exponent for law in laws]),
            "prefactor": ("exponent", [law.prefactor for law in laws]),
        }


def law_chart(over: str, caption: str, **options: Any) -> Chart:
    """The loss over a resource and the power law, straight between logarithmic axes."""
    named = {"words": ("", ""), "y_label": "loss", "title": "The loss and its power law"}
    return Chart(
        ("loss", "power_law"), over, f"{caption} The fitted exponent is {FITTED}.", log="xy", **named, **options
    )


def ratio_chart(over: str, caption: str, **options: Any) -> Chart:
    """The loss over its power law, level where this holds."""
    return Chart("loss_over_law", over, caption, log="x", title="Where the power law holds", **options)


def exponent_chart(formula: str) -> Chart:
    """The exponents of fits over α, with their intervals."""
    return Chart(
        "decay_exponent",
        "exponent",
        "How steeply the loss falls, fitted to what was measured, for each α; bars are 95 % intervals, mostly smaller "
        f"than the points. Dashed is what theory says, {formula}. The rarer the rare skills are (large α), the faster "
        "the loss falls.",
        interval=("decay_exponent_low", "decay_exponent_high"),
        title="The exponent",
        points=True,
    )
