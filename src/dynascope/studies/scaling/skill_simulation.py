"""Base class of the studies of scaling laws: the multilinear model of skills and the power laws of its loss."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded
from dynascope.studies import Study, Values, parameter
from dynascope.theory.scaling_laws import PowerLaw, PowerLawFit, power_laws
from dynascope.validation.bounded import PositiveFloat

__all__ = ["SkillScaling", "exponent_chart", "fitted_exponents", "law_chart", "ratio_chart"]

_LONGEST = 150.0  # largest ln c, because training stops updating a skill within e^−200 of its limit


class SkillScaling(Study):
    """Tests a power law for the loss of the multilinear model on skills with frequencies P(k) ∝ k^−(α+1).

    A subclass sets `law`, the field of `theory.scaling_laws.ScalingLaws` for its resource, and names the resource in
    the second of its `axes`.
    """

    exponents: list[PositiveFloat] = parameter([0.3, 0.6, 0.9], "Exponents α of the skill frequencies P(k) ∝ k^−(α+1).")
    target_scale: PositiveFloat = parameter(1.0, "Strength S of a learned skill.")
    initial_strength: PositiveFloat = parameter(
        0.01, "Initial strength R₀ of every skill with a neuron, less than half of S."
    )

    names = {
        "exponent": ("exponent α of the skill frequencies", "1"),
        "loss_over_law": ("loss divided by its power law", "1"),
        "power_law": ("power law of the loss", "1"),
        "prefactor": ("prefactor of the power law", "1"),
        "decay_exponent": ("decay exponent of the loss", "1"),
    }
    theory = "scaling laws"
    task = "skills with frequencies k^−(α+1)"
    notes = (
        "Each sample requires one skill; the frequency of skill k is proportional to 1/k¹⁺ᵅ.",
        "As the model learns a skill, the strength of the skill grows from {initial_strength:g} to {target_scale:g}.",
    )
    trains = "multilinear, two weights per skill"
    flow = "gradient flow"
    symbols = {"exponent": "α"}
    law: ClassVar[str]

    if TYPE_CHECKING:
        sizes: int

    @functools.cached_property
    def _amounts(self) -> np.ndarray:
        """Amounts of the resource; integers by default."""
        return self._spaced(self.axes[1])

    def check(self) -> None:
        """Require that every skill emerges at a finite time and is learned completely."""
        early = "choose less than half of target_scale, so that every skill has an emergence time"
        self.require(self.initial_strength < self.target_scale / 2, "initial_strength", early, beside="target_scale")
        late = f"choose more than e^−{_LONGEST:g} of target_scale"
        self.require(math.log(self._contrast) < _LONGEST, "initial_strength", late, beside="target_scale")

    def labels(self) -> Values:
        """Exponents and amounts of the resource."""
        return {**super().labels(), "exponent": self.exponents, self.axes[1]: self._amounts}

    @property
    def _exponents(self) -> np.ndarray:
        return np.asarray(self.exponents, float)

    @property
    def _model(self) -> dict[str, float]:
        """S and R₀, the parameters of the trained model."""
        return {"target_scale": self.target_scale, "initial_strength": self.initial_strength}

    @property
    def _theory(self) -> dict[str, Any]:
        """Arguments of the scaling laws."""
        return self._model | {name: getattr(self, name) for name in ("learning_rate", "skills") if hasattr(self, name)}

    @property
    def _contrast(self) -> float:
        """C = S/R₀ − 1."""
        return self.target_scale / self.initial_strength - 1

    @functools.cached_property
    def _laws(self) -> list[PowerLaw]:
        """The power law for each α."""
        return [getattr(power_laws(alpha, **self._theory), self.law) for alpha in self._exponents]

    def _check_span(self, resource: str) -> None:
        """Require a range of amounts wide enough to fit a power law."""
        (fewest, most), name = self._ends(resource), f"fewest_{resource}"
        remedy = f"choose at most a twentieth of most_{resource}"
        self.require(20 * fewest <= most, name, remedy, beside=f"most_{resource}")

    def _spaced(self, resource: str) -> np.ndarray:
        """Integers from the smallest to the largest amount of a resource, spaced approximately geometrically."""
        return np.unique(np.round(np.geomspace(*self._ends(resource), self.sizes)).astype(np.int64))

    def _ends(self, resource: str) -> tuple[int, int]:
        return getattr(self, f"fewest_{resource}"), getattr(self, f"most_{resource}")

    def _fitted(self, losses: np.ndarray, at: np.ndarray, fits: Sequence[PowerLawFit]) -> dict[str, Any]:
        """Measured losses over `axes`, and power laws fitted to them at the amounts `at`."""
        low, high = np.array([each.exponent_interval for each in fits]).T
        ends = {"decay_exponent_low": ("exponent", low), "decay_exponent_high": ("exponent", high)}
        return {**self._of_laws(losses, at, fits), **ends}

    def _expected(self, losses: Any, at: np.ndarray) -> dict[str, Any]:
        """Predicted losses over `axes`, and the predicted power laws."""
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


def fitted_exponents(result: Comparison) -> str:
    """Describe the fitted and predicted decay exponents for the first and last α, as part of a sentence."""
    fitted, predicted = (side["decay_exponent"] for side in (result.observed, result.predicted))
    ends = dict.fromkeys((0, fitted.size - 1))
    return " and ".join(
        f"{rounded(fitted[end])} for α = {rounded(fitted['exponent'][end])} (theory: {rounded(predicted[end])})"
        for end in ends
    )


def law_chart(over: str, caption: str, result: Comparison, **options: Any) -> Chart:
    """A log-log chart of the loss over a resource, with its power law."""
    return Chart(
        ("loss", "power_law"),
        over,
        f"{caption} The fitted decay exponent is {fitted_exponents(result)}.",
        log="xy",
        words=("", ""),
        y_label="loss",
        title="Loss and power law",
        **options,
    )


def ratio_chart(over: str, caption: str, **options: Any) -> Chart:
    """A chart of the loss divided by its power law, flat where the power law holds."""
    return Chart("loss_over_law", over, caption, log="x", title="Loss divided by its power law", **options)


def exponent_chart(formula: str) -> Chart:
    """A chart of fitted exponents over α, with their confidence intervals."""
    return Chart(
        "decay_exponent",
        "exponent",
        "Decay exponent of a power law fitted to the measured loss, against α, with 95 % confidence intervals that "
        f"are often smaller than the points. The dashed line shows the predicted exponent {formula}.",
        interval=("decay_exponent_low", "decay_exponent_high"),
        title="Decay exponent",
        points=True,
    )
