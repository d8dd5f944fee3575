"""The verdict of a comparison, as a person would say it, and the rows of the table behind it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from dynascope.comparison.jumps_text import jumps_sentence, miscounted_jumps
from dynascope.results import Result, StaircaseView, describe, names_of
from dynascope.results import staircase_names as names
from dynascope.results.judgement import Outcome, Quantity
from dynascope.results.numbers import counted, number

__all__ = ["HEADINGS", "Row", "decided", "quantity_rows", "reasons_of", "verdict_sentence"]

HEADINGS = {
    "agree": "Theory and experiment agree",
    "disagree": "Theory and experiment disagree",
    "undecided": "Undecided",
}
_MAXIMUM = "_maximum"
_HALF = 0.5  # of the fall of the loss: an agreement that judges less is qualified
_OUTCOMES: dict[Outcome, tuple[str, str]] = {  # of one claim, and of several
    "holds": ("holds", "hold"),
    "does not hold": ("is refuted", "are refuted"),
    "undecided": ("is undecided", "are undecided"),
}


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
        key: As in the record.
    """

    name: str
    error: float | None
    largest: float | None
    tolerance: float
    largest_tolerance: float | None
    agrees: bool
    reason: str
    key: str = ""

    @property
    def judged(self) -> bool:
        """Whether there was something to judge."""
        return not self.agrees or self.error is not None

    @property
    def share(self) -> float:
        """The error over its tolerance, where one is worst."""
        pairs = [(self.error, self.tolerance), (self.largest, self.largest_tolerance or self.tolerance)]
        return max((_ratio(error, tolerance) for error, tolerance in pairs), default=0.0)


def quantity_rows(quantities: Mapping[str, Quantity], view: Result) -> list[Row]:
    """One row for each quantity, its largest error folded in."""
    rows = []
    for name, whole in quantities.items():
        if name.removesuffix(_MAXIMUM) != name and name.removesuffix(_MAXIMUM) in quantities:
            continue
        worst = quantities.get(f"{name}{_MAXIMUM}")
        rows.append(
            Row(
                _called(name, view),
                _finite(whole.error),
                None if worst is None else _finite(worst.error),
                whole.tolerance,
                None if worst is None or worst.tolerance == whole.tolerance else worst.tolerance,
                whole.agrees and (worst is None or worst.agrees),
                whole.reason,
                name,
            )
        )
    return rows


def _finite(error: float) -> float | None:
    return float(error) if math.isfinite(error) else None


def reasons_of(rows: Sequence[Row]) -> dict[str, str]:
    """A letter for each reason, which is then said once."""
    reasons = dict.fromkeys(row.reason for row in rows if row.reason)
    return {reason: _letter(place) for place, reason in enumerate(reasons)}


def decided(
    rows: Sequence[Row], claims: Sequence[Outcome], checks: Sequence[Row] = ()
) -> Literal["agree", "disagree", "undecided"]:
    """Decide the verdict from the compared quantities and from the claims.

    A quantity beyond its tolerance or a claim that does not hold is a disagreement. Otherwise the verdict is undecided
    where an identity fails, where nothing could be judged, or where more than half of the claims are undecided.

    Args:
        rows: The compared quantities.
        claims: The outcomes of the claims that decide.
        checks: The identities.

    Example:
        >>> decided([], ["holds", "undecided"]), decided([], ["undecided"])
        ('agree', 'undecided')
    """
    holds = [row.agrees for row in rows if row.judged]
    holds += [outcome == "holds" for outcome in claims if outcome != "undecided"]
    if not holds or not all(row.agrees for row in checks):
        return "undecided"
    if not all(holds):
        return "disagree"
    return "undecided" if _mostly_undecided(claims) else "agree"


def verdict_sentence(
    rows: Sequence[Row],
    staircase: StaircaseView | None,
    *,
    claims: Sequence[Outcome] = (),
    reported: Sequence[Outcome] = (),
    checks: Sequence[Row] = (),
    share: float | None = None,
) -> str:
    """What came out, in a sentence: how many jumps were seen and how well, or which quantity is the closest call.

    An agreement that judges less than half of the fall of the loss is qualified by that share.

    Args:
        rows: The compared quantities.
        staircase: The predicted jumps, beside those that were seen; None if theory predicts curves.
        claims: The outcomes of the claims that decide.
        reported: The outcomes of the claims that do not decide the verdict.
        checks: The identities.
        share: The share of the fall of the loss that was judged (`share_of_fall`), where that is known.

    Example:
        >>> row = Row("loss", 0.001, 0.004, 0.01, None, True, "")
        >>> verdict_sentence([row], None)
        'Training follows theory in the loss, off by 0.004 where 0.01 is allowed.'
        >>> verdict_sentence([], None, claims=["holds", "undecided"])
        'One of two claims holds; one is undecided.'
        >>> verdict_sentence([], None, claims=["holds"], reported=["holds", "does not hold"])
        'The claim holds. Of two further claims, which decide nothing, one holds and one is refuted.'
    """
    failed = [row for row in checks if not row.agrees]
    if failed:
        worst = max(failed, key=lambda row: row.share)
        told = f"What holds of every run does not hold here: the {worst.name}, {_size(worst)}."
        return f"{told} The measurement is at fault, and nothing is concluded."
    verdict = decided(rows, claims)
    small = _of_share(share, staircase) if verdict == "agree" and share is not None and share < _HALF else ""
    some = verdict == "undecided" and _mostly_undecided(claims) and len({*claims}) > 1
    mostly = "More than half of the claims are undecided, so the verdict is too." if some else ""
    parts = [_of_quantities(rows, staircase), small, _of_claims(claims), mostly, _of_further_claims(reported)]
    return " ".join(filter(None, parts)) or "Nothing that theory predicts could be judged."


