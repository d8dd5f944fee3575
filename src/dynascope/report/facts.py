"""What a tree says of itself: how it was made, its parameters, its hypotheses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from dynascope.errors import InputError
from dynascope.record import CONVENTION, TreeView
from dynascope.record.numbers import number
from dynascope.report.wording import command, parameter, words

__all__ = ["facts_of", "how_it_was_done", "hypotheses_of", "parameters_of", "read_json", "warnings_of"]


def facts_of(view: TreeView) -> dict[Any, Any]:
    """All that the tree, its setup and its sides say of themselves; the tree itself has the last word."""
    return {"convention": CONVENTION, **list(view.sides.values())[-1].attrs, **view.setup, **view.attributes}


def how_it_was_done(view: TreeView, facts: Mapping[Any, Any]) -> dict[str, str]:
    """Data, network, theory, training and what else is needed to do it again."""
    parameters = read_json(facts, "parameters", {})
    observed = {} if view.observed is None else view.observed.attrs
    predicted = {} if view.predicted is None else view.predicted.attrs
    study = str(facts.get("study", ""))
    told = {
        "Data": facts.get("task", ""),
        "Hash of the data": facts.get("data_hash") or observed.get("data_hash", ""),
        "Network": facts.get("network", ""),
        "Theory": predicted.get("theory", ""),
        "Training": _training(observed),
        "Seed": parameters.get("seed", ""),
        "Repeat it by": facts.get("command") or (command(study, parameters) if study else ""),
        "Date": facts.get("date", ""),
        "Versions": _versions(facts),
    }
    return {name: str(value) for name, value in told.items() if value not in ("", None)}


def parameters_of(facts: Mapping[Any, Any]) -> dict[str, str]:
    """The parameters of the study, then what else is known of the setup."""
    parameters = read_json(facts, "parameters", {})
    shown = ("scale", "initial_loss", "degree")
    rest = {name: facts[name] for name in shown if name in facts and name not in parameters}
    return {words(name): parameter(name, value) for name, value in {**parameters, **rest}.items()}


def hypotheses_of(view: TreeView) -> list[dict[str, Any]]:
    """One row of the table for each hypothesis on which the observation reports."""
    observed = view.observed
    if observed is None or "holds" not in observed or observed["holds"].dims != ("hypothesis",):
        return []
    told = {str(name): values for name, values in observed.variables.items() if values.dims == ("hypothesis",)}
    columns = {name: values.to_numpy().tolist() for name, values in told.items()}
    common = {"confidence": observed.attrs.get("confidence", 0.95)}
    return [{**common, **dict(zip(columns, row, strict=True))} for row in zip(*columns.values(), strict=True)]


def warnings_of(view: TreeView) -> list[str]:
    """Every warning of the tree, once."""
    found = [str(warning) for node in view.tree.subtree for warning in read_json(node.attrs, "warnings", [])]
    return list(dict.fromkeys(found))


def read_json(attributes: Mapping[Any, Any], name: str, default: Any) -> Any:
    """An attribute that is a JSON list or object.

    Raises:
        InputError: It is something else.
    """
    try:
        value = json.loads(attributes[name]) if name in attributes else default
    except (TypeError, json.JSONDecodeError):
        value = None
    if not isinstance(value, type(default)):
        raise InputError(
            f"the attribute {name!r} is not a JSON {'list' if isinstance(default, list) else 'object'}",
            argument=name,
            value=attributes[name],
            remedy="make records with make_record, which writes lists and dictionaries as JSON",
        )
    return value


def _training(attributes: Mapping[Any, Any]) -> str:
    """The flow and how it was run, from the attributes of the observation."""
    parts = [words(attributes[name]) for name in ("flow", "optimizer") if attributes.get(name)]
    if isinstance(attributes.get("learning_rate"), int | float):
        parts.append(f"learning rate {number(attributes['learning_rate'])}")
    if attributes.get("batch_size") not in (None, "", "null"):
        parts.append(f"{number(attributes['batch_size'])} samples in a step")
    if attributes.get("solver"):
        parts.append(f"{attributes['solver']} solver")
    if attributes.get("variables") not in (None, "", "weights"):
        parts.append(f"in {attributes['variables']}")
    return ", ".join(parts)


def _versions(facts: Mapping[Any, Any]) -> str:
    others = read_json(facts, "versions", {})
    told = {"dynascope": facts.get("version", ""), **others}
    return ", ".join(f"{name} {version}" for name, version in told.items() if version)
