"""The verdict of a comparison, its sentence, and the table of compared quantities."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Literal, NamedTuple

from dynascope.comparison.jumps_text import jumps_sentence, miscounted_jumps
from dynascope.results import Result, StaircaseView, describe, names_of
from dynascope.results import staircase_names as names
from dynascope.results.judgement import Outcome, Quantity
from dynascope.results.numbers import counted, number

__all__ = ["HEADINGS", "Row", "decided", "only_the_curve", "quantity_rows", "reasons_of", "verdict_sentence"]

HEADINGS = {
    "agree": "Theory and experiment agree",
    "disagree": "Theory and experiment disagree",
    "undecided": "Undecided",
}
_MAXIMUM = "_maximum"
_HALF = 0.5  # of the decrease in the loss; an agreement that scores less is qualified
_OUTCOMES: dict[Outcome, tuple[str, str]] = {  # for one claim, for several
    "holds": ("holds", "hold"),
    "does not hold": ("is refuted", "are refuted"),
    "undecided": ("is undecided", "are undecided"),
}


class Row(NamedTuple):
    """One compared quantity.

    Attributes:
        name: Description of the quantity.
        error: The overall error; None if it is not finite or could not be computed.
        largest: The largest error along a curve, if it has a tolerance.
        tolerance: The tolerance of `error`.
        largest_tolerance: The tolerance of `largest`, if it differs from `tolerance`.
        agrees: Whether both errors are within their tolerances.
        reason: The reason for the tolerance.
        key: The name of the quantity in the record.
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
        """Whether the quantity could be scored."""
        return not self.agrees or self.error is not None

    @property
    def share(self) -> float:
        """The largest ratio of an error to its tolerance."""
        pairs = [(self.error, self.tolerance), (self.largest, self.largest_tolerance or self.tolerance)]
        return max((_ratio(error, tolerance) for error, tolerance in pairs), default=0.0)


def quantity_rows(quantities: Mapping[str, Quantity], view: Result) -> list[Row]:
    """Return one row per quantity, including its largest error along a curve."""
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
    """Assign a letter to each distinct reason."""
    reasons = dict.fromkeys(row.reason for row in rows if row.reason)
    return {reason: _letter(place) for place, reason in enumerate(reasons)}


def decided(
    rows: Sequence[Row], claims: Sequence[Outcome], checks: Sequence[Row] = ()
) -> Literal["agree", "disagree", "undecided"]:
    """Decide the verdict from the compared quantities and from the claims.

    The verdict is undecided if an identity fails, if nothing could be scored, or if nothing disagrees but more than
    half of the claims are undecided. A quantity whose error exceeds its tolerance, or a refuted claim, is a
    disagreement.

    Args:
        rows: The compared quantities.
        claims: The outcomes of the claims that decide the verdict.
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


def only_the_curve(rows: Sequence[Row], staircase: StaircaseView | None) -> bool:
    """Whether the loss curve at the scale of a staircase was scored, but none of its jumps."""
    if staircase is None or any(jump.status == names.JUDGED for jump in staircase.rows):
        return False
    return any(row.key == names.CURVE and row.judged for row in rows)


def verdict_sentence(
    rows: Sequence[Row],
    staircase: StaircaseView | None,
    *,
    claims: Sequence[Outcome] = (),
    reported: Sequence[Outcome] = (),
    checks: Sequence[Row] = (),
    share: float | None = None,
    unscored: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Summarise the comparison in a sentence: the observed jumps, or the largest error relative to its tolerance.

    If the verdict is agreement but less than half of the decrease in the loss was scored, the sentence states the
    share.

    Args:
        rows: The compared quantities.
        staircase: The predicted and observed jumps; None if theory predicts curves.
        claims: The outcomes of the claims that decide the verdict.
        reported: The outcomes of the claims that do not decide the verdict.
        checks: The identities.
        share: The share of the decrease in the loss that was scored (`share_of_fall`), if known.
        unscored: The reason why a quantity could not be scored, by its name in the record.

    Example:
        >>> row = Row("loss", 0.001, 0.004, 0.01, None, True, "")
        >>> verdict_sentence([row], None)
        'The compared quantity agrees with theory: the error of the loss is 0.004 (tolerance 0.01).'
        >>> verdict_sentence([], None, claims=["holds", "undecided"])
        'One of two claims holds; one is undecided.'
        >>> verdict_sentence([], None, claims=["holds"], reported=["holds", "does not hold"])
        'The claim holds. Of two further claims that do not affect the verdict, one holds and one is refuted.'
    """
    failed = [row for row in checks if not row.agrees]
    if failed:
        worst = max(failed, key=lambda row: row.share)
        broken = f"An identity that holds in every run is violated: the error of the {worst.name} is {_size(worst)}."
        return f"{broken} This points to an error in the measurement, so the verdict is undecided."
    verdict = decided(rows, claims)
    jumps_scored = staircase is not None and not only_the_curve(rows, staircase)
    small = _of_share(share, jumps_scored) if verdict == "agree" and share is not None and share < _HALF else ""
    some = verdict == "undecided" and _mostly_undecided(claims) and len({*claims}) > 1
    mostly = "More than half of the claims are undecided, so the verdict is undecided too." if some else ""
    parts = [_of_quantities(rows, staircase, unscored), small, _of_claims(claims), mostly, _of_further_claims(reported)]
    return " ".join(filter(None, parts)) or "No prediction could be scored."


def _mostly_undecided(claims: Sequence[Outcome]) -> bool:
    return 2 * claims.count("undecided") > len(claims)


