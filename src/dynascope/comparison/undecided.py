"""Verdicts that become undecided because a compared quantity is known too roughly."""

from __future__ import annotations

import dataclasses
import math

from dynascope.results import Comparison, Verdict

__all__ = ["leave_undecided"]


def leave_undecided(compared: Comparison, sentence: str) -> Comparison:
    """The comparison with an undecided verdict, for the reason that the sentence states: nothing counts as judged."""
    unknown = {name: dataclasses.replace(each, error=math.nan) for name, each in compared.quantities.items()}
    return dataclasses.replace(compared, verdict=Verdict("undecided", sentence), quantities=unknown)
