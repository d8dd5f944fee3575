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


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4), st.floats(0.1, 100), st.floats(-50, 50))
def test_it_scales_and_shifts_with_the_steps(seed, hold, factor, shift):
    train, test = np.random.default_rng(seed).uniform(size=(2, 30))
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
