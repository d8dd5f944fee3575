"""How well the times of a staircase can be expected to hold, as its record says."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import xarray as xr

from dynascope.prediction.case import Case
from dynascope.protocols import SumOfNeurons
from dynascope.record import Staircase, staircase_record

__all__ = ["Trust", "neurons_of", "solved"]


@dataclasses.dataclass(frozen=True)
class Trust:
    """How well the times of a staircase can be expected to hold.

    The observed time of a jump differs from the predicted one by an amount that stays bounded as the scale goes to
    zero, while the time itself grows as log(1/scale). So the relative error is of order 1/log(1/scale), and the slope
    of the time against log(1/scale) is the sharper test.
    """

    kind: str
    time_offset: float
    time_floor: float
    time_offset_reason: str
    slope_tolerance: float
    slope_reason: str

    def record(self, staircase: Staircase, case: Case) -> xr.Dataset:
        """The staircase as a record that says how well it holds."""
        offset = max(self.time_offset / -np.log(case.scale), self.time_floor)
        return staircase_record(
            staircase,
            case.task,
            scale=case.scale,
            network=self.kind,
            jump_time_tolerance=(offset, self.time_offset_reason),
            slope_tolerance=(self.slope_tolerance, self.slope_reason),
        )


def solved(trust: Trust, solve: Callable[[Case], Staircase]) -> Callable[[Case], xr.Dataset]:
    """The record of a case, of the staircase that a theory finds for it."""
    return lambda case: trust.record(solve(case), case)


def neurons_of(case: Case) -> float:
    """How many neurons the network has, for what following each of them costs."""
    return float(np.size(case.network.neurons)) if isinstance(case.network, SumOfNeurons) else 1.0
