"""The verdict of a comparison, as a person would say it, and the rows of the table behind it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from dynascope.record import StaircaseView, TreeView, describe
from dynascope.record import staircase_names as names
from dynascope.record.numbers import number

__all__ = ["HEADINGS", "Row", "quantity_rows", "reasons_of", "verdict_sentence"]

HEADINGS = {
    "agree": "Theory and experiment agree",
    "disagree": "Theory and experiment disagree",
    "undecided": "Undecided",
}
_MAXIMUM = "_maximum"
_FAR = 0.5  # a time that is off by a larger share is told by its ratio
_OUTCOMES = {  # of one claim, and of several
    "holds": ("holds", "hold"),
    "does not hold": ("is refuted", "are refuted"),
    "undecided": ("is undecided", "are undecided"),
}
_COUNTS = ("no", *(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]))


class Row(NamedTuple):
    """One compared quantity.

    Attributes:
        name: In words.
        error: Of the whole; None if it could not be compared or is not finite.
        largest: At its worst place, where that is judged apart.
        tolerance: What the error may be.
        largest_tolerance: What the largest error may be, if that is another number.
        agrees: Whether both are within their tolerances.
        reason: Why this tolerance.
    """

    name: str
    error: float | None
    largest: float | None
    tolerance: float
    largest_tolerance: float | None
    agrees: bool
    reason: str

    @property
    def judged(self) -> bool:
        """Whether there was something to judge."""
        return not self.agrees or self.error is not None

    @property
    def share(self) -> float:
        """The error over its tolerance, where one is worst."""
        pairs = [(self.error, self.tolerance), (self.largest, self.largest_tolerance or self.tolerance)]
        return max((_ratio(error, tolerance) for error, tolerance in pairs), default=0.0)


def quantity_rows(agreement: Mapping[str, Mapping[str, Any]], view: TreeView) -> list[Row]:
    """One row for each quantity, its largest error folded in."""
    rows = []
    for name, whole in agreement.items():
        if name.removesuffix(_MAXIMUM) != name and name.removesuffix(_MAXIMUM) in agreement:
            continue
        worst = agreement.get(f"{name}{_MAXIMUM}", {})
        other = worst.get("tolerance")
        rows.append(
            Row(
                _called(name, view),
                whole["error"],
                worst.get("error"),
                whole["tolerance"],
                other if other != whole["tolerance"] else None,
                bool(whole["agrees"]) and bool(worst.get("agrees", True)),
                str(whole.get("reason", "")),
            )
        )
    return rows


def reasons_of(rows: Sequence[Row]) -> dict[str, str]:
    """A letter for each reason, which is then said once."""
    reasons = dict.fromkeys(row.reason for row in rows if row.reason)
    return {reason: _letter(place) for place, reason in enumerate(reasons)}


def verdict_sentence(
    rows: Sequence[Row],
    staircase: StaircaseView | None,
    *,
    claims: Mapping[str, str] = MappingProxyType({}),
    reported: Mapping[str, str] = MappingProxyType({}),
    checks: Sequence[Row] = (),
) -> str:
    """What came out, in a sentence: how many jumps were seen and how well, or which quantity is the closest call.

    Args:
        rows: The compared quantities.
        staircase: The predicted jumps, beside those that were seen; None if theory predicts curves.
        claims: The outcome of each claim, by name.
        reported: That of claims which do not decide the verdict.
        checks: The identities.

    Example:
        >>> row = Row("loss", 0.001, 0.004, 0.01, None, True, "")
        >>> verdict_sentence([row], None)
        'Training follows theory in the loss, off by 0.004 where 0.01 is allowed.'
        >>> verdict_sentence([], None, claims={"H1": "holds", "H2": "undecided"})
        'One of two claims holds; one is undecided.'
        >>> verdict_sentence([], None, claims={"H1": "holds"}, reported={"H2": "holds", "H3": "does not hold"})
        'The claim holds. Of two further claims, which decide nothing, one holds and one is refuted.'
    """
    failed = [row for row in checks if not row.agrees]
    if failed:
        worst = max(failed, key=lambda row: row.share)
        told = f"What holds of every run does not hold here: the {worst.name}, {_size(worst)}."
        return f"{told} The measurement is at fault, and nothing is concluded."
    parts = [_of_quantities(rows, staircase), _of_claims(claims), _of_further_claims(reported)]
    return " ".join(filter(None, parts)) or "Nothing that theory predicts could be judged."


def _of_quantities(rows: Sequence[Row], staircase: StaircaseView | None) -> str:
    judged = [row for row in rows if row.judged]
    wrong = [row for row in judged if not row.agrees]
    told = _of_jumps(staircase) if staircase is not None else ""
    if not judged:
        return told
    if wrong:
        told = f"{told} {_not_followed(wrong, len(judged))}".lstrip()
    elif not told:
        closest = max(judged, key=lambda row: row.share)
        if len(judged) == 1:
            told = f"Training follows theory in the {closest.name}, {_size(closest)}."
        else:
            all_of = "Both" if len(judged) == 2 else f"All {_count(len(judged))}"
            told = f"{all_of} quantities follow theory; the closest call is the {closest.name}, {_size(closest)}."
    left = len(rows) - len(judged)
    things = "quantity" if left == 1 else "quantities"
    return f"{told} {_count(left).capitalize()} {things} could not be judged." if left else told


def _of_claims(claims: Mapping[str, str]) -> str:
    """How many claims hold, do not hold, and are undecided."""
    size, counts = len(claims), Counter(claims.values())
    if not size:
        return ""
    if len(counts) == 1:
        verb = _OUTCOMES[next(iter(counts))][size > 1]
        return f"{'The claim' if size == 1 else 'Both claims' if size == 2 else f'All {_count(size)} claims'} {verb}."
    held = counts.pop("holds", 0)
    told = f"{_count(held).capitalize() if held else 'None'} of {_count(size)} claims {_OUTCOMES['holds'][held > 1]}"
    rest = [f"{_count(counts[each])} {words[counts[each] > 1]}" for each, words in _OUTCOMES.items() if each in counts]
    return f"{told}; {', '.join(rest)}."


def _of_further_claims(claims: Mapping[str, str]) -> str:
    """How many claims that are reported only hold, do not hold, and are undecided."""
    size, counts = len(claims), Counter(claims.values())
    if not size:
        return ""
    told = [f"{_count(counts[each])} {words[counts[each] > 1]}" for each, words in _OUTCOMES.items() if each in counts]
    if len(told) == 1:
        things = "claim, which decides" if size == 1 else "claims, which decide"
        return f"{_count(size).capitalize()} further {things} nothing, {_OUTCOMES[next(iter(counts))][size > 1]}."
    return f"Of {_count(size)} further claims, which decide nothing, {', '.join(told[:-1])} and {told[-1]}."


def _of_jumps(staircase: StaircaseView) -> str:
    """How many of the predicted jumps were seen or could be judged, and when they came."""
    rows = [row for row in staircase.rows if math.isfinite(row.time)]
    kinds = [row.status for row in rows]
    seen = [row.seen for row in rows if row.seen is not None and math.isfinite(row.seen.time)]
    errors = [each.time_error for each in seen if each.status == names.JUDGED and math.isfinite(each.time_error)]
    judged, left = kinds.count(names.JUDGED), len(kinds) - kinds.count(names.JUDGED)
    if not rows:
        return ""
    if left:
        told = "One jump was predicted" if len(rows) == 1 else f"{_count(len(rows)).capitalize()} jumps were predicted"
        told += f" and {_count(judged).replace('no', 'none')} could be judged{_left_out(kinds)}"
    elif len(rows) == 1:
        told = "One jump was predicted, and it was " + ("seen" if seen else "not seen")
    else:
        told = f"{_count(len(rows)).capitalize()} jumps were predicted and {_count(len(seen)).replace('no', 'none')} "
        told += "was seen" if len(seen) < 2 else "were seen"
    if not errors:
        return f"{told}."
    told_of, worst = judged if left else len(seen), max(errors, key=abs)
    if abs(worst) > _FAR:
        one, off = "" if told_of == 1 else " one of them", 1 / (1 + worst)
        return f"{told},{one} at {number(off, 2)} {'of' if off < 1 else 'times'} its predicted time."
    whose = "" if told_of == 1 else " each" if len(errors) == told_of else f" {_count(len(errors))} of them"
    their = "their" if "of them" in whose and len(errors) > 1 else "its"
    return f"{told},{whose} within {_percent(abs(worst))} of {their} time."


def _left_out(kinds: Sequence[str]) -> str:
    """Why jumps are not judged."""
    reasons = (
        (kinds.count(names.SLOW), "known only roughly"),
        (kinds.count(names.UNCLEAR), "not clear from this curve"),
        (kinds.count(names.NOT_DUE), "not due when the run ended"),
    )
    return f" ({', '.join(f'{_count(number)} {why}' for number, why in reasons if number)})"


def _called(name: str, view: TreeView) -> str:
    for record in view.sides.values():
        if name in record.variables and "long_name" in record[name].attrs:
            return str(record[name].attrs["long_name"])
    return describe(name)[0]


def _not_followed(wrong: Sequence[Row], judged: int) -> str:
    """Which quantities differ, and by how much the worst of them."""
    worst = max(wrong, key=lambda row: row.share)
    size = f"{worst.name}, {_size(worst)}"
    if judged == 1:
        return f"Training does not follow theory in the {size}."
    if len(wrong) == 1:
        return f"One of {_count(judged)} quantities does not follow theory: the {size}."
    return f"{_count(len(wrong)).capitalize()} of {_count(judged)} quantities do not follow theory, most the {size}."


def _size(row: Row) -> str:
    largest_worse = _ratio(row.largest, row.largest_tolerance or row.tolerance) > _ratio(row.error, row.tolerance)
    error = row.largest if largest_worse else row.error
    tolerance = row.largest_tolerance or row.tolerance if largest_worse else row.tolerance
    off = "off without bound" if error is None else "exactly" if error == 0 else f"off by {number(error, 2)}"
    return off if error == 0 else f"{off} where {number(tolerance, 2)} is allowed"


def _ratio(error: float | None, tolerance: float) -> float:
    if error is None:
        return -1.0
    return error / tolerance if tolerance > 0 else math.inf if error else 0.0


def _percent(share: float) -> str:
    """Rounded up, so that what is said to be within it is."""
    percent = 100 * share
    if percent == 0:
        return "0 %"
    step = 1.0 if percent >= 1 else 10.0 ** math.floor(math.log10(percent))
    return f"{number(math.ceil(percent / step - 1e-9) * step, 2 if percent < 100 else 4)} %"


def _count(size: int) -> str:
    return _COUNTS[size] if size < len(_COUNTS) else str(size)


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"{chr(ord('a') + place // 26 - 1)}{chr(ord('a') + place % 26)}"
