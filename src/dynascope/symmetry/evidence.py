"""The numbers that recorded steps leave for each part of a symmetry, by which causes of broken laws are tested."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.step_rules import StepRule, step_rule
from dynascope.symmetry.symmetry_arguments import parameter_paths

__all__ = ["Cause", "Evidence"]


@dataclasses.dataclass(frozen=True)
class Cause:
    """A cause of a broken law, and the result of its test.

    Attributes:
        name: What may be wrong.
        supported: Whether the test speaks for it.
        evidence: What the test found, with its number.
        paths: The parameters that it names; empty if it does not speak for the cause.
        rivals: Other causes that fit as well, so that nothing recorded tells them apart.
    """

    name: str
    supported: bool
    evidence: str
    paths: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()

    def __str__(self) -> str:
        named = " or ".join((self.name, *self.rivals))
        return f"{named}: {' '.join(self.paths)}" if self.supported else f"no {self.name}"


@dataclasses.dataclass(frozen=True, eq=False)
class Evidence:
    """What was recorded of steps, in 64 bits; of shape (step, charge, part) or, from `gradient_norm` on, (step, layer).

    Attributes:
        symmetries: The symmetries, whose charges stand one after the other.
        part_charge: θ_AᵀGθ_A.
        part_absolute: θ_AᵀG sign θ_A.
        part_slope: θ_AᵀG∇L.
        part_stale: The same of the gradient of the step before.
        part_slope_rounding: What rounding does to it.
        part_pull: θ_AᵀGg′ of the gradient that the update implies.
        part_pull_rounding: What rounding does to it.
        gradient_norm: ‖∇L‖ of each parameter.
        gradient_largest: Its largest entry.
        gradient_bits: Significant bits that hold all its entries, 8 of bfloat16, 11 of float16, or all.
        update_norm: ‖d‖ of each parameter.
        clipping: How far each step is from one that is clipped by value, relative.
        change: How far the gradient that each step implies is from the gradient, relative.
        change_by_rule: The change if another rule had made the step, shape (step, layer, rule).
        departure_factor: The factor of each of `DEPARTURES` that fits best, shape (step, layer, departure).
        departure_rest: What the fit leaves, relative, likewise.
        unit: The rounding unit of the weights.
        changed_between: Whether weights had been changed since the step before; None if nobody looked.
    """

    symmetries: tuple[Charge, ...]
    part_charge: np.ndarray
    part_absolute: np.ndarray
    part_slope: np.ndarray
    part_stale: np.ndarray
    part_slope_rounding: np.ndarray
    part_pull: np.ndarray
    part_pull_rounding: np.ndarray
    gradient_norm: np.ndarray
    gradient_largest: np.ndarray
    gradient_bits: np.ndarray
    update_norm: np.ndarray
    clipping: np.ndarray
    change: np.ndarray
    change_by_rule: np.ndarray
    departure_factor: np.ndarray
    departure_rest: np.ndarray
    unit: float = 2.0**-53
    changed_between: np.ndarray | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The parameters along `layer`."""
        return parameter_paths(self.symmetries)

    def rows(self, number: int) -> slice:
        """The charges of a symmetry."""
        start = sum(each.size for each in self.symmetries[:number])
        return slice(start, start + self.symmetries[number].size)

    def rule(self, path: str) -> StepRule:
        """How the updates of a parameter follow from its gradient, by what all its symmetries say."""
        names = ("part_slope", "part_pull", "part_pull_rounding")
        own = [
            (self.rows(number), place)
            for number, each in enumerate(self.symmetries)
            for place, part in enumerate(each.parts)
            if part.path == path
        ]
        series = (np.concatenate([getattr(self, name)[:, rows, place] for rows, place in own], 1) for name in names)
        layer = self.paths.index(path)
        names = ("gradient_norm", "gradient_largest", "update_norm", "clipping", "change", "change_by_rule")
        names += ("departure_factor", "departure_rest")
        return step_rule(*series, *(getattr(self, name)[:, layer] for name in names))
