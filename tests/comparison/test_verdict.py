from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

from dynascope.comparison.verdict import Row, decided, quantity_rows, reasons_of, verdict_sentence
from dynascope.results import Quantity, StaircaseView, describe, from_tree, make_record

GOOD = Row("loss", 0.001, None, 0.01, None, True, "exact")
BAD = Row("speed", 0.5, 0.9, 0.1, 0.2, False, "exact")
VIEW = from_tree(make_record({"speed": ([], 1.0)}, {}, names={"speed": ("speed of <it>", "1")}))


def staircase(predicted: list[float], seen: list[float], status: list[str] | None = None) -> StaircaseView:
    jumps = np.arange(1, len(predicted) + 1)
    levels = np.linspace(1, 0, len(predicted) + 1)
    times, found = np.array(predicted), np.array(seen)
    record = make_record(
        {
            "jump_time": (["jump"], times),
            "loss_before": (["jump"], levels[:-1]),
            "loss_after": (["jump"], levels[1:]),
        },
        {"jump": jumps},
    )
    residual = make_record(
        {
            "observed_jump_time": (["jump"], found),
            "jump_time_error": (["jump"], times / found - 1),
            "observed_loss_after": (["jump"], levels[1:]),
            "status": (["jump"], status or ["judged"] * len(predicted)),
        },
        {"jump": jumps},
    )
    return StaircaseView(record, residual)


def test_without_a_scored_jump_the_sentence_is_about_the_curve():
    curve = Row("loss curve at this scale", 0.002, None, 0.017, None, True, "", key="curve")
    unscored = Row("plateau", None, None, 0.02, None, True, "", key="level")
    stairs = staircase([1.0, 2.0], [1.0, 2.0], ["slow", "slow"])
    sentence = verdict_sentence([unscored, curve], stairs, share=0.4, unscored={"level": "it is early"})
    assert "The observed loss follows the predicted loss curve at this scale" in sentence
    assert "0.002 (tolerance 0.017)" in sentence
    assert "the time span shared by both curves accounts for only 40 %" in sentence
    assert "could not be scored." not in sentence
    one = staircase([1.0, 2.0], [1.0, 2.0], ["judged", "slow"])
    assert "follows" not in verdict_sentence([unscored, curve], one, share=0.4)


def test_the_sentence_gives_the_reason_why_a_quantity_is_not_scored():
    rows = [GOOD, Row("plateau", None, None, 0.02, None, True, "", key="level")]
    sentence = verdict_sentence(rows, None, unscored={"level": "the run ends before the loss is flat"})
    assert sentence.endswith("The plateau could not be scored, because the run ends before the loss is flat.")


def numbers(sentence: str) -> list[str]:
    """The numbers of a sentence, in digits or in words."""
    return re.findall(r"\b(?:none|one|two|three|four|nine|\d+(?:\.\d+)?)\b", sentence.lower())


@pytest.mark.parametrize(
    ("predicted", "seen", "status", "told"),
    [
        (list(range(1, 10)), list(np.arange(1, 10) / 1.061), None, ["nine", "nine", "7"]),
        ([1.0], [1 / 1.01], None, ["one", "1"]),
        ([1.0, 2.0], [1.0, np.nan], None, ["two", "one", "0"]),
        ([8.0], [1.0], None, ["one", "0.12"]),
        ([1.0, 2.0], [1.0, 16.0], None, ["two", "two", "one", "8"]),
        ([1.0], [np.nan], None, ["one"]),
        ([1.0, 2.0], [np.nan, np.nan], None, ["two", "none"]),
        ([1.0, 2.0], [1 / 1.0007, 1.0], ["judged", "slow"], ["two", "one", "one", "0.07"]),
        ([1.0, 2.0, 3.0], [1 / 1.01, 2.0, np.nan], ["judged", "slow", "not due"], ["three", "one", "one", "one", "1"]),
        ([1.0, 2.0, 3.0], [1 / 1.01, 2.0, np.nan], ["judged", "judged", "not due"], ["three", "two", "one", "1"]),
        ([1.0], [np.nan], ["not due"], ["one", "none", "one"]),
    ],
)
def test_the_jumps_are_counted_and_their_times_bounded(predicted, seen, status, told):
    assert numbers(verdict_sentence([GOOD], staircase(predicted, seen, status))) == told


def test_a_jump_that_is_missing_is_said_beside_those_that_were_seen():
    missing = Row("missing jumps", 1.0, None, 0.0, None, False, "", "missing_jumps")
    told = verdict_sentence([GOOD, missing], staircase([1.0, 2.0], [1.0, np.nan]))
    assert numbers(told) == ["two", "one", "0", "one"]
    assert "one predicted jump was not observed" in told.lower()


