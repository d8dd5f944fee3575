"""What the studies of emergence share: ReLU networks that learn multitask sparse parity, and a forecast beside them."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr

from dynascope.results import Comparison
from dynascope.studies import Study, Values
from dynascope.studies.fields import count, flag, positive
from dynascope.studies.scaling.skill_reading import SkillReading
from dynascope.tasks import SparseParity
from dynascope.training import descend

__all__ = ["STRENGTH", "EmergenceStudy"]

STRENGTH = "strength of the skill (1: learned)"
_PUBLISHED = {"skills": 5, "bits": 32, "relevant_bits": 3, "exponent": 0.6, "target_scale": 5.0}  # task of the source


class EmergenceStudy(Study):
    """What the studies of emergence share: the task, and a forecast that is shown beside networks.

    It states `trained`, and `forecast`, the record of the prediction; networks are trained in single precision.
    `published` are the fields of the source, but for its task, and `shown` the variables of the forecast that are not
    judged.
    """

    skills: int = count(3, "Number of skills n_s.")
    bits: int = count(9, "Number of bits n_b.")
    relevant_bits: int = count(3, "m, the bits on which each skill depends.", most="bits")
    exponent: float = positive(0.6, "α; frequencies of skills fall as k^−(α+1).")
    target_scale: float = positive(5.0, "S, the size of the targets.")
    paper: bool = flag(False, "Whether to train the networks of the source instead, on a GPU.")

    published: ClassVar[Mapping[str, Any]]
    shown: ClassVar[tuple[str, ...]]
    trains = "two-layer ReLU"

    if TYPE_CHECKING:
        learning_rate: float
        batch_size: int

    names = {
        "skill": ("skill, from the most frequent on", "1"),
        "loss_equivalent": ("strength of the skill, by its loss", "1"),
        "basis_loss": ("loss of the skill in the model of theory", "1"),
        "strength": ("strength of the skill", "1"),
        "strength_error": ("standard error of the strength of the skill", "1"),
        "basis_strength": ("strength of the skill in the model of theory", "1"),
    }

    def trained(self) -> Values:
        """Train, and measure."""
        raise NotImplementedError

    def forecast(self) -> xr.Dataset:
        """Calibrate on one skill that is learned alone, and forecast the others."""
        raise NotImplementedError

    def observe(self) -> xr.Dataset:
        """The record of `trained`."""
        return self._setting.record(self._setting.trained())

    def predict(self) -> xr.Dataset:
        """The record of `forecast`."""
        return self._setting.forecast()

    def compare(self, observed: xr.Dataset, predicted: xr.Dataset) -> Comparison:
        """Judge what is claimed; the rest of the forecast is shown with the networks."""
        tree = super().compare(observed, predicted.drop_vars(self.shown))
        return dataclasses.replace(tree, predicted=predicted)

    def attributes(self) -> dict[str, Any]:
        """What the result says of the study it came from: its fields are those of the source where it trains that."""
        fields = dataclasses.asdict(self._setting) | {"paper": self.paper}
        return super().attributes() | {"parameters": fields}

    def check(self) -> None:
        """There are bits enough for the skills."""
        needed = self.skills * self.relevant_bits
        problem = f"{self.skills} skills with {self.relevant_bits} bits each need {needed}, and bits is {self.bits}"
        self.require(needed <= self.bits, "bits", "choose more bits, or fewer skills", problem=problem)

    @functools.cached_property
    def _setting(self) -> Any:
        """This study, or in the setting of the source the one that has its fields."""
        return dataclasses.replace(self, **_PUBLISHED, **self.published, paper=False) if self.paper else self

    @functools.cached_property
    def _task(self) -> SparseParity:
        names = ("skills", "bits", "relevant_bits", "exponent", "target_scale")
        return SparseParity(**{name: getattr(self, name) for name in names})

    @functools.cached_property
    def _one_skill(self) -> SparseParity:
        return dataclasses.replace(self._task, skills=1)

    def _read(self, networks: list[Any], task: Any, steps: Any, *names: str, **options: Any) -> list[np.ndarray]:
        """What is read of networks that descend on a task, or on its exact loss where no batches are asked for.

        For each name, of `SkillReading` or "loss", an array of shape (networks, steps, skills), or without skills.
        """
        drawn = isinstance(task, SparseParity)
        parity = task if drawn else self._task
        run = descend(
            networks,
            task.expectation() if drawn and not self.batch_size else task,
            steps=int(steps[-1]),
            batch_size=self.batch_size or None,
            record_steps=steps,
            statistics={name: (SkillReading(parity, name), ("skill",)) for name in names if name != "loss"},
            **{"learning_rate": self.learning_rate, **options},
        )
        return [run[name].to_numpy().astype(np.float64) for name in names]
