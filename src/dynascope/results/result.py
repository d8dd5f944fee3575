"""Results: a prediction, an observation, or a comparison of both with its verdict."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import xarray as xr

from dynascope.results.chart import Chart
from dynascope.results.claim import Claim, reported_claims
from dynascope.results.judgement import Quantity, Verdict
from dynascope.results.names import name_all
from dynascope.results.provenance import Provenance
from dynascope.results.staircase_view import StaircaseView, is_staircase

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "Observation", "Parameter", "Prediction", "Result"]

_SHOWN = 6  # jumps in a repr


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One parameter of a result.

    Attributes:
        value: The value: a number, a string, or a list of these.
        description: Description of the parameter.
        shown: Text to show instead of the value, for placeholder values.
    """

    value: Any
    description: str = ""
    shown: str = ""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
    """A prediction, an observation, or both.

    Attributes:
        predicted: The record of the theory.
        observed: The record of the run.
        residual: The differences between the two records.
        title: The heading.
        question: The question that the result answers.
        equation: The governing equation, as LaTeX.
        claim: The claim that is tested.
        findings: Statements about the result, one sentence each. The page of an observation starts with them.
        meaning: Interpretation of the result, in a few sentences.
        reference: The paper, with its arXiv id.
        study: The name of the study.
        parameters: The parameters by name.
        provenance: Date, command and package versions.
        charts: The figures.
        verdict: The verdict; None if nothing was compared.
        quantities: The error and tolerance of each predicted quantity, by name.
        checks: The error and tolerance of each identity, by name. Identities hold in every run; a failed identity
            points to an error in the measurement.
        claims: All claims of the observed record, by name; the verdict depends on those with `decides`.
    """

    predicted: xr.Dataset | None = None
    observed: xr.Dataset | None = None
    residual: xr.Dataset | None = None
    title: str = ""
    question: str = ""
    equation: str = ""
    claim: str = ""
    findings: tuple[str, ...] = ()
    meaning: str = ""
    reference: str = ""
    study: str = ""
    parameters: Mapping[str, Parameter] = dataclasses.field(default_factory=dict)
    provenance: Provenance = dataclasses.field(default_factory=Provenance)
    charts: tuple[Chart, ...] = ()
    verdict: Verdict | None = None
    quantities: Mapping[str, Quantity] = dataclasses.field(default_factory=dict)
    checks: Mapping[str, Quantity] = dataclasses.field(default_factory=dict)
    claims: Mapping[str, Claim] = dataclasses.field(default_factory=dict)

    def __post_init__(self):
        charts = (self.charts,) if isinstance(self.charts, Chart) else tuple(self.charts)
        parameters = {
            name: each if isinstance(each, Parameter) else Parameter(each) for name, each in self.parameters.items()
        }
        object.__setattr__(self, "charts", charts)
        object.__setattr__(self, "findings", tuple(self.findings))
        object.__setattr__(self, "parameters", parameters)

    @property
    def sides(self) -> dict[str, xr.Dataset]:
        """The available records by name, the observed one first."""
        both = {"observed": self.observed, "predicted": self.predicted}
        return {name: record for name, record in both.items() if record is not None}

    @functools.cached_property
    def staircase(self) -> StaircaseView | None:
        """The predicted staircase with the observed jumps; None if theory predicts curves."""
        if self.predicted is None or not is_staircase(self.predicted):
            return None
        return StaircaseView(self.predicted, self.residual)

    @property
    def warnings(self) -> list[str]:
        """All distinct warnings of the records, and a sentence about slow jumps."""
        warnings = [each for record in self.sides.values() for each in record.attrs.get("warnings", [])]
        slow = "" if self.staircase is None else self.staircase.slow_sentence
        return list(dict.fromkeys(filter(None, [*warnings, slow])))

    def plot(self) -> Figure:
        """Draw all figures of the result; see `plot.figure`."""
        from dynascope.plot import figure  # imported here, since plot is in a room above

        return figure(self)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the report page; see `report.write_page`."""
        from dynascope.report import write_page  # likewise

        return write_page(self, path)

    def save(self, path: str | PathLike[str]) -> Path:
        """Save the result in one file, usually `NAME.zarr.zip`; see `results.save`."""
        from dynascope.results.store import save  # the store imports this module

        return save(self, path)

    def to_dataframe(self) -> pd.DataFrame:
        """Return the jumps of a predicted staircase, one row each; otherwise the compared quantities or the claims.

        Columns that start with `seen_` describe the observed jump.
        """
        if self.staircase is not None:
            return _table_of(self.staircase)
        if self.claims and not self.quantities:
            return _table_of_claims(self.claims)
        errors = {name: (each.error, each.tolerance, each.agrees) for name, each in self.quantities.items()}
        return pd.DataFrame.from_dict(errors, orient="index", columns=["error", "tolerance", "agrees"])

    def __repr__(self) -> str:
        lines = [f"{name}: {', '.join(map(str, record.data_vars))}" for name, record in self.sides.items()]
        return "\n  ".join([f"<{type(self).__name__} {self.title}", *lines]) + ">"

    def _repr_html_(self) -> str:
        """HTML for notebooks: heading, verdict, warnings and table."""
        verdict = (
            ""
            if self.verdict is None
            else f"<p>{escape(f'Verdict: {self.verdict.outcome}. {self.verdict.sentence}')}</p>"
        )
        warnings = "".join(f"<li>{escape(each)}</li>" for each in self.warnings)
        table = self.to_dataframe().to_html(max_rows=20, float_format="{:.4g}".format, border=0)
        heading = f"<strong>{type(self).__name__}: {escape(self.title)}</strong>"
        return f"<div>{heading}{verdict}<ul>{warnings}</ul>{table}</div>"


class _OneSided(Result):
    """A result with a single record, whose variables can be accessed by name."""

    @property
    def record(self) -> xr.Dataset:
        """The record."""
        (record,) = self.sides.values()
        return record

    def __getitem__(self, name: str) -> xr.DataArray:
        return self.record[name]

    def to_dataframe(self) -> pd.DataFrame:
        """Return the jumps of a staircase, one row each; otherwise the loss and all variables of the same shape."""
        if self.staircase is not None:
            return _table_of(self.staircase)
        dimensions = self.record["loss"].dims if "loss" in self.record else ()
        names = [name for name, values in self.record.data_vars.items() if values.dims == dimensions]
        return self.record[names].to_dataframe()


class Prediction(_OneSided):
    """A prediction, without a training run.

    Example:
        >>> import numpy as np
        >>> from dynascope import predict
        >>> prediction = predict((np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5), "linear", scale=1e-8)
        >>> prediction.jumps["time"].round(2).tolist(), prediction.theory
        ([4.78, 18.49], 'greedy low-rank learning, independent modes')
    """

    @classmethod
    def of(cls, record: xr.Dataset) -> Prediction:
        """Make a prediction from a record."""
        return cls(predicted=name_all(record), **_described(record))

    @property
    def theory(self) -> str:
        """The name of the theory."""
        return self.record.attrs.get("theory", "")

    @property
    def jumps(self) -> pd.DataFrame:
        """The predicted jumps, one row each; empty if the theory predicts curves only."""
        return pd.DataFrame() if self.staircase is None else _table_of(self.staircase)

    @property
    def curve(self) -> pd.Series | None:
        """The predicted loss over time at this scale; None if the theory predicts jumps only."""
        return self.record["loss"].to_series() if "loss" in self.record else None

    def __repr__(self) -> str:
        if self.staircase is None:
            return super().__repr__()
        times = ", ".join(f"{time:.4g}" for time in self.staircase.times[:_SHOWN])
        more = ", …" if len(self.staircase.times) > _SHOWN else ""
        return f"<Prediction {self.title}\n  theory: {self.theory}\n  jumps at t = {times or '–'}{more}>"


class Observation(_OneSided):
    """Measurements of a training run."""

    @classmethod
    def of(cls, record: xr.Dataset) -> Observation:
        """Make an observation from a record."""
        named = name_all(record)
        return cls(observed=named, claims=reported_claims(named), **_described(record))


class Comparison(Result):
    """A prediction and an observation with the verdict of their comparison.

    Example:
        >>> import numpy as np
        >>> from dynascope import compare, observe, predict
        >>> task = np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5
        >>> comparison = compare(observe(task, "linear"), predict(task, "linear"))
        >>> comparison.verdict.outcome, sorted(comparison.quantities)
        ('agree', ['extra_jumps', 'initial_loss', 'jump_time', 'level', 'missing_jumps'])
    """

    if TYPE_CHECKING:
        predicted: xr.Dataset
        observed: xr.Dataset
        residual: xr.Dataset
        verdict: Verdict

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.title}: {self.verdict.outcome}. {self.verdict.sentence}>"


def _table_of(staircase: StaircaseView) -> pd.DataFrame:
    rows = pd.json_normalize([dataclasses.asdict(each) for each in staircase.rows], sep="_")
    return rows.set_index("number").rename_axis("jump").dropna(axis=1, how="all")


def _table_of_claims(claims: Mapping[str, Claim]) -> pd.DataFrame:
    names = ["statement", "value", "low", "high", "outcome", "why_undecided", "decides"]
    rows = {name: [getattr(each, column) for column in names] for name, each in claims.items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=names).rename(columns={"why_undecided": "reason"})


def _described(record: xr.Dataset) -> dict[str, Any]:
    """Return the title, reference and provenance that the record states."""
    named = record.attrs
    parts = [named.get("task", ""), f"{named['network']} network" if "network" in named else ""]
    provenance = Provenance.now(version=str(named.get("version", "")))
    return {"title": ", ".join(filter(None, parts)), "reference": named.get("reference", ""), "provenance": provenance}
