"""Forecast of the amount of a resource that each skill requires, calibrated on one skill learned alone."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dynascope.comparison import Claim, report_claims
from dynascope.errors import InputError
from dynascope.studies import Values
from dynascope.studies.scaling.emergence_experiment import EmergenceExperiment
from dynascope.studies.scaling.nearest_forecast import nearest_claim, strength_at
from dynascope.theory.skills import Need
from dynascope.theory.skills.training_set import Definition

__all__ = ["QUARTER", "SkillNeeds"]

_DEFINITIONS: Mapping[str, Definition] = {"strength": "correlation", "loss_equivalent": "loss_equivalent"}

_NO_LOSS = 1e-12  # smallest loss resolved in single precision
_MOST_OFF = 0.9  # largest relative error of a forecast, so that its lower end stays positive
QUARTER = 0.25  # a strength within this distance of one half is closer to one half than to zero or one


class SkillNeeds(EmergenceExperiment):
    """Trains networks with several amounts of a resource, and forecasts the amount that each skill requires.

    The resource is the number of samples or neurons. The verdict rests on the claim `forecast`: the amount at which
    a skill reaches half strength is nearer to the forecast for this skill than to the forecast for any other skill.
    Equivalently, at the midpoint between two forecasts the networks have learned more than half of one skill and less
    than half of the other.

    A subclass sets `resource`, the study's field of amounts; `along_axis`, the scale on which distances between amounts
    are measured; `calibrate`, the function that estimates the amount that one skill needs; and `calibrated_on`, a
    description of the calibration data. It implements `alone`, `law`, `half_forecast` and `differences`.
    """

    resource: ClassVar[str]
    along_axis: ClassVar[Callable[[Any], Any]]
    calibrate: ClassVar[Callable[..., Need]]
    calibrated_on: ClassVar[str]

    if TYPE_CHECKING:

        def alone(self) -> tuple[list[int], np.ndarray, np.ndarray]:
            """The amounts; R/S and relative loss L/(½ S²) of networks trained on one skill, shape (amounts, runs)."""
            ...

        def law(self, needed: float, definition: Definition) -> np.ndarray:
            """The strength of every skill at every amount, given the amount that one skill needs."""
            ...

        def differences(self, runs: np.ndarray) -> list[Claim]:
            """Further claims about strengths of shape (amounts, runs, skills)."""
            ...

        @property
        def half_forecast(self) -> np.ndarray:
            """The forecast amount at which half of each skill is learned."""
            ...

    @property
    def amounts(self) -> list[int]:
        """The amounts of the resource."""
        return getattr(self.study, self.resource)

    def measured(self, runs: np.ndarray, losses: np.ndarray) -> dict[str, Any]:
        """Statistics of networks trained on all skills.

        Args:
            runs: R/S of independent runs, shape (amounts, runs, skills).
            losses: Mean loss relative to ½ S², shape (amounts, skills).
        """
        mean = runs.mean(axis=1)
        half = np.array([self.half(curve) for curve in mean.T])
        return {
            "strength": mean,
            "loss_equivalent": 1 - np.sqrt(losses),
            "strength_error": runs.std(axis=1, ddof=1) / np.sqrt(runs.shape[1]),
            f"half_{self.resource}": ("skill", half),
            f"half_{self.resource}_ratio": ("skill", half / self.half_forecast),
            "loss": (self.resource, self.study.target_scale**2 / 2 * losses @ self.task.frequencies),
        }

    def claims(self, runs: np.ndarray, *, undecided: str = "") -> dict[str, Any]:
        """Evaluate the claims; all of them are undecided if a reason is given."""
        claims = [self.nearest(runs), *self.differences(runs)]
        return report_claims([each.if_known(not undecided, undecided) for each in claims])

    def nearest(self, runs: np.ndarray) -> Claim:
        """The claim `forecast`, with an interval that includes the errors of training and calibration."""
        statement = (
            "The amount at which a skill reaches half strength is nearer to the forecast for this skill than to the "
            "forecast for any other skill."
        )
        places, need = type(self).along_axis(np.array(self.amounts)), self.needs["correlation"]
        off = min(need.error / need.needed, _MOST_OFF)
        forecast, *around = (type(self).along_axis(self.half_forecast * (1 + each)) for each in (0, -off, off))
        return nearest_claim("forecast", statement, runs, places, forecast, around)

    def strength_at(self, runs: np.ndarray, skill: int, amount: float) -> np.ndarray:
        """The interpolated strength of a skill (numbered from zero) at some amount, in each run."""
        places, place = (type(self).along_axis(np.array(each)) for each in (self.amounts, amount))
        return strength_at(runs[..., skill], places, float(place))

    def inside(self, amounts: np.ndarray) -> list[int]:
        """The skills whose entry in `amounts` lies within the range of trained amounts."""
        return np.flatnonzero((amounts >= self.amounts[0]) & (amounts <= self.amounts[-1])).tolist()

    def forecast(self) -> dict[str, Any]:
        """The forecast strengths by correlation and by loss, and the amounts at which half of a skill is learned."""
        laws = {name: self.law(self.needs[of].needed, of) for name, of in _DEFINITIONS.items()}
        return {**laws, f"half_{self.resource}": ("skill", self.half_forecast)}

    def prediction_attributes(self) -> Values:
        """The calibrated amounts that one skill needs, and their errors."""
        attributes: dict[str, Any] = {"calibration": self.calibrated_on}
        for name, need in self.needs.items():
            attributes |= {f"needed_{name}": need.needed, f"needed_{name}_error": need.error}
        return attributes

    @functools.cached_property
    def needs(self) -> Mapping[Definition, Need]:
        """The amount that one skill needs, for strengths defined by correlation and by loss."""
        amounts, strength, loss = self.alone()
        root = np.sqrt(np.maximum(loss.mean(axis=1, keepdims=True), _NO_LOSS))
        # The square root of the mean loss, and the first-order contribution of each run to it.
        curves: dict[Definition, np.ndarray] = {
            "correlation": strength,
            "loss_equivalent": 1 - root - (loss - root**2) / (2 * root),
        }
        try:
            return {name: self.need(amounts, runs, name) for name, runs in curves.items()}
        except InputError as error:
            raise InputError(
                f"with {amounts[0]} to {amounts[-1]} {self.resource}, the strengths of networks trained on one skill "
                "do not cross one half",
                argument=self.resource,
                value=self.amounts,
                remedy="choose a wider range or more steps",
            ) from error

    def need(self, amounts: list[int], runs: np.ndarray, definition: Definition) -> Need:
        """Estimate the amount that one skill needs from strengths of shape (amounts, runs).

        The error combines the spacing of the amounts with the standard error of the mean strength at half strength.
        """
        mean = runs.mean(axis=1)
        need = type(self).calibrate(amounts, mean, definition=definition)
        after = int(np.searchsorted(amounts, need.half))
        slope = (mean[after] - mean[after - 1]) / (amounts[after] - amounts[after - 1])
        scatter = strength_at(runs, np.array(amounts), need.half).std(ddof=1) / np.sqrt(runs.shape[1]) / slope
        return need._replace(error=float(np.hypot(need.error, scatter * need.needed / need.half)))

    def half(self, strength: np.ndarray) -> float:
        """The interpolated amount at half strength: the first amount if all exceed half, infinite if none does."""
        if strength[0] >= 0.5:
            return float(self.amounts[0])
        return type(self).calibrate(self.amounts, strength).half if strength.max() >= 0.5 else float("inf")
