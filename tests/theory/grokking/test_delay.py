from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.grokking import grokking_delay

STEPS = [0, 50, 100, 150, 200, 250]
LATE = [0.1, 0.2, 0.95, 0.5, 0.92, 0.97]
FITTED = [0.2, 1.0, 1.0, 1.0, 1.0, 1.0]


def test_the_delay_is_that_between_the_first_records_at_the_thresholds():
    found = grokking_delay(STEPS, FITTED, LATE)
    assert (found.train_step, found.test_step, found.delay, found.resolution) == (50, 100, 50, 50)
    assert found.decades == pytest.approx(np.log10(2))
    assert (found.train_threshold, found.test_threshold, found.hold) == (0.99, 0.9, 1)


def test_a_threshold_has_to_hold():
    assert grokking_delay(STEPS, FITTED, LATE, hold=2).test_step == 200
    assert grokking_delay(STEPS, FITTED, LATE, hold=3).delay is None


def test_a_threshold_itself_counts_as_reached():
    assert grokking_delay(STEPS, FITTED, LATE, test_threshold=0.97).test_step == 250


def test_a_threshold_that_is_never_reached_leaves_the_delay_unknown():
    found = grokking_delay(STEPS, FITTED, LATE, test_threshold=0.98)
    assert (found.train_step, found.test_step, found.delay, found.decades) == (50, None, None, None)


def test_a_threshold_that_is_never_reached_is_recorded_as_reached_at_the_last_step():
    late = grokking_delay(STEPS, FITTED, LATE).recorded(STEPS[-1])
    assert (late["train_step"], late["test_step"], late["delay"], late["delay_resolution"]) == (50, 100, 50, 50)
    assert (late["fitted"], late["generalised"]) == (True, True)
    never = grokking_delay(STEPS, FITTED, LATE, test_threshold=0.98).recorded(STEPS[-1])
    assert (never["train_step"], never["test_step"], never["delay"]) == (50, 250, 200)
    assert (never["fitted"], never["generalised"]) == (True, False)


def test_the_test_curve_may_be_first():
    found = grokking_delay(STEPS, LATE, FITTED, train_threshold=0.95, test_threshold=0.99)
    assert found.delay == -50
    assert found.decades == pytest.approx(-np.log10(2))


def test_no_ratio_to_the_step_zero_is_made_up():
    found = grokking_delay(STEPS, [1.0] * 6, LATE)
    assert (found.delay, found.decades) == (100, None)


def test_the_resolution_is_the_longest_interval_in_which_a_threshold_was_passed():
    steps = [1, 10, 100, 1000, 2000, 9000]
    assert grokking_delay(steps, FITTED, LATE).resolution == 90
    assert grokking_delay(steps, FITTED, LATE, hold=3).resolution == 7000


LOGGED = np.arange(0, 10_001, 250)
ACCURACY = np.minimum(1, LOGGED / 1000)
TEST_ACCURACY = 0.2 + 0.75 * (LOGGED > 6000)
FALLING = np.exp(-LOGGED / 1000)
TEST_FALLING = np.where(LOGGED > 6000, 0.01, 0.97)


@pytest.mark.parametrize(
    "curves",
    [
        (ACCURACY, TEST_ACCURACY),
        # Weighted means of ones in float32 exceed 1 by rounding.
        (ACCURACY + 1e-7, TEST_ACCURACY),
        # A relative error above 1 makes a negative score.
        (ACCURACY - 3 * (LOGGED == 0), TEST_ACCURACY - 3 * (LOGGED < 3000)),
        (100 * ACCURACY, 100 * TEST_ACCURACY, 99, 90),
    ],
    ids=["fractions", "rounding", "scores below zero", "percent with thresholds in percent"],
)
def test_curves_and_thresholds_in_one_unit_give_the_same_delay(curves):
    found = grokking_delay(LOGGED, *curves)
    assert (found.train_step, found.test_step, found.delay) == (1000, 6250, 5250)


