"""A study, run once for each cell of a sweep."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynascope import __version__
from dynascope.results import Comparison
from dynascope.studies import Study
from dynascope.sweeps.entries import Outcome, attempt
from dynascope.sweeps.identity import require_names, source_digest

__all__ = ["StudyRun"]


@dataclasses.dataclass(frozen=True)
class StudyRun:
    """A study, of which every cell is one run.

    Attributes:
        study: The study.
        fixed: Values of fields that are equal in all cells.
    """

    study: type[Study]
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the study."""
        return self.study.name

    @property
    def batched(self) -> tuple[str, ...]:
        """Fields along which the study trains many networks in one program."""
        return self.study.batched

    def identity(self) -> dict[str, Any]:
        """The name, the values of all fixed fields, and a digest of the source code of the study."""
        fields = {name: list(value) if isinstance(value, tuple) else value for name, value in self.fixed.items()}
        return {"study": self.name, "fields": fields, "source": source_digest(self.study), "version": __version__}

    def check_names(self, names: Iterable[str]) -> None:
        """Require that all fields exist."""
        known = [each.name for each in dataclasses.fields(self.study)]
        require_names([*names, *self.fixed], known, f"the study {self.name} has no field")

    def check(self, settings: Mapping[str, Any]) -> None:
        """Create the study, which checks its fields."""
        self.instance(settings)

    def found(self, settings: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """Run the study for each of the settings, with one training program for all of them if there are several."""
        if len(settings) == 1:
            return [attempt(self._compare, settings[0])]
        try:
            studies = [self.instance(each) for each in settings]
            predicted = [study.predict() for study in studies]
            observed = self.study.observe_many(studies)
        except Exception:  # one cell fails: run each alone, so that only this cell has failed
            return [each for alone in settings for each in self.found([alone])]
        return [attempt(study.compare, *sides) for study, *sides in zip(studies, observed, predicted, strict=True)]

    def _compare(self, settings: Mapping[str, Any]) -> Comparison:
        """Predict before training, so that the prediction cannot depend on the observation; without the page."""
        study = self.instance(settings)
        predicted = study.predict()
        return study.compare(study.observe(), predicted)

    def instance(self, settings: Mapping[str, Any]) -> Study:
        """The study with these settings; a number for a field that is a list becomes a list with one entry."""
        lists = {each.name for each in dataclasses.fields(self.study) if _is_list(each)}
        values = {
            name: [each] if name in lists and not isinstance(each, list) else each for name, each in settings.items()
        }
        return self.study(**{**self.fixed, **values})


def _is_list(field: dataclasses.Field[Any]) -> bool:
    factory = field.default_factory
    return factory is not dataclasses.MISSING and isinstance(factory(), list)
