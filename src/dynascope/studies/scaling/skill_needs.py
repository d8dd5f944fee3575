"""How much of a resource every skill needs, forecast from what one skill needs that is learned alone."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import xarray as xr

from dynascope.comparison import Claim, report_claims
from dynascope.comparison.interval import student_half
from dynascope.errors import InputError
from dynascope.plot import Chart
from dynascope.studies.scaling.parity_networks import STRENGTH, EmergenceStudy, SkillReading
from dynascope.theory.skills import Need
from dynascope.theory.skills.training_set import Definition

__all__ = ["CLAIM_CHART", "QUARTER", "SkillNeeds", "strength_chart"]

_DEFINITIONS: Mapping[str, Definition] = {"strength": "correlation", "loss_equivalent": "loss_equivalent"}

QUARTER = 0.25  # a strength that is off by less is nearer to one half than to none or all of a skill

CLAIM_CHART = Chart(
    "change",
    "hypothesis",
    "With 95 % intervals over independent runs. First what decides: half way between the forecasts for two skills, by "
    "how much networks are past one half of the first, or short of one half of the second, whichever is least; the "
    "claim is that it is above zero. Then by how much networks have more or less than is forecast.",
    interval=("low", "high"),
    points=True,
    title="Networks against the forecast",
    y_label="difference of strengths",
)


def strength_chart(resource: str, caption: str, **options: Any) -> Chart:
    """The strength of every skill over a resource, and its forecast."""
    named = {"title": "Skills emerge one after the other", "y_label": STRENGTH}
    return Chart("strength", resource, caption, points=True, error="strength_error", **named, **options)


class SkillNeeds(EmergenceStudy):
    """What the studies of samples and of neurons share: networks that learn all skills, and their forecast.

    The verdict is on the claim `forecast`: networks learn half of every skill nearer to the amount that is forecast for
    it than to that of any other skill. So half way between two forecasts they must have more than half of the one skill
    and less than half of the other.

    `resource` is the field that has the amounts of the resource, and the first of `axes`; the axis along which amounts
    are near or far from each other is `_along`.
    """

    resource: ClassVar[str]
    judged_claims: ClassVar = ("forecast",)

    def labels(self) -> Mapping[str, Any]:
        """Amounts and skills."""
        return {**super().labels(), self.resource: self._amounts}

    def _calibrate(self, amounts: list[int], strength: np.ndarray, definition: Definition) -> Need:
        """The need of a skill of which this strength is learned."""
        raise NotImplementedError

    def _alone(self) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Amounts for networks that learn one skill, their mean strength R/S, and their mean loss over ½ S²."""
        raise NotImplementedError

    def _law(self, needed: float, definition: Definition = "correlation") -> np.ndarray:
        """The strength of every skill at every amount."""
        raise NotImplementedError

    def _differences(self, runs: np.ndarray) -> list[Claim]:
        """What is claimed of the strength where some of it is forecast, of runs of shape (amounts, runs, skills)."""
        raise NotImplementedError

    def _along(self, amounts: np.ndarray) -> np.ndarray:
        """Where amounts are on the axis along which they are near or far."""
        raise NotImplementedError

    @property
    def _forecast_half(self) -> np.ndarray:
        """The amount at which half of a skill is learned, of every skill."""
        raise NotImplementedError

    @property
    def _amounts(self) -> list[int]:
        return getattr(self, self.resource)

    @functools.cached_property
    def _readings(self) -> dict[str, tuple[SkillReading, tuple[str, ...]]]:
        return {name: (SkillReading(self._parity, name), ("skill",)) for name in ("strength", "skill_loss")}

    def _observed(self, runs: np.ndarray, losses: np.ndarray) -> dict[str, Any]:
        """What is recorded of networks.

        Args:
            runs: R/S of independent runs, shape (amounts, runs, skills).
            losses: Mean loss over ½ S², shape (amounts, skills).
        """
        mean = runs.mean(axis=1)
        half = np.array([self._half(curve) for curve in mean.T])
        return {
            "strength": mean,
            "loss_equivalent": 1 - np.sqrt(losses),
            "strength_error": runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1]),
            f"half_{self.resource}": ("skill", half),
            f"half_{self.resource}_ratio": ("skill", half / self._forecast_half),
            "loss": (self.resource, self.target_scale**2 / 2 * losses @ self._parity.frequencies),
        }

    def _reported(self, runs: np.ndarray) -> dict[str, Any]:
        """What the runs say of the claims."""
        return report_claims([self._nearest(runs), *self._differences(runs)])

    def _nearest(self, runs: np.ndarray) -> Claim:
        """Half of a skill is learned nearer to its own forecast than to any other; all judged together."""
        place = self._along(self._forecast_half)
        middles = (place[1:] + place[:-1]) / 2
        # The first skill has no neighbour on its left, and the last none on its right: as far there as on the other.
        edges = np.concatenate([2 * place[:1] - middles[:1], middles, 2 * place[-1:] - middles[-1:]])
        first, last = self._along(np.array(self._amounts)[[0, -1]])
        sides = [(k, k, -1) for k in range(self.skills)] + [(k, k + 1, 1) for k in range(self.skills)]
        over = np.array(
            [
                sign * (self._strength_at(runs, skill, edges[edge]) - 0.5)
                for skill, edge, sign in sides
                if len(middles) and first <= edges[edge] <= last
            ]
        )
        least = [np.nan] * 3
        if len(over):
            means, variances = over.mean(axis=1), over.var(axis=1, ddof=1)
            # All of them lie within their intervals with the probability of the claim, so that the least does.
            halves = [student_half(float(each), over.shape[1], 1 - 0.05 / len(over)) for each in variances]
            least = [float(np.min(each)) for each in (means, means - halves, means + halves)]
        return Claim(
            "forecast",
            "Half of every skill is learned nearer to where that is forecast than to where it is of another.",
            *least,
            least=0.0,
        )

    def _strength_at(self, runs: np.ndarray, skill: int, place: float) -> np.ndarray:
        """The strength of a skill, counted from zero, in each run at some place along the amounts."""
        amounts = self._along(np.array(self._amounts))
        return np.array([np.interp(place, amounts, run) for run in runs[..., skill].T])

    def _forecast(self) -> dict[str, Any]:
        """What is forecast of the same."""
        laws = {name: self._law(self._needs[of].needed, of) for name, of in _DEFINITIONS.items()}
        return {**laws, f"half_{self.resource}": ("skill", self._forecast_half)}

    def _predicted(self, exact: Mapping[str, Any], calibration: str) -> xr.Dataset:
        """The record of what theory says exactly and of the forecast, with the needs of one skill and their errors."""
        needs = self._needs.items()
        return self.record(
            {**exact, **self._forecast()},
            theory=self.theory,
            reference=self.reference.paper,
            calibration=calibration,
            **{f"needed_{name}": need.needed for name, need in needs},
            **{f"needed_{name}_error": need.error for name, need in needs},
        )

    @functools.cached_property
    def _needs(self) -> Mapping[Definition, Need]:
        """What one skill needs, by either definition."""
        amounts, strength, loss = self._alone()
        curves: dict[Definition, np.ndarray] = {"correlation": strength, "loss_equivalent": 1 - np.sqrt(loss)}
        try:
            return {definition: self._calibrate(amounts, curve, definition) for definition, curve in curves.items()}
        except InputError as error:
            raise InputError(
                f"networks that learn one skill with {amounts[0]} to {amounts[-1]} {self.resource} do not pass half "
                "of it",
                argument=self.resource,
                value=self._amounts,
                remedy="choose a wider range, or more steps",
            ) from error

    def _half(self, strength: np.ndarray) -> float:
        """The amount at which the strength is one half: at most the first, infinite if it does not get there."""
        if strength[0] >= 0.5:
            return float(self._amounts[0])
        return self._calibrate(self._amounts, strength, "correlation").half if strength.max() >= 0.5 else float("inf")
