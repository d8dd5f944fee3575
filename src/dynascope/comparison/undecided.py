"""Comparisons whose verdict is set to undecided, with the reason."""

from __future__ import annotations

import dataclasses
import math

from dynascope.results import Comparison, Verdict

__all__ = ["leave_undecided"]


def leave_undecided(compared: Comparison, sentence: str) -> Comparison:
    """Set the verdict to undecided, with a sentence that states the reason, and mark all errors as unknown."""
    unknown = {name: dataclasses.replace(each, error=math.nan) for name, each in compared.quantities.items()}
    return dataclasses.replace(compared, verdict=Verdict("undecided", sentence), quantities=unknown)