def _mostly_undecided(claims: Sequence[Outcome]) -> bool:
    return 2 * claims.count("undecided") > len(claims)


def _of_share(share: float, staircase: StaircaseView | None) -> str:
    """How little of the fall of the loss was judged."""
    what = "the judged jumps make" if staircase is not None else "the times that both curves share make"
    return f"But {what} up only {number(100 * max(share, 0.0), 2)} % of the fall of the loss."


def _of_quantities(rows: Sequence[Row], staircase: StaircaseView | None) -> str:
    judged = [row for row in rows if row.judged]
    wrong = [row for row in judged if not row.agrees]
    told = jumps_sentence(staircase) if staircase is not None else ""
    if not judged:
        return told
    if wrong:
        counts = {
            row.key: round(row.error or 0) for row in wrong if row.key in (names.MISSING_JUMPS, names.EXTRA_JUMPS)
        }
        others = [row for row in wrong if row.key not in counts]
        rest = _not_followed(others, len(judged)) if others else ""
        told = " ".join(filter(None, [told, miscounted_jumps(**counts), rest]))
    elif not told:
        closest = max(judged, key=lambda row: row.share)
        if len(judged) == 1:
            told = f"Training follows theory in the {closest.name}, {_size(closest)}."
        else:
            all_of = "Both" if len(judged) == 2 else f"All {counted(len(judged))}"
            told = f"{all_of} quantities follow theory; the closest call is the {closest.name}, {_size(closest)}."
    left = len(rows) - len(judged)
    things = "quantity" if left == 1 else "quantities"
    return f"{told} {counted(left).capitalize()} {things} could not be judged." if left else told


def _of_claims(claims: Sequence[Outcome]) -> str:
    """How many claims hold, do not hold, and are undecided."""
    size, counts = len(claims), Counter(claims)
    if not size:
        return ""
    if len(counts) == 1:
        verb = _OUTCOMES[next(iter(counts))][size > 1]
        return f"{'The claim' if size == 1 else 'Both claims' if size == 2 else f'All {counted(size)} claims'} {verb}."
    held = counts.pop("holds", 0)
    told = f"{counted(held).capitalize() if held else 'None'} of {counted(size)} claims {_OUTCOMES['holds'][held > 1]}"
    rest = [f"{counted(counts[each])} {words[counts[each] > 1]}" for each, words in _OUTCOMES.items() if each in counts]
    return f"{told}; {', '.join(rest)}."


def _of_further_claims(claims: Sequence[Outcome]) -> str:
    """How many claims that are reported only hold, do not hold, and are undecided."""
    size, counts = len(claims), Counter(claims)
    if not size:
        return ""
    told = [f"{counted(counts[each])} {words[counts[each] > 1]}" for each, words in _OUTCOMES.items() if each in counts]
    if len(told) == 1:
        things = "claim, which decides" if size == 1 else "claims, which decide"
        return f"{counted(size).capitalize()} further {things} nothing, {_OUTCOMES[next(iter(counts))][size > 1]}."
    return f"Of {counted(size)} further claims, which decide nothing, {', '.join(told[:-1])} and {told[-1]}."


def _called(name: str, view: Result) -> str:
    return describe(name, names_of(*reversed(view.sides.values())))[0]


def _not_followed(wrong: Sequence[Row], judged: int) -> str:
    """Which quantities differ, and by how much the worst of them."""
    worst = max(wrong, key=lambda row: row.share)
    size = f"{worst.name}, {_size(worst)}"
    if judged == 1:
        return f"Training does not follow theory in the {size}."
    if len(wrong) == 1:
        return f"One of {counted(judged)} quantities does not follow theory: the {size}."
    return f"{counted(len(wrong)).capitalize()} of {counted(judged)} quantities do not follow theory, most the {size}."


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


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"{chr(ord('a') + place // 26 - 1)}{chr(ord('a') + place % 26)}"
