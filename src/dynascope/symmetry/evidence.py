"""The recorded statistics of training steps, on which the causes of broken laws are tested."""

from __future__ import annotations

import dataclasses

import numpy as np

from dynascope.symmetry.charge import Charge
from dynascope.symmetry.step_rules import StepRule, step_rule
from dynascope.symmetry.symmetry_arguments import parameter_paths

__all__ = ["Cause", "Evidence"]


@dataclasses.dataclass(frozen=True)
class Cause:
    """A possible cause of a broken law, with the result of its test.

    Attributes:
        name: Name of the cause.
        supported: Whether the test supports the cause.
        evidence: The result of the test, as text.
        paths: The affected parameters; empty if the test does not support the cause.
        rivals: Other causes that fit equally well and that the record cannot distinguish from this one.
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
    """Recorded statistics of training steps, in 64 bits.

    Arrays have shape (step, charge, part) unless stated otherwise. `gradient_norm` and the arrays listed after it have
    shape (step, layer).

    Attributes:
        symmetries: The symmetries; their charges are concatenated along `charge`.
        part_charge: θ_AᵀGθ_A.
        part_absolute: θ_AᵀG sign θ_A.
        part_slope: θ_AᵀG∇L.
        part_stale: θ_AᵀG∇L with the gradient of the previous step.
        part_slope_rounding: Bound on the rounding error of `part_slope`.
        part_pull: θ_AᵀGg′, where g′ is the gradient that the update implies.
        part_pull_rounding: Bound on the rounding error of `part_pull`.
        gradient_norm: ‖∇L‖ of each parameter.
        gradient_largest: Largest entry of ∇L.
        gradient_bits: Number of significant bits that represent all entries of ∇L: 8 for bfloat16, 11 for float16, or
            all.
        update_norm: ‖d‖ of the update of each parameter.
        clipping: Largest difference between g′ and a gradient clipped by value, relative to the largest entry of g′.
        change: Relative distance between g′ and ∇L.
        change_by_rule: The value of `change` under each alternative update rule, shape (step, layer, rule).
        departure_factor: The best-fitting factor of each of `DEPARTURES`, shape (step, layer, departure).
        departure_rest: Relative residual of that fit, same shape.
        unit: The rounding unit of the weights.
        changed_between: Whether the weights changed between the previous step and this one, shape (step, layer); None
            if not recorded.
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
        """The parameters along the dimension `layer`."""
        return parameter_paths(self.symmetries)

    def rows(self, number: int) -> slice:
        """The index range of the charges of a symmetry."""
        start = sum(each.size for each in self.symmetries[:number])
        return slice(start, start + self.symmetries[number].size)

    def rule(self, path: str) -> StepRule:
        """Return the rule by which the updates of a parameter follow from its gradient, using all its symmetries."""
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
