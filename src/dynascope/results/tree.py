"""Results as trees of records, as they are stored and as plain xarray opens them, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from dynascope.results.chart import from_attributes, to_attributes
from dynascope.results.judgement import Quantity, Verdict
from dynascope.results.names import name_all
from dynascope.results.result import Comparison, Observation, Prediction, Result
from dynascope.results.schema import plain_attributes
from dynascope.results.staircase_view import is_staircase

__all__ = ["AnyResult", "from_tree", "to_tree"]

AnyResult = Result | xr.DataTree | xr.Dataset  # what functions that read results take

_SHARE = "share_of_fall"


def to_tree(result: Result) -> xr.DataTree:
    """The result as a tree with the groups `setup`, `observed`, `predicted` and `residual`, as far as there are any.

    Verdict, quantities, checks, claims and charts are attributes of the root.
    """
    told: dict[str, Any] = dict(result.attributes)
    if result.charts:
        told["figures"] = to_attributes(result.charts)
    if result.verdict is not None:
        told |= {
            "verdict": result.verdict.outcome,
            "verdict_sentence": result.verdict.sentence,
            "agreement": _plain(result.quantities),
            "checks": _plain(result.checks),
            "claims": dict(result.claims),
        }
        if result.verdict.share_of_fall is not None:
            told[_SHARE] = result.verdict.share_of_fall
    groups: dict[str, xr.Dataset] = {}
    if result.setup:
        groups["setup"] = xr.Dataset(attrs=plain_attributes(result.setup))
    for name in ("predicted", "observed", "residual"):
        if (record := getattr(result, name)) is not None:
            groups[name] = name_all(record)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = plain_attributes(told)
    return tree


def from_tree(tree: AnyResult) -> Result:
    """The result that `to_tree` made a tree of; a record alone is a prediction or an observation.

    Example:
        >>> from dynascope.results import make_record
        >>> result = from_tree(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}))
        >>> type(result).__name__, list(result.sides)
        ('Observation', ['observed'])
    """
    if isinstance(tree, Result):
        return tree
    tree = xr.DataTree(tree) if isinstance(tree, xr.Dataset) else tree
    told = dict(tree.attrs)
    charts = from_attributes(told.pop("figures", []))
    quantities, checks = (_quantities(told.pop(name, {})) for name in ("agreement", "checks"))
    claims, outcome, sentence = (told.pop(name, None) for name in ("claims", "verdict", "verdict_sentence"))
    share = told.pop(_SHARE, None)
    records = {name: tree[name].to_dataset() for name in ("predicted", "observed", "residual") if name in tree.children}
    if root := tree.to_dataset(inherit=False):
        records |= {"predicted" if "theory" in root.attrs or is_staircase(root) else "observed": root}
    records = {name: record for name, record in records.items() if record.data_vars or name == "residual"}
    one = Prediction if "predicted" in records else Observation
    # A tree made by hand may hold both sides without a verdict.
    both = Result if outcome is None else Comparison
    kind = both if {"predicted", "observed"} <= records.keys() else one
    return kind(
        **records,
        setup={str(name): each for name, each in tree["setup"].attrs.items()} if "setup" in tree.children else {},
        attributes={str(name): value for name, value in told.items()},
        charts=charts,
        verdict=None if outcome is None else Verdict(outcome, str(sentence or ""), share),
        quantities=quantities,
        checks=checks,
        claims=claims or {},
    )


def _plain(quantities: Mapping[str, Quantity]) -> dict[str, dict[str, Any]]:
    return {name: each.to_plain() for name, each in quantities.items()}


def _quantities(stored: Mapping[str, Mapping[str, Any]]) -> dict[str, Quantity]:
    return {name: Quantity.from_plain(each) for name, each in stored.items()}
