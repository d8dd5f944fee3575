"""Comparisons whose verdict becomes undecided."""

from __future__ import annotations

import dataclasses
import math

from dynascope.results import Comparison, Verdict

__all__ = ["leave_undecided"]


def leave_undecided(compared: Comparison, sentence: str) -> Comparison:
    """Set the verdict to undecided for the reason in the sentence; no quantity counts as scored."""
    unknown = {name: dataclasses.replace(each, error=math.nan) for name, each in compared.quantities.items()}
    return dataclasses.replace(compared, verdict=Verdict("undecided", sentence), quantities=unknown)