def test_test_accuracy_below_chance_is_no_loss():
    falling = grokking_delay(LOGGED, ACCURACY, np.linspace(0.2, 0.0, len(LOGGED)))
    assert (falling.train_step, falling.test_step, falling.delay) == (1000, None, None)
    # At chance among more than a hundred classes, percentages look like fractions.
    chance = grokking_delay(LOGGED, 100 * ACCURACY, np.full(len(LOGGED), 0.88), 99, 90)
    assert (chance.train_step, chance.test_step, chance.delay) == (1000, None, None)


@pytest.mark.parametrize(
    ("argument", "message", "curves"),
    [
        ("train", "reaches 100, but train_threshold is 0.99", (100 * ACCURACY, 100 * TEST_ACCURACY)),
        ("train", "reaches 100", (100 * ACCURACY, TEST_ACCURACY)),
        ("test", "reaches 95, but test_threshold is 0.9", (ACCURACY, 100 * TEST_ACCURACY)),
        ("test", "reaches 95", (100 * ACCURACY, 100 * TEST_ACCURACY, 99)),
        ("train_threshold", "is 99, but train reaches only 1", (ACCURACY, TEST_ACCURACY, 99, 90)),
        ("test_threshold", "is 90, but test reaches only 0.95", (100 * ACCURACY, TEST_ACCURACY, 99, 90)),
        ("test_threshold", "is 99, but test_threshold is 0.9", (100 * ACCURACY, TEST_ACCURACY, 99, 0.9)),
        ("train", "falls from 1 to .* like a loss", (FALLING, TEST_FALLING)),
        ("train", "falls from 2.3", (2.3 * FALLING, 3 * TEST_FALLING)),
        ("train", "falls from 0.1", (0.1 * FALLING, 0.1 * TEST_FALLING)),
        ("train", "falls from 0.7", (0.7 * np.maximum(FALLING, 0.4), 0.7 * TEST_FALLING)),
        ("train", "falls from 1 to 0", (1 - ACCURACY, 1 - TEST_ACCURACY)),
        ("train", "falls from 5", (5 * FALLING, 5 * TEST_FALLING, 2, 2)),
        ("test", "falls from 0.97", (ACCURACY, TEST_FALLING)),
        ("test", "reaches 13", (ACCURACY, np.where(LOGGED > 6000, 0.01, 3 + LOGGED / 600))),
    ],
)
def test_percentages_and_losses_are_rejected(argument, message, curves):
    with pytest.raises(InputError, match=message) as rejected:
        grokking_delay(LOGGED, *curves)
    assert rejected.value.argument == argument


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0.1, 100), st.floats(-50, 50))
def test_it_scales_and_shifts_with_the_steps(seed, hold, factor, shift):
    train, test = np.random.default_rng(seed).uniform(size=(2, 30))
    train[0] = test[0] = 0.0  # A curve that starts high and ends low counts as a loss.
    steps = np.arange(30.0)
    one = grokking_delay(steps, train, test, 0.5, 0.5, hold)
    other = grokking_delay(factor * steps + shift, train, test, 0.5, 0.5, hold)
    if one.delay is None:
        assert other.delay is None
    else:
        # Rounding of the shift.
        assert other.delay == pytest.approx(factor * one.delay, abs=1e-9)
        start = int(one.test_step or 0)
        assert np.all(test[start : start + hold] >= 0.5)
    assert other.resolution == pytest.approx(factor * one.resolution)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("steps", {"steps": STEPS[::-1]}),
        ("steps", {"steps": [0], "train": [1.0], "test": [1.0]}),
        ("steps", {"hold": 7}),
        ("hold", {"hold": 0}),
        ("train", {"train": [1.0]}),
        ("test", {"test": [np.nan] * 6}),
        ("test_threshold", {"test_threshold": np.nan}),
    ],
)
def test_bad_input_is_refused_by_name(argument, change):
    with pytest.raises(InputError) as refusal:
        grokking_delay(**{"steps": STEPS, "train": FITTED, "test": LATE} | change)
    assert refusal.value.argument == argument
