"""Claims about means over runs, and the verdict of a comparison by claims."""

import math

import numpy as np
import pytest

from dynascope.comparison import Claim, Hypothesis, claim_on_mean, compare, report_claims
from dynascope.errors import InputError
from dynascope.results import make_record


def test_the_mean_has_the_interval_of_an_effect_against_zero():
    # That one is known to cover as often as it says.
    runs = np.random.default_rng(0).normal(size=5)
    found, effect = claim_on_mean("C1", "A claim.", runs, most=0), Hypothesis("", "", 1).compare([0 * runs, runs])
    assert (found.value, *found.interval) == pytest.approx((effect.change, effect.low, effect.high))


@pytest.mark.parametrize("runs", [[1.0], [1.0, math.nan]])
def test_runs_that_tell_nothing_of_chance_are_refused(runs):
    with pytest.raises(InputError) as refused:
        claim_on_mean("C1", "A claim.", runs, most=0)
    assert refused.value.argument == "runs"


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
    assert {each.name: each.outcome for each in told.claims.values()} == {"A": "holds", "C": "undecided"}


@pytest.mark.parametrize(("arguments", "argument"), [({"checks": ["lost"]}, "checks"), ({"claims": ["Z"]}, "claims")])
def test_what_is_not_compared_cannot_be_named(arguments, argument):
    run = make_record({"loss": (["time"], np.array([1.0, 0.5, 0.25]))}, TIME)
    with pytest.raises(InputError) as refused:
        compare(run, THEORY, **arguments)
    assert refused.value.argument == argument
