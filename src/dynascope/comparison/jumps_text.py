"""The sentence of a verdict about predicted jumps: how many were scored, and their timing errors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from dynascope.results import StaircaseView
from dynascope.results import staircase_names as names
from dynascope.results.numbers import counted, number
from dynascope.results.staircase_view import Jump

__all__ = ["jumps_sentence", "miscounted_jumps", "percent_up"]

_FAR = 0.5  # larger relative errors of a time are stated as a ratio


def jumps_sentence(staircase: StaircaseView) -> str:
    """Count the predicted jumps that were observed or scored, and state their timing errors.

    If the table shows only the large jumps, the sentence covers only those.
    """
    every = [row for row in staircase.rows if math.isfinite(row.time)]
    rows = [row for row in staircase.shown if math.isfinite(row.time)]
    if not every:
        return ""
    predicted = "One jump was" if len(every) == 1 else f"{counted(len(every)).capitalize()} jumps were"
    least = f"{number(100 * staircase.smallest, 2)} % of the loss" if len(rows) < len(every) else ""
    text, scored = _seen(rows, f"{predicted} predicted", least)
    errors = [
        row.seen.time_error
        for row in rows
        if row.seen is not None and row.status == names.JUDGED and math.isfinite(row.seen.time_error)
    ]
    return f"{text}{_within(errors, scored)}."


def miscounted_jumps(missing_jumps: int = 0, extra_jumps: int = 0) -> str:
    """State how many predicted jumps are missing, and how many plateaus were not predicted.

    Example:
        >>> miscounted_jumps(extra_jumps=1)
        'The loss shows one plateau that theory does not predict.'
        >>> miscounted_jumps(missing_jumps=2)
        'Two predicted jumps were not observed, or merged with others.'
    """
    sentences = []
    if missing_jumps:
        jumps, other = ("jump was", "another") if missing_jumps == 1 else ("jumps were", "others")
        sentences.append(
            f"{counted(missing_jumps).capitalize()} predicted {jumps} not observed, or merged with {other}."
        )
    if extra_jumps:
        plateaus = "plateau" if extra_jumps == 1 else "plateaus"
        sentences.append(f"The loss shows {counted(extra_jumps)} {plateaus} that theory does not predict.")
    return " ".join(sentences)


def _seen(rows: Sequence[Jump], predicted: str, least: str) -> tuple[str, int]:
    """Count the observed jumps, or the scored ones if some could not be scored.

    Args:
        rows: The jumps in the table.
        predicted: Text with the number of predicted jumps.
        least: The share of the loss that each jump in `rows` exceeds; empty if the table contains all jumps.
    """
    kinds = [row.status for row in rows]
    scored, left = kinds.count(names.JUDGED), len(kinds) - kinds.count(names.JUDGED)
    if not rows:
        none = "it does not explain" if predicted.startswith("One") else "none of them explains"
        return f"{predicted}, but {none} more than {least}", 0
    number_of = counted(len(rows))
    explain = f"explains more than {least}" if len(rows) == 1 else f"each explain more than {least}"
    those = f"{predicted}. Of the {number_of} that {explain}," if least else f"{predicted} and"
    if left:
        return f"{those} {counted(scored).replace('no', 'none')} could be scored{_unscored_text(kinds)}", scored
    seen = sum(row.seen is not None and math.isfinite(row.seen.time) for row in rows)
    if len(rows) == 1:
        found = "observed" if seen else "not observed"
        one = f"{predicted}. The one that explains more than {least} was" if least else f"{predicted}, and it was"
        return f"{one} {found}", seen
    if least and seen == len(rows):
        return f"{predicted}. The {number_of} that each explain more than {least} were observed", seen
    return f"{those} {counted(seen).replace('no', 'none')} {'was' if seen < 2 else 'were'} observed", seen


def _within(errors: Sequence[float], scored: int) -> str:
    """State the largest timing error; empty if there are no errors."""
    if not errors:
        return ""
    worst = max(errors, key=abs)
    if abs(worst) > _FAR:
        one, off = "" if scored == 1 else " one of them", 1 / (1 + worst)
        return f",{one} at {number(off, 2)} times its predicted time"
    whose = "" if scored == 1 else " each" if len(errors) == scored else f" {counted(len(errors))} of them"
    an_error = "timing errors" if "of them" in whose and len(errors) > 1 else "a timing error"
    return f",{whose} with {an_error} of at most {percent_up(abs(worst))}"


def _unscored_text(kinds: Sequence[str]) -> str:
    """State why jumps are not scored."""
    reasons = (
        (kinds.count(names.SLOW), "with an uncertain time"),
        (kinds.count(names.UNCLEAR), "not resolved by this curve"),
        (kinds.count(names.NOT_DUE), "predicted after the end of the run"),
    )
    return f" ({', '.join(f'{counted(number)} {why}' for number, why in reasons if number)})"


def percent_up(share: float) -> str:
    """Format a share as a percentage, rounded up so that it remains an upper bound."""
    percent = 100 * share
    if percent == 0:
        return "0 %"
    step = 1.0 if percent >= 1 else 10.0 ** math.floor(math.log10(percent))
    return f"{number(math.ceil(percent / step - 1e-9) * step, 2 if percent < 100 else 4)} %"
