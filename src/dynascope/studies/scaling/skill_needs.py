"""How much of a resource every skill needs, forecast from what one skill needs that is learned alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr

from dynascope.comparison import Claim, report_claims
from dynascope.errors import InputError
from dynascope.results import Chart
from dynascope.studies import Values
from dynascope.studies.scaling.emergence_study import EmergenceStudy
from dynascope.studies.scaling.nearest_forecast import nearest_claim, strength_at
from dynascope.theory.skills import Need
from dynascope.theory.skills.training_set import Definition

__all__ = ["CLAIM_CHART", "QUARTER", "SkillNeeds", "half_chart", "strength_chart"]

_DEFINITIONS: Mapping[str, Definition] = {"strength": "correlation", "loss_equivalent": "loss_equivalent"}

_NO_LOSS = 1e-12  # of single precision, in which networks are trained
_MOST_OFF = 0.9  # of a forecast, so that it stays above zero
QUARTER = 0.25  # a strength that is off by less is nearer to one half than to none or all of a skill

CLAIM_CHART = Chart(
    "change",
    "hypothesis",
    "With 95 % intervals over independent runs. First what decides: half way between the forecasts for two skills, by "
    "how much networks are past one half of the first, or short of one half of the second, whichever is least; the "
    "claim is that it is above zero. Then by how much networks have more or less than is forecast.",
    interval=("low", "high"),
    title="Networks against the forecast",
    y_label="difference of strengths",
    points=True,
)


def strength_chart(resource: str, caption: str, **options: Any) -> Chart:
    """The strength of every skill over a resource, and its forecast."""
    named = {"title": "Skills emerge one after the other", "error": "strength_error"}
    return Chart("strength", resource, caption, points=True, **named, **options)


def half_chart(resource: str, way: str, **options: Any) -> Chart:
    """The amount of a resource with which half of each skill is learned, and its forecast."""
    caption = (
        f"The number of {resource} {way} which half of a skill is learned. Networks needed between "
        f"{{observed.half_{resource}_ratio:least}} and {{observed.half_{resource}_ratio:most}} times what is forecast "
        "(dashed)."
    )
    title = f"How many {resource} each skill needs"
    return Chart(f"half_{resource}", "skill", caption, points=True, title=title, **options)


class SkillNeeds(EmergenceStudy):
    """What the studies of samples and of neurons share: networks that learn all skills, and their forecast.

    The verdict is on the claim `forecast`: networks learn half of every skill nearer to the amount that is forecast for
    it than to that of any other skill. So half way between two forecasts they must have more than half of the one skill
    and less than half of the other.

    `resource` is the field that has the amounts of the resource, and the first of `axes`; `along_axis` the function by
    which amounts are near or far from each other, and `calibrate` the theory that says what one skill needs. A study
    states `_alone`, amounts for networks that learn one skill, with the strength R/S and the loss over ½ S² of
    independent runs, shape (amounts, runs); `_law`, the strength of every skill at every amount; `_forecast_half`, the
    amount at which half of each is learned; and `_differences`, what else is claimed of runs of shape (amounts, runs,
    skills).
    """

    resource: ClassVar[str]
    along_axis: ClassVar[Callable[[Any], Any]]
    calibrate: ClassVar[Callable[..., Need]]
    along = ("skill",)
    judged_claims = ("forecast",)

    def labels(self) -> Values:
        """Amounts and skills."""
        return {**super().labels(), self.resource: self._amounts}

    if TYPE_CHECKING:

        def _alone(self) -> tuple[list[int], np.ndarray, np.ndarray]: ...
        def _law(self, needed: float, definition: Definition) -> np.ndarray: ...
        def _differences(self, runs: np.ndarray) -> list[Claim]: ...
        @property
        def _forecast_half(self) -> np.ndarray: ...

    @property
    def _amounts(self) -> list[int]:
        return getattr(self, self.resource)

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
            "loss": (self.resource, self.target_scale**2 / 2 * losses @ self._task.frequencies),
        }

    def _reported(self, runs: np.ndarray, *, undecided: str = "") -> dict[str, Any]:
        """Report on the claims; with a reason why the runs cannot decide them, as undecided."""
        claims = [self._nearest(runs), *self._differences(runs)]
        return report_claims([each.if_known(not undecided, undecided) for each in claims])

    def _nearest(self, runs: np.ndarray) -> Claim:
        """With an interval over the networks that learn all skills and over those that learn one."""
        statement = "Half of every skill is learned nearer to where that is forecast than to where it is of another."
        places, need = self.along_axis(np.array(self._amounts)), self._needs["correlation"]
        off = min(need.error / need.needed, _MOST_OFF)
        forecast, *around = (self.along_axis(self._forecast_half * (1 + each)) for each in (0, -off, off))
        return nearest_claim("forecast", statement, runs, places, forecast, around)

    def _strength_at(self, runs: np.ndarray, skill: int, amount: float) -> np.ndarray:
        """The strength of a skill, counted from zero, in each run at some amount."""
        return strength_at(runs[..., skill], self.along_axis(np.array(self._amounts)), float(self.along_axis(amount)))

    def _inside(self, amounts: np.ndarray) -> list[int]:
        """The skills of which these lie among the amounts."""
        return np.flatnonzero((amounts >= self._amounts[0]) & (amounts <= self._amounts[-1])).tolist()

    def _predicted(self, exact: Mapping[str, Any], **said: Any) -> xr.Dataset:
        """The record of what theory says exactly and of the forecast, with the needs of one skill and their errors."""
        for name, need in self._needs.items():
            said |= {f"needed_{name}": need.needed, f"needed_{name}_error": need.error}
        laws = {name: self._law(self._needs[of].needed, of) for name, of in _DEFINITIONS.items()}
        forecast = {**exact, **laws, f"half_{self.resource}": ("skill", self._forecast_half)}
        return self.record(forecast, theory=self.theory, reference=self.reference.paper, **said)

    @functools.cached_property
    def _needs(self) -> Mapping[Definition, Need]:
        """What one skill needs, by either definition."""
        amounts, strength, loss = self._alone()
        root = np.sqrt(np.maximum(loss.mean(axis=1, keepdims=True), _NO_LOSS))
        # The root of the mean loss, and by how much each run moves it.
        curves: dict[Definition, np.ndarray] = {
            "correlation": strength,
            "loss_equivalent": 1 - root - (loss - root**2) / (2 * root),
        }
        try:
            return {name: self._need(amounts, runs, name) for name, runs in curves.items()}
        except InputError as error:
            raise InputError(
                f"networks that learn one skill with {amounts[0]} to {amounts[-1]} {self.resource} do not pass half "
                "of it",
                argument=self.resource,
                value=self._amounts,
                remedy="choose a wider range, or more steps",
            ) from error

    def _need(self, amounts: list[int], runs: np.ndarray, definition: Definition) -> Need:
        """Of the mean over runs; the error is what amounts leave open, and that of the mean where it passes half."""
        mean = runs.mean(axis=1)
        need = type(self).calibrate(amounts, mean, definition=definition)
        after = int(np.searchsorted(amounts, need.half))
        slope = (mean[after] - mean[after - 1]) / (amounts[after] - amounts[after - 1])
        scatter = strength_at(runs, np.array(amounts), need.half).std(ddof=1) / np.sqrt(runs.shape[1]) / slope
        return need._replace(error=float(np.hypot(need.error, scatter * need.needed / need.half)))

    def _half(self, strength: np.ndarray) -> float:
        """The amount at which the strength is one half: at most the first, infinite if it does not get there."""
        if strength[0] >= 0.5:
            return float(self._amounts[0])
        return type(self).calibrate(self._amounts, strength).half if strength.max() >= 0.5 else float("inf")
