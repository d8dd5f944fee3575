"""Convert results to and from `xarray.DataTree`, the storage format, which xarray opens without dynascope."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import xarray as xr

from dynascope.results.chart import from_attributes, to_attributes
from dynascope.results.claim import Claim, reported_claims
from dynascope.results.judgement import Outcome, Quantity, Verdict
from dynascope.results.names import name_all
from dynascope.results.provenance import Provenance
from dynascope.results.result import Comparison, Observation, Parameter, Prediction, Result
from dynascope.results.schema import plain_attributes
from dynascope.results.staircase_view import is_staircase
from dynascope.validation import require

__all__ = ["AnyResult", "from_tree", "to_tree"]

AnyResult = Result | xr.DataTree | xr.Dataset  # what functions that read results take

_SHARE = "share_of_fall"
_TEXTS = ("title", "question", "equation", "claim", "meaning", "reference", "study")


def to_tree(result: Result) -> xr.DataTree:
    """Convert a result to a tree with the available groups among `observed`, `predicted` and `residual`.

    All other data become attributes of the root.
    """
    stored: dict[str, Any] = {name: getattr(result, name) for name in _TEXTS}
    stored |= dataclasses.asdict(result.provenance)
    stored["findings"] = list(result.findings)
    parameters = result.parameters.items()
    stored["parameters"] = {name: each.value for name, each in parameters}
    stored["descriptions"] = {name: each.description for name, each in parameters if each.description}
    stored["stand_ins"] = {name: each.shown for name, each in parameters if each.shown}
    stored["figures"] = to_attributes(result.charts)
    stored = {name: value for name, value in stored.items() if value}
    if result.verdict is not None:
        stored |= {
            "verdict": result.verdict.outcome,
            "verdict_sentence": result.verdict.sentence,
            "agreement": _plain(result.quantities),
            "checks": _plain(result.checks),
            "claims": _deciding(result.claims),
        }
        if result.verdict.share_of_fall is not None:
            stored[_SHARE] = result.verdict.share_of_fall
    records = {name: getattr(result, name) for name in ("predicted", "observed", "residual")}
    tree = xr.DataTree.from_dict({name: name_all(each) for name, each in records.items() if each is not None})
    tree.attrs = plain_attributes(stored)
    return tree


def from_tree(tree: AnyResult) -> Result:
    """Restore a result from a tree; a single record becomes a prediction or an observation.

    Example:
        >>> from dynascope.results import make_record
        >>> result = from_tree(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}))
        >>> type(result).__name__, list(result.sides)
        ('Observation', ['observed'])
    """
    if isinstance(tree, Result):
        return tree
    tree = xr.DataTree(tree) if isinstance(tree, xr.Dataset) else tree
    stored = tree.attrs
    records = {name: tree[name].to_dataset() for name in ("predicted", "observed", "residual") if name in tree.children}
    if root := tree.to_dataset(inherit=False):
        records |= {"predicted" if "theory" in root.attrs or is_staircase(root) else "observed": root}
    records = {name: record for name, record in records.items() if record.data_vars or name == "residual"}
    verdict = None
    if "verdict" in stored:
        verdict = Verdict(stored["verdict"], stored.get("verdict_sentence", ""), stored.get(_SHARE))
    one = Prediction if "predicted" in records else Observation
    # A tree made by hand may hold both sides without a verdict.
    both = Result if verdict is None else Comparison
    kind = both if {"predicted", "observed"} <= records.keys() else one
    return kind(
        **records,
        **{name: stored.get(name, "") for name in _TEXTS},
        findings=tuple(stored.get("findings", ())),
        parameters=_parameters(stored),
        provenance=Provenance(
            **{each.name: stored[each.name] for each in dataclasses.fields(Provenance) if each.name in stored}
        ),
        charts=from_attributes(stored.get("figures", [])),
        verdict=verdict,
        quantities=_quantities(stored.get("agreement", {})),
        checks=_quantities(stored.get("checks", {})),
        claims=_claims(records.get("observed"), stored.get("claims", {})),
    )


def _claims(observed: xr.Dataset | None, stored: Mapping[str, Outcome]) -> dict[str, Claim]:
    """Return the claims of the observed record, after comparing the deciding ones with their stored outcomes."""
    claims = reported_claims(observed, stored)
    wrong = sorted(name for name, outcome in stored.items() if claims[name].outcome != outcome)
    require(
        not wrong,
        f"the outcomes in claims and in the observed record differ for {', '.join(wrong)}",
        argument="claims",
        value=wrong,
        remedy="create the record again",
    )
    return claims


def _deciding(claims: Mapping[str, Claim]) -> dict[str, Outcome]:
    return {name: each.outcome for name, each in claims.items() if each.decides}


def _parameters(stored: Mapping[Any, Any]) -> dict[str, Parameter]:
    descriptions, stand_ins = (stored.get(name, {}) for name in ("descriptions", "stand_ins"))
    return {
        name: Parameter(value, descriptions.get(name, ""), stand_ins.get(name, ""))
        for name, value in stored.get("parameters", {}).items()
    }


def _plain(quantities: Mapping[str, Quantity]) -> dict[str, dict[str, Any]]:
    return {name: each.to_plain() for name, each in quantities.items()}


def _quantities(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Quantity]:
    return {name: Quantity.from_plain(each) for name, each in stored.items()}