def test_plateaus_that_are_not_predicted_are_counted_and_no_error_is_told_of_them():
    extra = Row("extra jumps", 2.0, None, 0.0, None, False, "", "extra_jumps")
    late = Row("jump time", 0.3, None, 0.1, None, False, "", "jump_time")
    told = verdict_sentence([GOOD, extra], staircase([1.0, 2.0], [1.0, 2.0]))
    assert "two plateaus" in told
    assert "error of the extra" not in told
    assert "the jump time is 0.3" in verdict_sentence([GOOD, extra, late], staircase([1.0, 2.0], [1.0, 2.0]))


@pytest.mark.parametrize(
    ("rows", "worst", "told"),
    [
        ([GOOD], "loss", ["0.001", "0.01"]),
        ([GOOD._replace(error=0.0, tolerance=0.0)], "loss", ["0", "0"]),
        ([GOOD, GOOD, GOOD], "loss", ["three", "0.001", "0.01"]),
        ([GOOD, BAD], "speed", ["one", "two", "0.5", "0.1"]),
        (
            [GOOD._replace(error=None), BAD._replace(error=None, largest=None), BAD],
            "speed",
            ["two", "two", "0.5", "0.1"],
        ),
        ([BAD._replace(error=None, largest=None)], "speed", ["0.1"]),
        ([GOOD._replace(error=None)], "", []),
    ],
)
def test_the_worst_quantity_is_named(rows, worst, told):
    sentence = verdict_sentence(rows, None)
    assert worst in sentence
    assert numbers(sentence) == told


def test_the_largest_error_is_folded_into_the_row_of_its_quantity():
    each, worst = Quantity(0.1, 0.2, "why"), Quantity(0.5, 0.4, "why")
    assert quantity_rows({"speed": each, "speed_maximum": worst, "lonely_maximum": worst}, VIEW) == [
        Row("speed of <it>", 0.1, 0.5, 0.2, 0.4, False, "why", "speed"),
        Row("lonely maximum", 0.5, None, 0.4, None, False, "why", "lonely_maximum"),
    ]


def test_every_reason_has_one_letter():
    rows = [GOOD, BAD, GOOD._replace(reason="measured"), GOOD._replace(reason="")]
    assert reasons_of(rows) == {"exact": "a", "measured": "b"}


def test_reasons_beyond_the_alphabet_have_two_letters():
    letters = list(reasons_of([GOOD._replace(reason=str(i)) for i in range(30)]).values())
    assert letters[25:28] == ["z", "aa", "ab"]
    assert len(set(letters)) == 30


def test_a_row_that_was_never_judged_is_told_apart_from_one_that_failed():
    assert not GOOD._replace(error=None).judged
    assert BAD._replace(error=None).judged


def test_a_tree_without_a_name_for_a_quantity_takes_that_of_the_field():
    view = from_tree(xr.Dataset({"loss": 1.0}))
    row = quantity_rows({"jump_time": Quantity(0.1, 0.2)}, view)[0]
    assert row.name == describe("jump_time")[0]


def test_only_the_jumps_of_the_table_are_spoken_of():
    levels = np.array([1.0, 0.4, 0.3995, 0.399, 0.0])
    view = staircase([1.0, 2.0, 3.0, 4.0], [1 / 1.04, 2 / 1.5, 3.0, 4 / 1.03])
    record = view.record.assign(loss_before=("jump", levels[:-1]), loss_after=("jump", levels[1:]))
    told = numbers(verdict_sentence([GOOD], StaircaseView(record, view.residual)))
    assert told == ["four", "two", "0.1", "4"]


@pytest.mark.parametrize(("share", "qualified"), [(0.4, True), (0.5, False), (None, False)])
def test_an_agreement_on_less_than_half_of_the_fall_says_so(share, qualified):
    told = verdict_sentence([GOOD], staircase([1.0, 2.0], [1.0, 2.0], ["judged", "slow"]), share=share)
    assert ("40" in told) is qualified


def test_a_disagreement_is_not_qualified_by_its_share():
    assert verdict_sentence([BAD], None, share=0.1) == verdict_sentence([BAD], None)


@pytest.mark.parametrize(
    ("rows", "claims", "verdict"),
    [
        ([GOOD], [], "agree"),
        ([GOOD], ["undecided", "undecided", "holds"], "undecided"),
        ([GOOD], ["undecided", "holds"], "agree"),
        ([GOOD, BAD], ["undecided"], "disagree"),
        ([GOOD._replace(error=None)], [], "undecided"),
        ([], [], "undecided"),
    ],
)
def test_most_claims_undecided_leave_the_verdict_undecided(rows, claims, verdict):
    assert decided(rows, claims) == verdict


def test_an_identity_that_fails_leaves_the_verdict_undecided():
    assert decided([BAD], ["does not hold"], [BAD]) == "undecided"
