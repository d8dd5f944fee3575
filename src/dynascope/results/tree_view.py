"""A tree of records as its readers see it: what was observed, what was predicted, and how far they differ."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import xarray as xr

from dynascope.results.chart import Chart, from_attributes
from dynascope.results.judgement import Outcome, Quantity, Verdict
from dynascope.results.staircase_view import StaircaseView, is_staircase

__all__ = ["SHARE_OF_FALL", "WHY_UNDECIDED", "Tree", "TreeView"]

SHARE_OF_FALL = "share_of_fall"  # the attribute of a tree: how much of the fall of the loss was judged
WHY_UNDECIDED = "why_undecided"  # the variable of an observation: the reason for each undecided claim


@dataclasses.dataclass(frozen=True)
class TreeView:
    """A tree of records, or a record alone, for its readers.

    Attributes:
        tree: The tree; a record alone is its root.

    Example:
        >>> from dynascope.results import make_record
        >>> view = TreeView.of(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}))
        >>> list(view.sides), view.predicted is None
        (['observed'], True)
    """

    tree: xr.DataTree

    @classmethod
    def of(cls, tree: Tree) -> TreeView:
        """The view of a tree or of a record; a view is its own."""
        if isinstance(tree, TreeView):
            return tree
        return cls(xr.DataTree(tree) if isinstance(tree, xr.Dataset) else tree)

    @property
    def attributes(self) -> Mapping[Any, Any]:
        """What the tree says of itself."""
        return self.tree.attrs

    @functools.cached_property
    def setup(self) -> Mapping[Any, Any]:
        """What is known of the setup."""
        return self.tree["setup"].attrs if "setup" in self.tree.children else {}

    @functools.cached_property
    def observed(self) -> xr.Dataset | None:
        """The record of the run."""
        return self._side("observed")

    @functools.cached_property
    def predicted(self) -> xr.Dataset | None:
        """The record of the theory."""
        return self._side("predicted")

    @functools.cached_property
    def residual(self) -> xr.Dataset | None:
        """How far they differ."""
        return self.tree["residual"].to_dataset() if "residual" in self.tree.children else None

    @functools.cached_property
    def sides(self) -> dict[str, xr.Dataset]:
        """The sides that are there, by name."""
        both = {"observed": self.observed, "predicted": self.predicted}
        return {name: record for name, record in both.items() if record is not None}

    @functools.cached_property
    def staircase(self) -> StaircaseView | None:
        """The predicted staircase, with what was observed of it."""
        if self.predicted is None or not is_staircase(self.predicted):
            return None
        return StaircaseView(self.predicted, self.residual)

    @property
    def warnings(self) -> list[str]:
        """Every warning of the tree and of its sides, once, and one on all slow jumps."""
        told = [each for node in self.tree.subtree for each in node.attrs.get("warnings", [])]
        slow = "" if self.staircase is None else self.staircase.slow_sentence
        return list(dict.fromkeys(filter(None, [*told, slow])))

    @functools.cached_property
    def quantities(self) -> dict[str, Quantity]:
        """The compared quantities by name."""
        return {name: Quantity.from_plain(each) for name, each in self.attributes.get("agreement", {}).items()}

    @functools.cached_property
    def checks(self) -> dict[str, Quantity]:
        """The compared quantities that are identities, which hold of every run."""
        return {name: Quantity.from_plain(each) for name, each in self.attributes.get("checks", {}).items()}

    @property
    def claims(self) -> dict[str, Outcome]:
        """The outcome of each claim that decides, by name."""
        return dict(self.attributes.get("claims", {}))

    @property
    def verdict(self) -> Verdict | None:
        """What came out; None where nothing was compared."""
        told = self.attributes
        if "verdict" not in told:
            return None
        return Verdict(told["verdict"], str(told.get("verdict_sentence", "")), told.get(SHARE_OF_FALL))

    @functools.cached_property
    def charts(self) -> tuple[Chart, ...]:
        """The figures that tell the result, as declared."""
        return from_attributes(self.attributes.get("figures", []))

    @property
    def undecided(self) -> dict[str, str]:
        """The reason for each undecided claim, by name; older records state none."""
        if self.observed is None or WHY_UNDECIDED not in self.observed:
            return {}
        return {str(name): reason for name, reason in self.observed[WHY_UNDECIDED].to_series().items() if reason}

    def _side(self, name: str) -> xr.Dataset | None:
        """One side, or None. A record alone is the side that its contents tell."""
        if name in self.tree.children:
            record = self.tree[name].to_dataset()
        else:
            record = self.tree.to_dataset()
            alone = "predicted" if "theory" in record.attrs or is_staircase(record) else "observed"
            if alone != name:
                return None
        return record if record.data_vars else None


Tree = TreeView | xr.DataTree | xr.Dataset  # what functions that read records take
