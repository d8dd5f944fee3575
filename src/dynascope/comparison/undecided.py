"""Verdicts that become undecided because a compared quantity is known too roughly."""

from __future__ import annotations

import xarray as xr

from dynascope.results.tree_view import SHARE_OF_FALL

__all__ = ["leave_undecided"]


def leave_undecided(tree: xr.DataTree, sentence: str) -> None:
    """Make the verdict of a comparison undecided, for the reason that the sentence states: nothing counts as judged."""
    agreement = tree.attrs["agreement"]
    unknown = {name: {**each, "error": None, "agrees": True} for name, each in agreement.items()}
    tree.attrs.pop(SHARE_OF_FALL, None)
    tree.attrs |= {
        "verdict": "undecided",
        "verdict_sentence": sentence,
        "agreement": unknown,
    }
