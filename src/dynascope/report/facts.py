"""Facts about the origin of a result: data, training, parameters, and the confidence level of its intervals."""

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

_INITIALISATION = {
    "scale": "Factor that multiplies the initial weights.",
    INITIAL_LOSS: "Loss of the zero function, which is the initial loss of a network with small weights.",
    "degree": "Degree of homogeneity k: multiplying the weights of a neuron by c multiplies its output by c^k.",
}
# Descriptions of the variables of exact flows, by their names in records.
_VARIABLES = {
    "neuron bundles": "the direction and the log-norm of each of a few orthogonal combinations of neurons",
    "directions and log-norms": "the direction and the log-norm of the weights of each neuron",
    "log-ratios": "the logarithm of u/v for each input, where u and v are the weights of its two branches",
    "signed phases": "the time integral of the negative loss gradient for each coefficient of the linear map",
}


def facts_of(view: Result) -> dict[Any, Any]:
    """Merge the attributes of the records; those of the prediction take precedence."""
    attributes = {name: value for record in view.sides.values() for name, value in record.attrs.items()}
    facts = {"convention": CONVENTION, **attributes}
    if not any("time" in record.variables for record in view.sides.values()):
        # A record over training steps has no gradient-flow time.
        facts["convention"] = facts["convention"].partition("; time =")[0]
    return facts


def how_it_was_done(view: Result, facts: Mapping[Any, Any]) -> dict[str, str]:
    """Return data, network, theory, training and all other facts needed to reproduce the result."""
    seed = view.parameters.get("seed")
    observed = {} if view.observed is None else view.observed.attrs
    predicted = {} if view.predicted is None else view.predicted.attrs
    facts_shown = {
        "Data": facts.get("task", ""),
        "Data hash": facts.get("data_hash") or observed.get("data_hash", ""),
        "Network": facts.get("network", ""),
        "Theory": predicted.get("theory", ""),
        "Training": _training(observed),
        "Seed": "" if seed is None else seed.value,
        "Command": view.provenance.command,
        "Date": view.provenance.date,
        "Versions": _versions(view.provenance),
    }
    return {name: str(value) for name, value in facts_shown.items() if value not in ("", None)}


class Row(NamedTuple):
    """A parameter as text.

    Attributes:
        name: Name of the parameter.
        value: Value of the parameter.
        about: Description of the parameter; may be empty.
    """

    name: str
    value: str
    about: str


def parameters_of(view: Result, facts: Mapping[Any, Any]) -> list[Row]:
    """Return the parameters of the result, followed by the initialisation parameters of a staircase."""
    parameters = dict(view.parameters)
    if view.staircase is not None:
        for name, description in _INITIALISATION.items():
            if name in facts:
                parameters.setdefault(name, Parameter(facts[name], description))
    return [
        Row(words(name), each.shown or parameter_text(each.value), _with_page_names(each.description, parameters))
        for name, each in parameters.items()
    ]


def _with_page_names(text: str, names: Iterable[str]) -> str:
    """Replace parameter names in a text with their typeset form."""
    return re.sub(r"\b\w+_\w+\b", lambda found: words(found[0]) if found[0] in names else found[0], text)


def confidence_of(view: Result) -> str:
    """Return the confidence level, in percent, of the intervals for effects; empty if there are none."""
    if view.observed is None or not any(each.quantity for each in view.claims.values()):
        return ""
    return number(100 * view.observed.attrs.get("confidence", 0.95))


def _training(attributes: Mapping[Any, Any]) -> str:
    """Describe the training from the attributes of the observation."""
    parts = [words(attributes[name]) for name in ("flow", "optimizer") if attributes.get(name)]
    if isinstance(attributes.get("learning_rate"), int | float):
        parts.append(f"learning rate {number(attributes['learning_rate'])}")
    if attributes.get("batch_size") not in (None, ""):
        parts.append(f"batch size {number(attributes['batch_size'])}")
    if attributes.get("solver"):
        parts.append(f"{attributes['solver']} solver")
    if attributes.get("variables") not in (None, "", "weights"):
        variables = _VARIABLES.get(attributes["variables"], attributes["variables"])
        parts.append(f"solved in equivalent variables: {variables}")
    return ", ".join(parts)


def _versions(provenance: Provenance) -> str:
    packages = {"dynascope": provenance.version, **provenance.versions}
    return ", ".join(f"{name} {version}" for name, version in packages.items() if version)
