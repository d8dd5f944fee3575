"""Results: a prediction, an observation, or both beside each other with the verdict."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from dynascope.results.chart import Chart
from dynascope.results.judgement import Outcome, Quantity, Verdict
from dynascope.results.staircase_view import StaircaseView, is_staircase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["WHY_UNDECIDED", "Comparison", "Observation", "Prediction", "Result"]

WHY_UNDECIDED = "why_undecided"  # the variable of an observation: the reason for each undecided claim


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What theory predicts, what training did, or both.

    Attributes:
        predicted: The record of the theory.
        observed: The record of the run.
        residual: How far they differ.
        setup: What is known of the data and the network.
        attributes: What the result says of itself: title, question, claim, reference, parameters and the like.
        charts: The figures that tell it.
        verdict: What came out; None where nothing was compared.
        quantities: How far each predicted quantity is from the observed one, by name.
        checks: The same of identities, which hold of every run; a check that fails is a fault of the measurement.
        claims: The outcome of each claim that decides, by name.
    """

    predicted: xr.Dataset | None = None
    observed: xr.Dataset | None = None
    residual: xr.Dataset | None = None
    setup: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    attributes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    charts: tuple[Chart, ...] = ()
    verdict: Verdict | None = None
    quantities: Mapping[str, Quantity] = dataclasses.field(default_factory=dict)
    checks: Mapping[str, Quantity] = dataclasses.field(default_factory=dict)
    claims: Mapping[str, Outcome] = dataclasses.field(default_factory=dict)

    @property
    def sides(self) -> dict[str, xr.Dataset]:
        """The records that are there, by name: what was observed before what was predicted."""
        both = {"observed": self.observed, "predicted": self.predicted}
        return {name: record for name, record in both.items() if record is not None}

    @functools.cached_property
    def staircase(self) -> StaircaseView | None:
        """The predicted staircase, with what was observed of it; None where theory predicts curves."""
        if self.predicted is None or not is_staircase(self.predicted):
            return None
        return StaircaseView(self.predicted, self.residual)

    @property
    def warnings(self) -> list[str]:
        """Every warning of the result and of its records, once, and one on all slow jumps."""
        parts = (self.attributes, *(record.attrs for record in self.sides.values()))
        told = [each for attributes in parts for each in attributes.get("warnings", [])]
        slow = "" if self.staircase is None else self.staircase.slow_sentence
        return list(dict.fromkeys(filter(None, [*told, slow])))

    @property
    def undecided(self) -> dict[str, str]:
        """The reason for each undecided claim, by name."""
        if self.observed is None or WHY_UNDECIDED not in self.observed:
            return {}
        return {str(name): reason for name, reason in self.observed[WHY_UNDECIDED].to_series().items() if reason}

    def plot(self) -> Figure:
        """The figures that tell the result, below each other; see `plot.figure`."""
        from dynascope.plot import figure  # drawing is in a room above

        return figure(self)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the report page; see `report.write_page`."""
        from dynascope.report import write_page  # so is reporting

        return write_page(self, path)

    def save(self, path: str | PathLike[str]) -> Path:
        """Save the result in one file, by custom `NAME.zarr.zip`; see `results.save`."""
        from dynascope.results.store import save  # which reads results

        return save(self, path)

    def to_dataframe(self) -> pd.DataFrame:
        """A table with one row for each predicted jump, or for each compared quantity if theory predicts curves.

        What was observed of a jump is in the columns that begin with `seen_`.
        """
        if self.staircase is not None:
            rows = [dataclasses.asdict(each) for each in self.staircase.rows]
            return pd.json_normalize(rows, sep="_").set_index("number")
        errors = {name: (each.error, each.tolerance, each.agrees) for name, each in self.quantities.items()}
        return pd.DataFrame.from_dict(errors, orient="index", columns=["error", "tolerance", "agrees"])

    def __repr__(self) -> str:
        told = [f"{name}: {', '.join(map(str, record.data_vars))}" for name, record in self.sides.items()]
        return f"<{type(self).__name__} {self.attributes.get('title', '')}\n  " + "\n  ".join(told) + ">"


class Prediction(Result):
    """What theory says, and nothing was trained."""


class Observation(Result):
    """What training did, and no theory was asked."""


class Comparison(Result):
    """A prediction beside an observation, with the verdict."""

    if TYPE_CHECKING:
        predicted: xr.Dataset
        observed: xr.Dataset
        residual: xr.Dataset
        verdict: Verdict

    def __repr__(self) -> str:
        title = self.attributes.get("title", "")
        return f"<{type(self).__name__} {title}: {self.verdict.outcome}. {self.verdict.sentence}>"
