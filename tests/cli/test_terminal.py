from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

from dynascope.cli.terminal import print_agreement, print_staircase
from dynascope.comparison import Claim, compare, report_claims
from dynascope.comparison.verdict import HEADINGS
from dynascope.results import Prediction, make_record
from dynascope.studies import Reference

REFERENCE = Reference(paper="A. Author, A [bold] title", arxiv="1234.56789", claim="Curves [rise] slowly.")


def staircase(
    *, learned=("learns [x1]", "learns x2"), reasons=("", "a plateau of [1.0] times"), warnings=()
) -> xr.Dataset:
    return make_record(
        {
            "jump_time": (("jump",), [10.0, 30.0]),
            "accelerated_time": (("jump",), [1.0, 3.0]),
            "loss_before": (("jump",), [4.0, 1.0]),
            "loss_after": (("jump",), [1.0, 0.0]),
            "learned": (("jump",), np.array(learned, dtype=str)),
            "slow": (("jump",), np.array([bool(reason) for reason in reasons])),
            "reason": (("jump",), np.array(reasons, dtype=str)),
        },
        {"jump": [1, 2]},
        attributes={
            "theory": "a theory",
            "network": "diagonal",
            "scale": np.exp(-10.0),
            "initial_loss": 4.0,
            "warnings": list(warnings),
        },
    )


def run(*, last: float = 30.0, log_inverse_scale: float = 10.0) -> xr.Dataset:
    """A loss that falls at 10 and at `last`, in these units at accelerated times 1 and 3."""
    time = np.linspace(0.0, 60.0, 6001)
    drops = [3.0 / (1 + np.exp(5 * (time - at * log_inverse_scale / 10))) for at in (10.0,)]
    drops += [1.0 / (1 + np.exp(5 * (time - at * log_inverse_scale / 10))) for at in (last,)]
    return make_record(
        {"loss": (("time",), sum(drops))}, {"time": time}, attributes={"scale": float(np.exp(-log_inverse_scale))}
    )


@pytest.fixture
def printed(capsys, monkeypatch):
    """What was printed where headers need not wrap, each run of blanks as one."""
    monkeypatch.setenv("COLUMNS", "120")

    def read() -> str:
        said = capsys.readouterr()
        assert said.err == ""
        return " ".join(said.out.split())

    return read


def test_a_prediction_shows_times_and_levels(printed):
    print_staircase(Prediction.of(staircase(reasons=("", ""))))
    said = printed()
    assert "a theory" in said
    assert "1 learns [x1] 10 1" in said
    assert "2 learns x2 30 0" in said
    assert "observed" not in said
    assert "agree" not in said


def test_a_check_shows_both_sides_the_error_and_the_verdict(printed):
    print_staircase(compare(run(), staircase(reasons=("", ""))))
    said = printed()
    assert re.search(r"2 learns x2 30 30 [+-]0\.0 % 0 ", said)
    assert "Tolerance for the jump times: 12 %." in said
    assert HEADINGS["agree"] in said
    assert "slope" not in said


def test_different_tolerances_of_the_times_are_a_range(printed):
    theory = staircase(reasons=("", "")).assign(jump_time_uncertainty=("jump", [0.05, 0.2]))
    print_staircase(compare(run(), theory))
    assert re.search(r"Tolerances for the jump times: 5 to 20 %\.", printed())


def test_slopes_are_shown_when_a_second_scale_was_run(printed):
    tree = compare(run(), staircase(reasons=("", "")), at_other_scale=run(log_inverse_scale=15.0))
    print_staircase(tree)
    said = printed()
    assert "slope" in said.split("──")[0]
    assert HEADINGS["agree"] in said


def test_a_disagreement_says_what_disagrees(printed):
    print_staircase(compare(run(last=50.0), staircase(reasons=("", ""))))
    said = printed()
    assert HEADINGS["disagree"] in said
    assert re.search(r"0\.4 .*0\.12\)", said)


def test_a_jump_that_was_never_seen_has_dashes_and_no_nan(printed):
    never = run()
    never["loss"] = never["loss"] + 0.7
    print_staircase(compare(never, staircase(reasons=("", ""))))
    said = printed()
    assert "nan" not in said
    assert "– – 0 –" in said


def test_slow_jumps_are_starred_and_explained_where_they_are_not_judged(printed):
    tree = compare(run(last=50.0), staircase())
    print_staircase(tree)
    said = printed()
    assert "2 * learns x2" in said
    assert "a plateau of [1.0] times" in said


