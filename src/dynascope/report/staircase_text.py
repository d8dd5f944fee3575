"""Default question and explanation for the page of a staircase."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dynascope.results import Result
from dynascope.results.numbers import number

__all__ = ["predicted_jumps_sentence", "staircase_caption", "staircase_meaning", "staircase_question"]


def staircase_question(view: Result, facts: Mapping[Any, Any]) -> str:
    """Return the question that a predicted staircase answers; empty for other results."""
    if view.staircase is None or not facts.get("task") or not facts.get("network"):
        return ""
    return f'What does a {facts["network"]} network learn from the task "{facts["task"]}", in what order, and when?'


def predicted_jumps_sentence(view: Result) -> str:
    """Return a sentence on the number and times of the predicted jumps; empty for other results."""
    if view.staircase is None:
        return ""
    due = [row.time for row in view.staircase.rows if math.isfinite(row.time)]
    if len(due) < 2:
        return f"Theory predicts one jump, at time {number(due[0], 3)}." if due else "Theory predicts no jump."
    return f"Theory predicts {len(due)} jumps between times {number(due[0], 3)} and {number(due[-1], 3)}."


def staircase_caption(view: Result) -> str:
    """Return the caption of the figure of a predicted staircase."""
    if view.staircase is None or not len(view.staircase.rows):
        return "Theory predicts no jump."
    first, last = view.staircase.rows[0], view.staircase.rows[-1]
    levels = f"from {number(first.loss_before, 3)} to {number(last.loss_after, 3)}"
    if view.observed is None:
        return f"Predicted loss over time. It drops {levels} in a staircase of plateaus; numbers mark the jumps."
    return f"Loss over time. Numbers mark the predicted jumps, and the predicted plateaus range {levels}."


def staircase_meaning(view: Result, facts: Mapping[Any, Any]) -> str:
    """Return the explanation of a predicted staircase; empty for other results."""
    if not staircase_question(view, facts):
        return ""
    scale = f" (the scale here is {number(facts['scale'], 3)})" if "scale" in facts else ""
    text = (
        "A network with small initial weights learns features one by one: the loss stays on a plateau, then drops in a "
        "jump as the network learns the next feature. The table lists these features. The dashed staircase is computed "
        f"from the data and the initial weights, without training. It assumes small initial weights{scale}; "
        "at larger scales the jumps merge."
    )
    if view.staircase is not None and view.staircase.curve is not None:
        text += " The dotted curve is the predicted loss at this scale, which does not assume small initial weights."
    if view.observed is None:
        return text
    if "loss_convention" in view.observed.attrs:
        return f"{text} The solid curve is your logged loss, and all losses and times are in its units."
    return f"{text} The solid curve is the loss of the trained network."
