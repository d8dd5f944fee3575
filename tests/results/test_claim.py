"""A claim holds, does not hold, or is undecided, by where the interval of the measured value lies."""

import dataclasses
import math
import re

import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from dynascope.comparison import Hypothesis, compare, report_claims
from dynascope.comparison.effect import report_runs
from dynascope.errors import InputError
from dynascope.results import Claim, Observation, from_tree, load, make_record
from dynascope.results.claim import reported_claims
from dynascope.results.tree import to_tree

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


# Claims of records.

MANY = (
    Claim("A", "It is small.", 1.0, most=2.0),
    Claim("B", "It is large.", 1.0, 0.0, 3.0, least=2.0),
    Claim("C", "It is near one.", 4.0, 3.0, 5.0, least=0.9, most=1.1),
    Claim("D", "It is large.", 3.0, least=2.0).if_known(False, "it did not learn"),
)


def comparison_of(*claims: Claim):
    time = {"time": [0.0, 1.0]}
    curve = make_record({"loss": (["time"], [1.0, 0.5])}, time)
    return compare(
        curve.assign(report_claims(claims)),
        curve,
        checks=["loss", "loss_maximum"],
        claims=[each.name for each in claims[:2]],
    )


def test_claims_come_back_from_a_record_and_from_a_file(tmp_path):
    result = comparison_of(*MANY)
    assert list(result.claims) == ["A", "B", "C", "D"]
    for claim, found in zip(MANY, result.claims.values(), strict=True):
        assert (found.outcome, found.why_undecided) == (claim.outcome, claim.why_undecided)
        expected = dataclasses.replace(claim, decides=claim.name in "AB", unknown=found.unknown)
        assert found == expected
    assert load(result.save(tmp_path / "a.zarr.zip")).claims == result.claims
    alone = Observation.of(result.observed).claims
    assert alone == {name: dataclasses.replace(each, decides=False) for name, each in result.claims.items()}


@pytest.mark.parametrize("direction", [1, 0, -1])
@pytest.mark.parametrize("median", [False, True])
@pytest.mark.parametrize(
    "trends",
    [
        [1.0] * 6,
        [-1.0, -1.5, -2.0, -1.0, -1.2, -1.1],
        [1.0, -1.0, 2.0, -2.0, 0.5, 0.1],
        [0.0] * 6,  # an interval without width at zero
        [0.0, 0.0, 1.0, 1.0, 1.0, 1.0],  # an interval of the median that ends at zero
        [3.0],
        [1.0, 2.0],
    ],
)
def test_an_effect_has_the_outcome_of_its_claim(direction, median, trends):
    hypothesis = Hypothesis("hidden_width", "kappa_cka", direction, "H1", "It changes.", median=median)
    runs = [[0.0] * len(trends), trends]
    record, effect = xr.Dataset(report_runs([(hypothesis, runs)])), hypothesis.compare(runs)
    claim = reported_claims(record)["H1"]
    assert (claim.outcome, claim.why_undecided) == (effect.holds, effect.why_undecided)
    assert (claim.value, *claim.interval) == effect[:3]
    assert claim.factor == "hidden width"
    assert claim.expected == {1: "rises", 0: "stays", -1: "falls"}[direction]


@pytest.mark.parametrize("claims", [{"A": "holds", "Z": "holds"}, {"A": "does not hold"}])
def test_stored_claims_must_be_those_of_the_observed_record(claims):
    tree = to_tree(comparison_of(*MANY))
    tree.attrs["claims"] = claims
    with pytest.raises(InputError) as refused:
        from_tree(tree)
    assert refused.value.argument == "claims"


@pytest.mark.parametrize("change", [{"holds": "does not hold"}, {"low": 0.0, "high": 3.0}])
def test_an_outcome_that_contradicts_its_interval_is_rejected(change):
    record = xr.Dataset(report_claims(MANY[:1]))
    with pytest.raises(InputError) as refused:
        reported_claims(record.assign({name: ("hypothesis", [value]) for name, value in change.items()}))
    assert refused.value.argument == "holds"


def test_two_claims_of_one_name_are_rejected():
    with pytest.raises(InputError, match="same name"):
        reported_claims(xr.Dataset(report_claims([MANY[0], MANY[0]])))


def test_without_quantities_the_table_has_a_row_for_each_claim():
    table = comparison_of(*MANY).to_dataframe()
    assert table["outcome"].to_dict() == {each.name: each.outcome for each in MANY}
    assert table["value"].tolist() == [1.0, 1.0, 4.0, 3.0]
    assert table["decides"].tolist() == [True, True, False, False]
    assert table.loc["D", "reason"] == "it did not learn"


@pytest.mark.parametrize(("metric", "units"), [("delay", "optimiser steps"), ("accuracy", "")])
def test_an_effect_has_the_units_of_its_quantity(metric, units):
    effects = report_runs([(Hypothesis("width", metric, -1, "H1", "It falls."), [[3.0, 3.1], [2.0, 2.1]])])
    named = {metric: (("step",), [1.0, 2.0], {"long_name": metric, "units": units or "1"})}
    assert reported_claims(xr.Dataset({**effects, **named}))["H1"].units == units
