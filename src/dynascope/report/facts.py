"""How a result was made: data, training, parameters, and the confidence of its intervals."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dynascope.report.formatting import parameter_text, words
from dynascope.results import CONVENTION, Parameter, Provenance, Result
from dynascope.results.numbers import number
from dynascope.results.staircase_names import INITIAL_LOSS

__all__ = [
    "Row",
    "confidence_of",
    "facts_of",
    "how_it_was_done",
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
    facts = {"convention": CONVENTION, **attributes}
    if not any("time" in record.variables for record in view.sides.values()):
        # A record over training steps has no gradient-flow time.
        facts["convention"] = facts["convention"].partition("; time =")[0]
    return facts


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


def confidence_of(view: Result) -> str:
    """The probability, in percent, of the intervals of effects; nothing where none is reported."""
    if view.observed is None or not any(each.quantity for each in view.claims.values()):
        return ""
    return number(100 * view.observed.attrs.get("confidence", 0.95))


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
