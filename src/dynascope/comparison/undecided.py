"""Verdicts that are taken back, where what is compared is known too roughly."""

from __future__ import annotations

import json

import xarray as xr

__all__ = ["leave_undecided"]


def leave_undecided(tree: xr.DataTree, sentence: str) -> None:
    """Take back the verdict of a comparison whose quantities are known too roughly, and say so in this sentence."""
    agreement = json.loads(tree.attrs["agreement"])
    unknown = {name: {**each, "error": None, "agrees": True} for name, each in agreement.items()}
    tree.attrs |= {
        "verdict": "undecided",
        "verdict_sentence": sentence,
        "agreement": json.dumps(unknown, ensure_ascii=False),
    }