def _of_share(share: float, jumps_scored: bool) -> str:
    """State that the scored share of the decrease in the loss is small."""
    what = "the scored jumps account" if jumps_scored else "the time span shared by both curves accounts"
    return f"However, {what} for only {number(100 * max(share, 0.0), 2)} % of the decrease in the loss."


def _of_quantities(rows: Sequence[Row], staircase: StaircaseView | None, unscored: Mapping[str, str]) -> str:
    judged = [row for row in rows if row.judged]
    wrong = [row for row in judged if not row.agrees]
    text = jumps_sentence(staircase) if staircase is not None else ""
    if not judged:
        return text
    if wrong:
        counts = {
            row.key: round(row.error or 0) for row in wrong if row.key in (names.MISSING_JUMPS, names.EXTRA_JUMPS)
        }
        others = [row for row in wrong if row.key not in counts]
        rest = _disagreement(others, len(judged)) if others else ""
        text = " ".join(filter(None, [text, miscounted_jumps(**counts), rest]))
    elif not text:
        closest = max(judged, key=lambda row: row.share)
        if len(judged) == 1:
            text = f"The compared quantity agrees with theory: the error of the {closest.name} is {_size(closest)}."
        else:
            all_of = "Both" if len(judged) == 2 else f"All {counted(len(judged))}"
            exact = closest.error == 0 and not closest.largest
            largest = f" The largest error, relative to its tolerance, is in the {closest.name}: {_size(closest)}."
            text = f"{all_of} quantities agree with theory{' exactly.' if exact else f'.{largest}'}"
    elif only_the_curve(rows, staircase):
        (curve,) = (row for row in rows if row.key == names.CURVE)
        # No jump is scored, so it goes without saying that the quantities about jumps are not scored either.
        follows = f"The observed loss follows the predicted {curve.name}: its mean error, relative to the initial loss,"
        return f"{text} {follows} is {_size(curve)}."
    left = [row for row in rows if not row.judged]
    if not left:
        return text
    named = [f"the {row.name}" for row in left]
    joined = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
    known = [row for row in left if row.key in unscored] if any(row.judged for row in rows) else []
    if len(left) == len(known) == 1:
        return f"{text} {joined[0].upper()}{joined[1:]} could not be scored, because {unscored[left[0].key]}."
    sentences = [text, f"{joined[0].upper()}{joined[1:]} could not be scored."]
    sentences += [f"The {row.name} is not scored because {unscored[row.key]}." for row in known]
    return " ".join(sentences)


def _of_claims(claims: Sequence[Outcome]) -> str:
    """Count the claims that hold, are refuted, and are undecided."""
    size, counts = len(claims), Counter(claims)
    if not size:
        return ""
    if len(counts) == 1:
        verb = _OUTCOMES[next(iter(counts))][size > 1]
        return f"{'The claim' if size == 1 else 'Both claims' if size == 2 else f'All {counted(size)} claims'} {verb}."
    held = counts.pop("holds", 0)
    first = counted(held).capitalize() if held else "None" if size > 2 else "Neither"
    text = f"{first} of {counted(size)} claims {_OUTCOMES['holds'][held > 1]}"
    rest = [f"{counted(counts[each])} {words[counts[each] > 1]}" for each, words in _OUTCOMES.items() if each in counts]
    return f"{text}; {', '.join(rest)}."


def _of_further_claims(claims: Sequence[Outcome]) -> str:
    """Count the outcomes of the claims that do not affect the verdict."""
    size, counts = len(claims), Counter(claims)
    if not size:
        return ""
    parts = [
        f"{counted(counts[each])} {words[counts[each] > 1]}" for each, words in _OUTCOMES.items() if each in counts
    ]
    if len(parts) == 1:
        things = "claim" if size == 1 else "claims"
        verb = _OUTCOMES[next(iter(counts))][size > 1]
        effect = "does not" if size == 1 else "do not"
        return f"{counted(size).capitalize()} further {things} {verb} but {effect} affect the verdict."
    listed = f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"Of {counted(size)} further claims that do not affect the verdict, {listed}."


def _called(name: str, view: Result) -> str:
    return describe(name, names_of(*reversed(view.sides.values())))[0]


def _disagreement(wrong: Sequence[Row], judged: int) -> str:
    """State how many quantities disagree, and the largest error relative to its tolerance."""
    worst = max(wrong, key=lambda row: row.share)
    error = f"the error of the {worst.name} is {_size(worst)}"
    if judged == 1:
        return f"The compared quantity disagrees with theory: {error}."
    if len(wrong) == 1:
        return f"One of {counted(judged)} quantities disagrees with theory: {error}."
    most = f"the worst is the {worst.name}, with an error of {_size(worst)}"
    return f"{counted(len(wrong)).capitalize()} of {counted(judged)} quantities disagree with theory; {most}."


def _size(row: Row) -> str:
    """Format the error of a quantity and its tolerance."""
    largest_worse = _ratio(row.largest, row.largest_tolerance or row.tolerance) > _ratio(row.error, row.tolerance)
    error = row.largest if largest_worse else row.error
    tolerance = row.largest_tolerance or row.tolerance if largest_worse else row.tolerance
    return f"{'infinite' if error is None else number(error, 2)} (tolerance {number(tolerance, 2)})"


def _ratio(error: float | None, tolerance: float) -> float:
    if error is None:
        return -1.0
    return error / tolerance if tolerance > 0 else math.inf if error else 0.0


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else f"{chr(ord('a') + place // 26 - 1)}{chr(ord('a') + place % 26)}"
