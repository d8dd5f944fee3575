"""Tolerances of the times of a staircase."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable

import numpy as np
import xarray as xr

from dynascope.prediction.case import Case
from dynascope.protocols import SumOfNeurons
from dynascope.results import Staircase, staircase_record
from dynascope.theory.assumptions import SMALL_START

__all__ = ["Solved", "Trust", "neurons_of", "time_error"]


@dataclasses.dataclass(frozen=True)
class Trust:
    """The expected accuracy of the times of a staircase.

    The observed time of a jump differs from the predicted one by an amount that remains bounded as the scale goes to
    zero, while the time itself grows as log(1/scale). The relative error is therefore of order 1/log(1/scale), and the
    slope of the time against log(1/scale) is a stricter test.
    """

    kind: str
    time_offset: float
    time_floor: float
    time_offset_reason: str
    slope_tolerance: float
    slope_reason: str

    def time_error(self, scale: float) -> float:
        """Return the expected relative error of a time at a scale below one."""
        return float(max(self.time_offset / -np.log(scale), self.time_floor)) if scale < 1 else float("inf")

    def record(self, staircase: Staircase, case: Case) -> xr.Dataset:
        """Make a record of the staircase with its tolerances."""
        return staircase_record(
            staircase,
            case.task,
            scale=case.scale,
            network=self.kind,
            jump_time_tolerance=(self.time_error(case.scale), self.time_offset_reason),
            slope_tolerance=(self.slope_tolerance, self.slope_reason),
        )


@dataclasses.dataclass(frozen=True)
class Solved:
    """A solver that computes the staircase of a case, and returns it as a record with tolerances.

    Attributes:
        trust: The expected accuracy of the times.
        solve: Returns the staircase of a case.
    """

    trust: Trust
    solve: Callable[[Case], Staircase]

    def __call__(self, case: Case) -> xr.Dataset:
        """Return the record with its tolerances."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", f".*assumes a {SMALL_START.name}")  # the record states it
            staircase = self.solve(case)
        return self.trust.record(staircase, case)


def neurons_of(case: Case) -> float:
    """Return the number of neurons, for cost estimates."""
    return float(np.size(case.network.neurons)) if isinstance(case.network, SumOfNeurons) else 1.0


def time_error(error: float) -> str:
    """Format the relative error of times as text; empty if it is one or more."""
    return f"error of the times up to {100 * error:.0f} % at this scale" if error < 1 else ""
