"""Results: a prediction, an observation, or both beside each other with the verdict."""

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
        value: Its value: a number, a text, or a list of them.
        description: What it is.
        shown: Text to show in place of the value, for a value that stands for something else.
    """

    value: Any
    description: str = ""
    shown: str = ""


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
    """What theory predicts, what training did, or both.

    Attributes:
        predicted: The record of the theory.
        observed: The record of the run.
        residual: How far they differ.
        title: The heading.
        question: The question that the result answers.
        equation: The governing equation, as LaTeX.
        claim: The claim that was put to the test.
        meaning: What the result means, in a few sentences.
        reference: The paper, with its arXiv id.
        study: The name of the study that made it.
        parameters: Its parameters by name.
        provenance: When, by which command and with which versions it was made.
        charts: The figures that tell it.
        verdict: What came out; None where nothing was compared.
        quantities: How far each predicted quantity is from the observed one, by name.
        checks: The same of identities, which hold of every run; a check that fails is a fault of the measurement.
        claims: All claims on which the observed record reports, by name; those with `decides` decide the verdict.
    """

    predicted: xr.Dataset | None = None
    observed: xr.Dataset | None = None
    residual: xr.Dataset | None = None
    title: str = ""
    question: str = ""
    equation: str = ""
    claim: str = ""
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
        object.__setattr__(self, "parameters", parameters)

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
        told = [each for record in self.sides.values() for each in record.attrs.get("warnings", [])]
        slow = "" if self.staircase is None else self.staircase.slow_sentence
        return list(dict.fromkeys(filter(None, [*told, slow])))

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
        """The jumps of a predicted staircase, one row each; otherwise the compared quantities, or else the claims.

        Columns that begin with `seen_` describe the observed jump.
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
        """For notebooks: the heading, the verdict, the warnings and the table."""
        verdict = "" if self.verdict is None else f"<p>{escape(f'{self.verdict.outcome}. {self.verdict.sentence}')}</p>"
        warnings = "".join(f"<li>{escape(each)}</li>" for each in self.warnings)
        table = self.to_dataframe().to_html(max_rows=20, float_format="{:.4g}".format, border=0)
        heading = f"<strong>{type(self).__name__}: {escape(self.title)}</strong>"
        return f"<div>{heading}{verdict}<ul>{warnings}</ul>{table}</div>"


class _OneSided(Result):
    """A result with one record, whose variables it gives by name."""

    @property
    def record(self) -> xr.Dataset:
        """The record."""
        (record,) = self.sides.values()
        return record

    def __getitem__(self, name: str) -> xr.DataArray:
        return self.record[name]

    def to_dataframe(self) -> pd.DataFrame:
        """The jumps of a staircase, one row each; otherwise the loss and all variables with the same dimensions."""
        if self.staircase is not None:
            return _table_of(self.staircase)
        dimensions = self.record["loss"].dims if "loss" in self.record else ()
        names = [name for name, values in self.record.data_vars.items() if values.dims == dimensions]
        return self.record[names].to_dataframe()


class Prediction(_OneSided):
    """What theory predicts; nothing was trained.

    Example:
        >>> import numpy as np
        >>> from dynascope import predict
        >>> prediction = predict((np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5), "linear", scale=1e-8)
        >>> prediction.jumps["time"].round(2).tolist(), prediction.theory
        ([4.78, 18.49], 'greedy low-rank learning, independent modes')
    """

    @classmethod
    def of(cls, record: xr.Dataset) -> Prediction:
        """The prediction of this record."""
        return cls(predicted=name_all(record), **_described(record))

    @property
    def theory(self) -> str:
        """The name of the theory."""
        return self.record.attrs.get("theory", "")

    @property
    def jumps(self) -> pd.DataFrame:
        """The predicted jumps, one row each; no rows if the theory predicts curves only."""
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
    """What training did; no theory was involved."""

    @classmethod
    def of(cls, record: xr.Dataset) -> Observation:
        """The observation of this record."""
        named = name_all(record)
        return cls(observed=named, claims=reported_claims(named), **_described(record))


class Comparison(Result):
    """A prediction beside an observation, with the verdict.

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
    """What a result says besides its record, as far as the record says so."""
    named = record.attrs
    parts = [named.get("task", ""), f"{named['network']} network" if "network" in named else ""]
    provenance = Provenance.now(version=str(named.get("version", "")))
    return {"title": ", ".join(filter(None, parts)), "reference": named.get("reference", ""), "provenance": provenance}
