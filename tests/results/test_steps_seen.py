from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from staircase_curves import LEVELS, TIMES, staircase

from dynascope.results.steps_seen import crossing_times, resting_levels, seen_steps


def test_crossing_is_interpolated_between_samples():
    time, loss = np.array([0.0, 1.0, 3.0]), np.array([4.0, 2.0, 1.0])
    np.testing.assert_allclose(crossing_times(time, loss, np.array([3.0, 2.0, 1.5])), [0.5, 1.0, 2.0])


def test_crossing_is_the_first_one():
    time, loss = np.arange(5.0), np.array([2.0, 0.0, 2.0, 0.0, 2.0])
    np.testing.assert_allclose(crossing_times(time, loss, np.array([1.0])), [0.5])


def test_curve_that_starts_below_crosses_at_its_start():
    assert crossing_times(np.array([3.0, 4.0]), np.array([1.0, 0.0]), np.array([2.0])).tolist() == [3.0]


def test_value_that_is_only_touched_is_not_crossed():
    crossings = crossing_times(np.arange(3.0), np.array([2.0, 1.0, 1.0]), np.array([1.0, 0.0]))
    assert np.isnan(crossings).all()


@given(
    st.lists(st.floats(0.05, 1.0), min_size=1, max_size=6),
    st.lists(st.floats(12.0, 40.0), min_size=6, max_size=6),
    st.floats(0.0, 1.0),
)
def test_plateaus_between_separate_drops_are_found(drops, gaps, floor):
    levels = floor + np.append(np.cumsum(drops[::-1])[::-1], 0.0)
    times = np.cumsum(gaps[: len(drops)])
    found = resting_levels(*staircase(times, levels, rate=2.0, end=times[-1] + 10))
    assert len(found) == len(drops) - 1
    for (level, drop), k in zip(found, range(1, len(drops)), strict=True):
        # Twelve e-folds and more after a drop, and before the next.
        np.testing.assert_allclose(level, levels[k], atol=1e-3)
        np.testing.assert_allclose(drop, min(drops[k - 1], drops[k]), atol=2e-3)


def test_curves_without_a_pause_have_no_plateau():
    time = np.linspace(0, 10, 500)
    assert resting_levels(time, np.exp(-time)) == []
    assert resting_levels(time, np.ones(500)) == []
    assert resting_levels(time, 1 / (1 + np.exp(time - 5))) == []
    # Two drops a factor of two apart in rate, without a pause between them.
    assert resting_levels(time, np.exp(-time) + np.exp(-2 * time)) == []


def test_depth_decides_what_is_a_plateau():
    time, loss = staircase([10.0, 12.0], np.array([2.0, 1.0, 0.0]), rate=3.0, end=30.0)
    # Halfway between the drops the descent is 2.8 times slower than at them.
    assert resting_levels(time, loss, depth=3.0) == []
    assert len(resting_levels(time, loss, depth=2.5)) == 1


def test_round_off_on_a_plateau_is_not_a_drop():
    time, loss = staircase()
    noise = np.random.default_rng(0).uniform(-1, 1, size=len(loss)) * 1e-16
    assert len(resting_levels(time, loss + noise)) == 2


def test_each_plateau_is_read_midway_to_the_next_jump_and_the_last_where_the_curve_ends():
    found = seen_steps(*staircase(), LEVELS)
    np.testing.assert_allclose(found.times, TIMES, rtol=1e-3)
    np.testing.assert_allclose(found.ends, [20.0, 45.0, 90.0], rtol=1e-3)
    np.testing.assert_allclose(found.levels, LEVELS[1:], rtol=1e-9)


def test_a_jump_that_a_curve_does_not_show_has_neither_time_nor_level():
    found = seen_steps(*staircase(end=40.0), LEVELS)
    assert np.isnan(found.times).tolist() == np.isnan(found.levels).tolist() == [False, False, True]
    assert found.ends.tolist()[1:] == [40.0, 40.0]


def test_without_plateaus_nothing_is_seen():
    assert [len(each) for each in seen_steps(*staircase(), LEVELS[:1])] == [0, 0, 0]
