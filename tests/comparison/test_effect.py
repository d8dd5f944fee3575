import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.comparison.effect import Hypothesis, report_effects
from dynascope.errors import InputError


def claim(direction=1):
    return Hypothesis("width", "kappa_cka", direction)


def test_the_change_of_a_straight_line_is_its_whole_rise():
    runs = np.array([1.0, 3.0, 5.0, 7.0])[:, None] + np.array([0.0, 0.1, -0.1])
    effect = claim().compare(runs)
    assert effect.change == pytest.approx(6.0)
    # The same offsets at all levels: the trend of each seed is the same, and the interval has no width.
    assert (effect.low, effect.high) == pytest.approx((6.0, 6.0))
    assert effect.size == pytest.approx(6.0 / 0.1)
    assert (effect.sign, effect.holds) == (1, "holds")


def test_a_median_is_known_where_a_run_never_ends():
    first, last = np.array([10.0, 11, 12, 13, 14, 15]), np.array([20.0, 12, 30, np.inf, 500, 16])
    effect = dataclasses.replace(claim(), median=True).compare([first, last])
    assert (effect.change, effect.low, effect.high) == (14.0, 1.0, np.inf)
    assert (effect.sign, effect.holds) == (1, "holds")
    # Among three levels the middle one says nothing of a trend; and a run that falls leaves it open.
    more = dataclasses.replace(claim(-1), median=True)
    assert more.compare([first, np.full(6, np.inf), last]).holds == "does not hold"
    assert more.compare([first, [20.0, 12, 30, np.inf, 500, 14]]).holds == "undecided"
    # Of five runs the median is not known with 95 %.
    assert more.compare([first[:5], last[:5]]).holds == "undecided"


def test_a_median_of_what_is_nowhere_known_is_refused():
    with pytest.raises(InputError, match="trend is undefined for 1 of"):
        dataclasses.replace(claim(), median=True).compare([[1.0, np.inf], [2.0, np.inf]])
    with pytest.raises(InputError, match="not finite"):
        claim().compare([[1.0, 2.0], [2.0, np.inf]])


def test_seeds_that_are_not_paired_leave_the_interval_open():
    runs = np.array([0.0, 1.0])[:, None] + np.array([-5.0, 0.0, 5.0])
    assert claim().compare(runs).holds == "holds"
    assert claim().compare(runs, paired=False).holds == "undecided"


def test_the_direction_only_names_the_outcome():
    runs = np.array([[1.0, 1.1, 0.9], [2.0, 2.2, 2.1]])
    effects = [claim(direction).compare(runs) for direction in (1, 0, -1)]
    assert [effect.holds for effect in effects] == ["holds", "does not hold", "does not hold"]
    assert len({effect[:5] for effect in effects}) == 1


@pytest.mark.parametrize("levels", [2, 4])
@pytest.mark.parametrize("runs", [2, 3, 4, 8])
def test_the_interval_covers_the_truth_as_often_as_it_says(levels, runs):
    draw, trials = np.random.default_rng(0), 600
    # Runs of one seed are alike, and levels differ in how much runs spread.
    drawn = draw.normal(size=(trials, 1, runs)) + np.linspace(0.5, 2, levels)[:, None] * draw.normal(
        size=(trials, levels, runs)
    )
    truth = 0.5 * (levels - 1)
    effects = [claim().compare(each + 0.5 * np.arange(levels)[:, None]) for each in drawn]
    covered = sum(effect.low <= truth <= effect.high for effect in effects)
    # Three deviations of the binomial law, which are 5.3 each.
    assert abs(covered - 570) < 16


@pytest.mark.parametrize("runs", [2, 4])
def test_the_interval_of_runs_that_are_not_paired_covers_the_truth_at_least_as_often(runs):
    drawn = np.random.default_rng(0).normal(size=(600, 3, runs)) * np.array([[0.2], [1.0], [1.0]])
    effects = [claim().compare(each, paired=False) for each in drawn]
    assert sum(effect.low <= 0 <= effect.high for effect in effects) > 554


def test_one_run_is_always_undecided():
    for direction in (-1, 0, 1):
        for paired in (True, False):
            effect = claim(direction).compare([[1.0], [5.0], [9.0]], paired=paired)
            assert (effect.change, effect.sign, effect.holds) == (8.0, 0, "undecided")
            assert (effect.low, effect.high) == (-np.inf, np.inf)


def test_two_runs_without_an_effect_are_found_to_have_one_no_more_often_than_said():
    drawn = np.random.default_rng(0).normal(size=(2000, 3, 2))
    found = sum(claim().compare(each).holds != "undecided" for each in drawn)
    # 5 % of 2000 with three deviations of 10.
    assert 70 < found < 130


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.floats(0.1, 10), st.floats(-5, 5))
def test_units_of_the_metric_do_not_matter(seed, unit, origin):
    runs = np.random.default_rng(seed).normal(size=(3, 4))
    plain, moved = claim().compare(runs), claim().compare(origin + unit * runs)
    assert moved.change == pytest.approx(unit * plain.change, abs=1e-9)
    assert moved.size == pytest.approx(plain.size, rel=1e-6)
    flipped = claim().compare(-runs)
    assert (flipped.low, flipped.high) == pytest.approx((-plain.high, -plain.low))


@pytest.mark.parametrize(
    ("runs", "fields", "argument"),
    [
        ([[1.0, 2.0]], {}, "runs"),
        (np.zeros((2, 0)), {}, "runs"),
        ([[1.0, np.nan], [2.0, 3.0]], {}, "runs"),
        ([[1.0, 2.0], [2.0, 3.0]], {"confidence": 1.0}, "confidence"),
    ],
)
def test_bad_input_is_named(runs, fields, argument):
    with pytest.raises(InputError) as error:
        claim().compare(runs, **fields)
    assert error.value.argument == argument


def test_a_direction_is_one_of_three():
    with pytest.raises(InputError, match="direction"):
        claim(2)


def test_a_report_has_the_claims_beside_their_effects():
    claims = [Hypothesis("width", "kappa_cka", 1, "H1", "It grows."), Hypothesis("depth", "loss", -1, "H2")]
    effects = [each.compare([[1.0, 1.1], [2.0, 2.11]]) for each in claims]
    report = report_effects(claims, effects)
    assert {dimensions for dimensions, _ in report.values()} == {("hypothesis",)}
    assert report["factor"][1].tolist() == ["width", "depth"]
    assert report["holds"][1].tolist() == ["holds", "does not hold"]
    assert report["change"][1] == pytest.approx([1.005, 1.005])
