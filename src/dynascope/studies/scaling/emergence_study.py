"""Base class of the studies of emergence: the task and the paper's setting."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import xarray as xr

from dynascope.results import Comparison
from dynascope.studies import Study, Values, parameter
from dynascope.validation.bounded import PositiveFloat, PositiveInt

if TYPE_CHECKING:
    from dynascope.tasks import SparseParity

__all__ = ["EmergenceStudy"]

_PUBLISHED = {"skills": 5, "bits": 32, "relevant_bits": 3, "exponent": 0.6, "target_scale": 5.0}  # task of the paper


class EmergenceStudy(Study):
    """Trains two-layer ReLU networks on multitask sparse parity, and tests forecasts calibrated on a single skill.

    A subclass sets `experiment_type`, the class of its experiment; `published`, the fields of the paper's setting other
    than those of the task; and `shown`, the variables of the forecast that are shown but do not affect the verdict.
    Networks are trained in single precision.
    """

    skills: PositiveInt = parameter(3, "Number of skills n_s.")
    bits: PositiveInt = parameter(9, "Number of input bits n_b.")
    relevant_bits: PositiveInt = parameter(3, "Number of bits m in the parity of each skill.", most="bits")
    exponent: PositiveFloat = parameter(0.6, "Exponent α of the skill frequencies P(k) ∝ k^−(α+1).")
    target_scale: PositiveFloat = parameter(5.0, "Magnitude S of the targets ±S.")
    paper: bool = parameter(False, "Whether to use the paper's setting instead, which requires a GPU.")

    experiment_type: ClassVar[type]
    published: ClassVar[Mapping[str, Any]]
    shown: ClassVar[tuple[str, ...]]
    trains = "two-layer ReLU"
    names = {
        "skill": ("skill, in order of decreasing frequency", "1"),
        "loss_equivalent": ("strength of the skill computed from its loss", "1"),
        "basis_loss": ("loss of the skill in the solvable model", "1"),
        "strength": ("strength of the skill", "1"),
        "strength_error": ("standard error of the strength of the skill", "1"),
        "basis_strength": ("strength of the skill in the solvable model", "1"),
    }

    @functools.cached_property
    def setting(self) -> Any:
        """This study, or the study with the paper's fields if `paper` is set."""
        return dataclasses.replace(self, **_PUBLISHED, **self.published, paper=False) if self.paper else self

    @functools.cached_property
    def experiment(self) -> Any:
        """The training, the measurements and the forecast."""
        return self.experiment_type(self)

    @property
    def _task(self) -> SparseParity:
        return self.experiment.task

    def trained(self) -> Values:
        """Train the networks and measure the strength of every skill."""
        return self.experiment.trained()

    def exact(self) -> Values:
        """Calibrate the law on a single skill learned alone and forecast all skills."""
        return self.experiment.exact()

    def prediction_attributes(self) -> Values:
        """The calibrated constants."""
        return self.experiment.prediction_attributes()

    def observed(self) -> xr.Dataset:
        """The record of `trained`."""
        return self.setting.record(self.setting.trained())

    def predicted(self) -> xr.Dataset:
        """The record of `exact`."""
        study = self.setting
        return study.record(
            study.exact(), theory=self.theory, reference=self.reference.paper, **study.prediction_attributes()
        )

    def compared(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Compare the variables that decide the verdict, and add the other variables of the forecast to the figures."""
        result = super().compared(observed, predicted.drop_vars(self.shown))
        return dataclasses.replace(result, predicted=predicted)

    def parameters(self) -> dict[str, Any]:
        """The fields, with the paper's values if `paper` is set."""
        return dataclasses.asdict(self.setting) | {"paper": self.paper}

    def check(self) -> None:
        """Require enough bits for the skills."""
        needed = self.skills * self.relevant_bits
        problem = (
            f"bits is {self.bits}, but skills={self.skills} and relevant_bits={self.relevant_bits} require {needed}"
        )
        self.require(needed <= self.bits, "bits", "choose more bits or fewer skills", problem=problem)
