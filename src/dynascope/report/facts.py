"""What a tree says of itself: how it was made, its parameters, its hypotheses."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import xarray as xr

from dynascope.report.formatting import parameter_text, words
from dynascope.results import CONVENTION, Parameter, Provenance, Result, describe, names_of
from dynascope.results.numbers import number
from dynascope.results.result import WHY_UNDECIDED
from dynascope.results.staircase_names import INITIAL_LOSS

__all__ = [
    "Row",
    "confidence_of",
    "facts_of",
    "how_it_was_done",
    "hypotheses_of",
    "parameters_of",
]

_OF_A_START = {
    "scale": "Factor on the usual initial weights.",
    INITIAL_LOSS: "Loss of an output of zero, with which a small network begins.",
    "degree": "Degree of homogeneity: scaling the weights of a neuron by c scales its output by c to this power.",
}


def facts_of(view: Result) -> dict[Any, Any]:
    """The attributes of the records; those of the prediction come first."""
    attributes = {name: value for record in view.sides.values() for name, value in record.attrs.items()}
    return {"convention": CONVENTION, **attributes}


def how_it_was_done(view: Result, facts: Mapping[Any, Any]) -> dict[str, str]:
    """Data, network, theory, training and what else is needed to do it again."""
    seed = view.parameters.get("seed")
    observed = {} if view.observed is None else view.observed.attrs
    predicted = {} if view.predicted is None else view.predicted.attrs
    told = {
        "Data": facts.get("task", ""),
        "Hash of the data": facts.get("data_hash") or observed.get("data_hash", ""),
        "Network": facts.get("network", ""),
        "Theory": predicted.get("theory", ""),
        "Training": _training(observed),
        "Seed": "" if seed is None else seed.value,
        "Repeat it by": view.provenance.command,
        "Date": view.provenance.date,
        "Versions": _versions(view.provenance),
    }
    return {name: str(value) for name, value in told.items() if value not in ("", None)}


class Row(NamedTuple):
    """One parameter as text.

    Attributes:
        name: Its name.
        value: Its value.
        about: Its description, or nothing.
    """

    name: str
    value: str
    about: str


def parameters_of(view: Result, facts: Mapping[Any, Any]) -> list[Row]:
    """The parameters, then those of the initial weights of a staircase."""
    parameters = dict(view.parameters)
    if view.staircase is not None:
        for name, description in _OF_A_START.items():
            if name in facts:
                parameters.setdefault(name, Parameter(facts[name], description))
    return [
        Row(words(name), each.shown or parameter_text(each.value), _in_words(each.description, parameters))
        for name, each in parameters.items()
    ]


def _in_words(text: str, names: Iterable[str]) -> str:
    """The text with these names as they are called on the page."""
    return re.sub(r"\b\w+_\w+\b", lambda found: words(found[0]) if found[0] in names else found[0], text)


def hypotheses_of(view: Result) -> list[dict[str, str]]:
    """One row of the table for each hypothesis on which the observation reports, in words."""
    observed = view.observed
    if observed is None or "holds" not in observed or observed["holds"].dims != ("hypothesis",):
        return []
    told = {str(name): values for name, values in observed.variables.items() if values.dims == ("hypothesis",)}
    rows = zip(*(values.to_numpy().tolist() for values in told.values()), strict=True)
    judged = view.claims
    return [_hypothesis(dict(zip(told, row, strict=True)), observed, judged) for row in rows]


def confidence_of(view: Result) -> str:
    """The probability, in percent, of the intervals of effects; nothing where none is reported."""
    observed = view.observed
    return (
        "" if observed is None or "direction" not in observed else number(100 * observed.attrs.get("confidence", 0.95))
    )


def _hypothesis(row: Mapping[str, Any], observed: xr.Dataset, judged: Collection[str]) -> dict[str, str]:
    # No line ends within a number.
    change, low, high = (number(row[name], 2).replace(" ", "\N{NO-BREAK SPACE}") for name in ("change", "low", "high"))
    # What was counted has no interval.
    known = (math.isfinite(row["low"]) or math.isfinite(row["high"])) and row["low"] < row["high"]
    measured = f"{change} ({low} to {high})" if known else change
    about, expected, quantity = str(row["hypothesis"]), "", ""
    if "direction" in row:
        metric = str(row["metric"])
        quantity = describe(metric, names_of(observed))[0]
        about = f"{about}: {words(row['factor'])} → {quantity}"
        expected = {1: "rises", -1: "falls", 0: "stays"}[row["direction"]]
    elif "least" in row:
        expected = _between(row["least"], row["most"])
    return {
        "claim": row["statement"],
        "about": about,
        "expected": expected,
        "quantity": quantity,
        "measured": measured,
        "outcome": row["holds"],
        "why": row.get(WHY_UNDECIDED, ""),
        "judged": "decides" if row["hypothesis"] in judged else "",
    }


def _between(least: float, most: float) -> str:
    if math.isinf(most):
        return f"at least {number(least)}"
    return f"at most {number(most)}" if math.isinf(least) else f"{number(least)} to {number(most)}"


def _training(attributes: Mapping[Any, Any]) -> str:
    """The flow and how it was run, from the attributes of the observation."""
    parts = [words(attributes[name]) for name in ("flow", "optimizer") if attributes.get(name)]
    if isinstance(attributes.get("learning_rate"), int | float):
        parts.append(f"learning rate {number(attributes['learning_rate'])}")
    if attributes.get("batch_size") not in (None, ""):
        parts.append(f"{number(attributes['batch_size'])} samples in a step")
    if attributes.get("solver"):
        parts.append(f"{attributes['solver']} solver")
    if attributes.get("variables") not in (None, "", "weights"):
        parts.append(f"integrated in {attributes['variables']} instead of weights")
    return ", ".join(parts)


def _versions(provenance: Provenance) -> str:
    told = {"dynascope": provenance.version, **provenance.versions}
    return ", ".join(f"{name} {version}" for name, version in told.items() if version)
