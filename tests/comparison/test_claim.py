"""A claim holds, does not hold, or is undecided, by where the interval of what was measured lies."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.comparison import Claim, Hypothesis, compare, report_claims
from dynascope.errors import InputError
from dynascope.results import make_record

numbers = st.floats(-1e6, 1e6)


def claim(value, low=None, high=None, **bounds):
    return Claim("C1", "A claim.", value, low, high, **bounds)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [
        (1.0, 2.0, "holds"),
        (1.2, 1.8, "holds"),
        (0.5, 1.5, "undecided"),
        (1.5, 2.5, "undecided"),
        (0.0, 3.0, "undecided"),
        (2.1, 3.0, "does not hold"),
        (-1.0, 0.9, "does not hold"),
        (math.nan, math.nan, "undecided"),
    ],
)
def test_the_interval_decides(low, high, outcome):
    assert claim((low + high) / 2, low, high, least=1.0, most=2.0).outcome == outcome


def test_where_nothing_is_known_no_claim_decides():
    for value in (1.5, 3.0):
        found = claim(value, least=1.0, most=2.0)
        assert found.if_known(True, "it did not learn") == found
        unknown = found.if_known(False, "it did not learn")
        assert (unknown.outcome, unknown.value, unknown.why_undecided) == ("undecided", value, "it did not learn")
        # The first reason stays.
        assert unknown.if_known(False, "it was too short").why_undecided == "it did not learn"


@pytest.mark.parametrize(
    ("arguments", "numbers"),
    [
        ({"value": 1.2, "low": 0.5, "high": 1.5, "least": 1.0}, ["0.5", "1.5", "1"]),
        ({"value": 1.2, "low": 0.5, "high": 1.5, "most": 1.0}, ["0.5", "1.5", "1"]),
        ({"value": 1.2, "low": 0.5, "high": 3.0, "least": 1.0, "most": 2.0}, ["0.5", "3", "1", "2"]),
        ({"value": math.nan, "least": 1.0}, []),
    ],
)
def test_every_undecided_claim_has_a_reason_with_its_numbers(arguments, numbers):
    found = claim(**arguments)
    assert found.outcome == "undecided"
    assert found.why_undecided
    assert re.findall(r"\d+(?:\.\d+)?", found.why_undecided) == numbers


def test_a_claim_that_is_decided_has_no_reason():
    assert [claim(value, most=3).why_undecided for value in (3, 4)] == ["", ""]


def test_a_count_is_known_exactly():
    assert claim(3, most=3).outcome == "holds"
    assert claim(4, most=3).outcome == "does not hold"


def test_of_runs_the_mean_has_the_interval_of_an_effect_against_zero():
    # That one is known to cover as often as it says.
    runs = np.random.default_rng(0).normal(size=5)
    found, effect = Claim.of_runs("C1", "A claim.", runs, most=0), Hypothesis("", "", 1).compare([0 * runs, runs])
    assert (found.value, *found.interval) == pytest.approx((effect.change, effect.low, effect.high))


@pytest.mark.parametrize("runs", [[1.0], [1.0, math.nan]])
def test_runs_that_tell_nothing_of_chance_are_refused(runs):
    with pytest.raises(InputError) as refused:
        Claim.of_runs("C1", "A claim.", runs, most=0)
    assert refused.value.argument == "runs"


@given(numbers, numbers, numbers)
def test_a_wider_interval_never_turns_an_outcome_round(value, less, bound):
    narrow, wide = (claim(value, value - k * abs(less), value + k * abs(less), least=bound) for k in (1, 2))
    assert wide.outcome in (narrow.outcome, "undecided")


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"value": 1.0, "low": 2.0, "high": 3.0, "least": 0.0}, "low"),
        ({"value": 1.0}, "least"),
        ({"value": 1.0, "least": 2.0, "most": 1.0}, "least"),
    ],
)
def test_what_claims_nothing_is_refused(arguments, argument):
    with pytest.raises(InputError) as refused:
        claim(**arguments)
    assert refused.value.argument == argument


# What a comparison makes of them.

TIME = {"time": [0.0, 1.0, 2.0]}
THEORY = make_record({"loss": (["time"], [1.0, 0.5, 0.25])}, TIME)


def compared(*claims, loss=(1.0, 0.5, 0.25), checks=(), judged=None):
    said = report_claims(claims)
    names = said.pop("hypothesis")[1]
    coordinates = {**TIME, "hypothesis": names} if claims else TIME
    run = make_record({"loss": (["time"], list(loss)), **(said if claims else {})}, coordinates)
    return compare(run, THEORY, checks=checks, claims=names.tolist() if judged is None else judged)


HOLDS, FAILS, OPEN, ALSO_OPEN = (
    Claim(name, "It is above zero.", value, value - 1, value + 1, least=0.0)
    for name, value in (("A", 2.0), ("B", -2.0), ("C", 0.0), ("D", 0.5))
)
IDENTITY = ("loss", "loss_maximum")


@pytest.mark.parametrize(
    ("claims", "verdict"),
    [
        ((HOLDS,), "agree"),
        ((HOLDS, OPEN), "agree"),
        ((HOLDS, OPEN, ALSO_OPEN), "undecided"),
        ((FAILS, OPEN, ALSO_OPEN), "disagree"),
        ((OPEN,), "undecided"),
        ((HOLDS, FAILS), "disagree"),
        ((), "undecided"),
    ],
)
def test_where_the_curves_are_identities_the_claims_decide(claims, verdict):
    assert compared(*claims, checks=IDENTITY).verdict.outcome == verdict


def test_curves_that_agree_do_not_outweigh_claims_that_are_mostly_undecided():
    assert compared(HOLDS, OPEN, ALSO_OPEN).verdict.outcome == "undecided"


def test_claims_that_only_are_reported_do_not_count_as_undecided():
    assert compared(HOLDS, OPEN, ALSO_OPEN, judged=["A"]).verdict.outcome == "agree"


def test_claims_that_are_not_judged_decide_nothing():
    assert compared(FAILS, judged=[]).verdict.outcome == "agree"


def test_an_identity_that_fails_leaves_everything_undecided():
    assert compared(HOLDS, loss=(1.0, 0.9, 0.8), checks=IDENTITY).verdict.outcome == "undecided"


def test_identities_and_claims_are_told_apart():
    told = compared(HOLDS, OPEN, checks=IDENTITY)
    assert told.quantities == {}
    assert "loss" in told.checks
    assert told.claims == {"A": "holds", "C": "undecided"}


@pytest.mark.parametrize(("arguments", "argument"), [({"checks": ["lost"]}, "checks"), ({"claims": ["Z"]}, "claims")])
def test_what_is_not_compared_cannot_be_named(arguments, argument):
    run = make_record({"loss": (["time"], np.array([1.0, 0.5, 0.25]))}, TIME)
    with pytest.raises(InputError) as refused:
        compare(run, THEORY, **arguments)
    assert refused.value.argument == argument
