"""What a page asks and explains of a staircase that says nothing of its own, as of a user's data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dynascope.results import Result
from dynascope.results.numbers import number

__all__ = ["asked_of_a_staircase", "expected_of_a_staircase", "meaning_of_a_staircase", "seen_in_a_staircase"]


def asked_of_a_staircase(view: Result, facts: Mapping[Any, Any]) -> str:
    """The question that a predicted staircase answers; nothing for any other tree."""
    if view.staircase is None or not facts.get("task") or not facts.get("network"):
        return ""
    return f"What does a {facts['network']} network learn from {facts['task']}, in what order, and when?"


def expected_of_a_staircase(view: Result) -> str:
    """How many jumps are predicted, and when; nothing for any other tree."""
    if view.staircase is None:
        return ""
    due = [row.time for row in view.staircase.rows if math.isfinite(row.time)]
    if len(due) < 2:
        return f"One jump is expected, at time {number(due[0], 3)}." if due else "No jump is expected."
    return f"{len(due)} jumps are expected, from time {number(due[0], 3)} to {number(due[-1], 3)}."


def seen_in_a_staircase(view: Result) -> str:
    """What the figure of a predicted staircase shows, with its numbers."""
    if view.staircase is None or not len(view.staircase.rows):
        return "No jump was predicted."
    first, last = view.staircase.rows[0], view.staircase.rows[-1]
    told = f"from {number(first.loss_before, 3)} to {number(last.loss_after, 3)}"
    if view.observed is None:
        return f"Theory expects the loss to rest on plateaus and to fall from one to the next, {told}, at each number."
    return f"The loss falls from plateau to plateau. Theory puts a jump at each number, and levels {told}."


def meaning_of_a_staircase(view: Result, facts: Mapping[Any, Any]) -> str:
    """How to read a predicted staircase; nothing for any other tree."""
    if not asked_of_a_staircase(view, facts):
        return ""
    scale = f" ({number(facts['scale'])} here)" if "scale" in facts else ""
    told = (
        "From small initial weights a network learns one thing after the other: its loss rests on a plateau, then "
        "falls in a jump, at which what the table names is learned. The dashed staircase was computed from the data "
        f"and the initial weights, without training. It is sharp for small initial weights{scale}; from larger ones "
        "the jumps run together."
    )
    if view.staircase is not None and view.staircase.curve is not None:
        told += " The dotted curve follows all neurons from these weights at once, however small they are."
    if view.observed is None:
        return told
    if view.observed.attrs.get("flow") == "a training of your own":
        return f"{told} The solid curve is the loss that you logged, and all is in its units."
    return f"{told} The solid curve is the loss of the network that was trained."
