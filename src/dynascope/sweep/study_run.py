"""A study, run once for each cell of a sweep."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dynascope import __version__
from dynascope.results import Comparison, Observation
from dynascope.studies import Study
from dynascope.sweep.entries import Outcome, attempt
from dynascope.sweep.identity import require_names, source_digest

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
        fields = {each.name: str(self.fixed[each.name]) for each in dataclasses.fields(self.study) if each.name in self.fixed}
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
        studies = [self.instance(each) for each in settings]
        observed: Sequence[Any] = [None]
        if len(studies) > 1:
            try:
                observed = self.study.observe_many(studies)
            except Exception as error:  # the reason of all cells that were trained together
                return [error] * len(studies)
        return [attempt(_compare, study, side) for study, side in zip(studies, observed, strict=True)]

    def instance(self, settings: Mapping[str, Any]) -> Study:
        """The study with these settings; a number for a field that is a list becomes a list with one entry."""
        lists = {each.name for each in dataclasses.fields(self.study) if _is_list(each)}
        values = {name: [each] if name in lists and not isinstance(each, list) else each for name, each in settings.items()}
        return self.study(**{**self.fixed, **values})


def _compare(study: Study, observed: Observation | None) -> Comparison:
    """Predict before training, so that the prediction cannot depend on the observation."""
    predicted = study.predict()
    return study.compare(observed or study.observe(), predicted)


def _is_list(field: dataclasses.Field[Any]) -> bool:
    factory = field.default_factory
    return factory is not dataclasses.MISSING and isinstance(factory(), list)