def test_warnings_of_the_theory_are_printed_for_predictions_and_for_studies(printed):
    predicted = staircase(reasons=("", ""), warnings=["two inputs are [equal]"])
    print_staircase(Prediction.of(predicted))
    assert "two inputs are [equal]" in printed()
    print_agreement(REFERENCE, compare(run(), predicted))
    assert "two inputs are [equal]" in printed()


def test_a_study_shows_claim_quantities_tolerances_and_verdict(printed):
    print_agreement(REFERENCE, compare(run(), staircase(reasons=("", ""))))
    said = printed()
    assert said.startswith("Curves [rise] slowly.")
    assert "0.12 yes b" in said
    assert said.count(" yes ") == 5


def test_a_study_says_no_and_not_judged(printed):
    print_agreement(REFERENCE, compare(run(last=50.0), staircase(reasons=("", ""))))
    assert "0.12 no" in printed()
    print_agreement(REFERENCE, compare(run(), staircase(reasons=("slow", "slow"))))
    assert "– 0.12 not scored" in printed()


def test_a_curve_without_a_staircase_has_no_warnings_to_print(printed):
    curve = make_record({"loss": (("time",), [1.0, 0.5])}, {"time": [0.0, 1.0]})
    print_agreement(REFERENCE, compare(curve, curve))
    assert "Warning" not in printed()


def test_equal_reasons_are_said_once(printed):
    same = make_record({"loss": (("time",), [1.0, 0.5])}, {"time": [0.0, 1.0]})
    print_agreement(REFERENCE, compare(same, same))
    said = printed()
    assert said.count("one percent") == 1


def test_the_largest_error_of_a_curve_stands_in_the_row_of_the_curve(printed):
    predicted = make_record({"loss": (("time",), [1.0, 0.5])}, {"time": [0.0, 1.0]})
    observed = make_record({"loss": (("time",), [1.0, 0.51])}, {"time": [0.0, 1.0]})
    print_agreement(REFERENCE, compare(observed, predicted, tolerance={"loss_maximum": 0.2}))
    said = printed()
    assert "loss 0.0089 0.01 0.01 yes" in said
    assert "0.2 largest" in said
    assert "maximum" not in said


@pytest.mark.parametrize("length", [1, 40])
def test_long_names_are_wrapped_and_never_cut(printed, length):
    names = [f"feature{i:03d}" for i in range(length)]
    print_staircase(Prediction.of(staircase(learned=(f"learns {', '.join(names)}", ""), reasons=("", ""))))
    said = printed()
    assert all(name in said for name in names)
    assert "…" not in said


def test_a_pipe_gets_plain_text(capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "80")
    print_staircase(compare(run(), staircase()))
    print_agreement(REFERENCE, compare(run(), staircase()))
    said = capsys.readouterr().out
    assert "\x1b" not in said
    assert max(map(len, said.splitlines())) <= 80


@pytest.mark.parametrize("width", [60, 80])
def test_nothing_is_wider_than_the_terminal_even_where_slopes_were_measured(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    long = staircase(learned=("learns " + "one two three, " * 9, "learns x2"), reasons=("", "a long reason, " * 9))
    print_staircase(compare(run(), long, at_other_scale=run(log_inverse_scale=15.0)))
    print_agreement(REFERENCE, compare(run(), long))
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= width
    assert "jump 1: learns one two three" in said


def test_claims_that_decide_are_told_with_their_outcomes_and_what_was_measured(printed):
    claims = [
        Claim("A", "Few neurons [are] enough.", 6, most=8),
        Claim("B", "The mean is above zero.", 0.5, -1, 2, least=0),
        Claim("C", "It is only reported.", 3, most=2),
        Claim("D", "The median is above zero.", 5, 1, np.inf, least=0),
    ]
    said = report_claims(claims)
    coordinates = {"time": [0.0, 1.0], "hypothesis": said.pop("hypothesis")[1]}
    curve = make_record({"loss": (("time",), [1.0, 0.5]), **said}, coordinates)
    print_agreement(REFERENCE, compare(curve, curve, claims=["A", "B", "D"]))
    told = printed()
    assert "Holds: Few neurons [are] enough (6)." in told
    assert re.search(r"Undecided: The mean is above zero \(0\.5; .*−1 .*2.* 0\)", told)
    assert "Holds: The median is above zero (5, 1 to ∞)." in told
    assert "only reported" not in told
