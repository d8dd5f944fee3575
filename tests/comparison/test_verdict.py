from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from dynascope.comparison.verdict import Row, decided, quantity_rows, reasons_of, verdict_sentence
from dynascope.record import StaircaseView, TreeView, make_record

GOOD = Row("loss", 0.001, None, 0.01, None, True, "exact")
BAD = Row("speed", 0.5, 0.9, 0.1, 0.2, False, "exact")
VIEW = TreeView.of(make_record({"speed": ([], 1.0)}, {}, names={"speed": ("speed of <it>", "1")}))


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


@pytest.mark.parametrize(
    ("predicted", "seen", "status", "sentence"),
    [
        (
            list(range(1, 10)),
            list(np.arange(1, 10) / 1.061),
            None,
            "Nine jumps were predicted and nine were seen, each within 7 % of its time.",
        ),
        ([1.0], [1 / 1.01], None, "One jump was predicted, and it was seen, within 1 % of its time."),
        ([1.0, 2.0], [1.0, np.nan], None, "Two jumps were predicted and one was seen, within 0 % of its time."),
        ([8.0], [1.0], None, "One jump was predicted, and it was seen, at 0.12 of its predicted time."),
        (
            [1.0, 2.0],
            [1.0, 16.0],
            None,
            "Two jumps were predicted and two were seen, one of them at 8 times its predicted time.",
        ),
        ([1.0], [np.nan], None, "One jump was predicted, and it was not seen."),
        ([1.0, 2.0], [np.nan, np.nan], None, "Two jumps were predicted and none was seen."),
        (
            [1.0, 2.0],
            [1 / 1.0007, 1.0],
            ["judged", "slow"],
            "Two jumps were predicted and one could be judged (one known only roughly), within 0.07 % of its time.",
        ),
        (
            [1.0, 2.0, 3.0],
            [1 / 1.01, 2.0, np.nan],
            ["judged", "slow", "not due"],
            "Three jumps were predicted and one could be judged (one known only roughly, one not due when the run "
            "ended), within 1 % of its time.",
        ),
        (
            [1.0, 2.0, 3.0],
            [1 / 1.01, 2.0, np.nan],
            ["judged", "judged", "not due"],
            "Three jumps were predicted and two could be judged (one not due when the run ended), each within 1 % of "
            "its time.",
        ),
        (
            [1.0],
            [np.nan],
            ["not due"],
            "One jump was predicted and none could be judged (one not due when the run ended).",
        ),
    ],
)
def test_the_jumps_are_counted_and_their_times_bounded(predicted, seen, status, sentence):
    assert verdict_sentence([GOOD], staircase(predicted, seen, status)) == sentence


def test_where_nothing_is_judged_the_jumps_say_why():
    nothing = [GOOD._replace(error=None)]
    told = verdict_sentence(nothing, staircase([1.0, 2.0], [1.0, np.nan], ["slow", "not due"]))
    assert told.startswith("Two jumps were predicted and none could be judged (")


def test_a_jump_that_is_missing_is_said_beside_those_that_were_seen():
    missing = Row("missing jumps", 1.0, None, 0.0, None, False, "")
    told = verdict_sentence([GOOD, missing], staircase([1.0, 2.0], [1.0, np.nan]))
    assert told == (
        "Two jumps were predicted and one was seen, within 0 % of its time. "
        "One of two quantities does not follow theory: the missing jumps, off by 1 where 0 is allowed."
    )


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([GOOD], "Training follows theory in the loss, off by 0.001 where 0.01 is allowed."),
        ([GOOD._replace(error=0.0, tolerance=0.0)], "Training follows theory in the loss, exactly."),
        (
            [GOOD, GOOD, GOOD],
            "All three quantities follow theory; the closest call is the loss, off by 0.001 where 0.01 is allowed.",
        ),
        (
            [GOOD, BAD],
            "One of two quantities does not follow theory: the speed, off by 0.5 where 0.1 is allowed.",
        ),
        (
            [GOOD._replace(error=None), BAD._replace(error=None, largest=None), BAD],
            "Two of two quantities do not follow theory, most the speed, "
            "off by 0.5 where 0.1 is allowed. One quantity could not be judged.",
        ),
        (
            [BAD._replace(error=None, largest=None)],
            "Training does not follow theory in the speed, off without bound where 0.1 is allowed.",
        ),
        ([GOOD._replace(error=None)], "Nothing that theory predicts could be judged."),
    ],
)
def test_the_worst_quantity_is_named(rows, sentence):
    assert verdict_sentence(rows, None) == sentence


def test_the_largest_error_is_folded_into_the_row_of_its_quantity():
    each = {"error": 0.1, "tolerance": 0.2, "agrees": True, "reason": "why"}
    worst = {"error": 0.5, "tolerance": 0.4, "agrees": False, "reason": "why"}
    agreement = {"speed": each, "speed_maximum": worst, "lonely_maximum": worst}
    assert quantity_rows(agreement, VIEW) == [
        Row("speed of <it>", 0.1, 0.5, 0.2, 0.4, False, "why"),
        Row("lonely maximum", 0.5, None, 0.4, None, False, "why"),
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
    view = TreeView.of(xr.Dataset({"loss": 1.0}))
    assert quantity_rows({"jump_time": {"error": 0.1, "tolerance": 0.2, "agrees": True}}, view)[0].name == (
        "time of the jump"
    )


def test_only_the_jumps_of_the_table_are_spoken_of():
    levels = np.array([1.0, 0.4, 0.3995, 0.399, 0.0])
    view = staircase([1.0, 2.0, 3.0, 4.0], [1 / 1.04, 2 / 1.5, 3.0, 4 / 1.03])
    record = view.record.assign(loss_before=("jump", levels[:-1]), loss_after=("jump", levels[1:]))
    assert verdict_sentence([GOOD], StaircaseView(record, view.residual)) == (
        "Four jumps were predicted; two of them explain more than 0.1 % of the loss each and two were seen, each "
        "within 4 % of its time."
    )


@pytest.mark.parametrize(("share", "qualified"), [(0.4, True), (0.5, False), (None, False)])
def test_an_agreement_on_less_than_half_of_the_fall_says_so(share, qualified):
    told = verdict_sentence([GOOD], staircase([1.0, 2.0], [1.0, 2.0], ["judged", "slow"]), share=share)
    assert ("But the judged jumps make up only 40 % of the fall of the loss." in told) is qualified


def test_a_disagreement_is_not_qualified_by_its_share():
    assert "fall of the loss" not in verdict_sentence([BAD], None, share=0.1)


@pytest.mark.parametrize(
    ("rows", "claims", "verdict"),
    [
        ([GOOD], {}, "agree"),
        ([GOOD], {"A": "undecided", "B": "undecided", "C": "holds"}, "undecided"),
        ([GOOD], {"A": "undecided", "B": "holds"}, "agree"),
        ([GOOD, BAD], {"A": "undecided"}, "disagree"),
        ([GOOD._replace(error=None)], {}, "undecided"),
        ([], {}, "undecided"),
    ],
)
def test_most_claims_undecided_leave_the_verdict_undecided(rows, claims, verdict):
    assert decided(rows, claims) == verdict


def test_an_identity_that_fails_leaves_the_verdict_undecided():
    assert decided([BAD], {"A": "does not hold"}, [BAD]) == "undecided"
