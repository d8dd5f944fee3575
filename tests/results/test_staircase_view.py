from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

from dynascope.results import StaircaseView, make_record
from dynascope.results.staircase import staircase_residual
from dynascope.results.staircase_view import is_staircase

TIMES, LEVELS = np.array([10.0, 30.0]), np.array([4.0, 1.0, 0.0])


def staircase(*, seeds: int = 0, attributes: dict | None = None, **more) -> xr.Dataset:
    lead = ["seed"] if seeds else []
    repeat = (lambda values: np.stack([values * (1 + k) for k in range(seeds)])) if seeds else np.asarray
    return make_record(
        {
            "jump_time": ([*lead, "jump"], repeat(TIMES)),
            "loss_before": ([*lead, "jump"], repeat(LEVELS[:-1])),
            "loss_after": ([*lead, "jump"], repeat(LEVELS[1:])),
            **{name: ([*lead, "jump"], np.asarray(values)) for name, values in more.items()},
        },
        {"jump": [1, 2], **({"seed": np.arange(seeds)} if seeds else {})},
        attributes=attributes,
    )


def found(predicted: xr.Dataset, **slopes) -> xr.Dataset:
    return staircase_residual(
        predicted,
        times=np.array([11.0, np.nan]),
        time_errors=np.array([-1 / 11, np.nan]),
        levels=np.array([4.0, 1.1, np.nan]),
        level_errors=np.array([-0.025, np.nan]),
        status=["judged", "not due"],
        **slopes,
    )


def test_what_a_record_does_not_hold_is_empty_and_nothing_is_slow():
    first = StaircaseView(staircase()).rows[0]
    assert (first.number, first.time, first.loss_before, first.loss_after) == (1, 10.0, 4.0, 1.0)
    assert (first.learned, first.slow, first.reason, first.seen) == ("", False, "", None)
    assert np.isnan(first.accelerated_time)
    assert StaircaseView(staircase()).slow.tolist() == [False, False]


def test_a_row_is_plain_values():
    record = staircase(accelerated_time=[1.0, 3.0], learned=["a", "b"], slow=[False, True], reason=["", "late"])
    second = StaircaseView(record, found(record, slopes=np.array([1.0, 2.0]))).rows[1]
    assert (second.accelerated_time, second.learned, second.slow, second.reason) == (3.0, "b", True, "late")
    assert [type(value) for value in (second.number, second.time, second.slow)] == [int, float, bool]
    assert second.seen is not None
    assert second.seen.slope == 2.0
    assert np.isnan(second.seen.time)


def test_what_was_seen_stands_beside_the_jump_of_its_number():
    record = staircase()
    last = found(record).isel(jump=[1, 0])
    first, second = StaircaseView(record, last).rows
    assert first.seen is not None
    assert second.seen is not None
    assert (first.seen.time, first.seen.loss_before, first.seen.loss_after) == (11.0, 4.0, 1.1)
    assert first.seen.slope is None
    assert np.isnan(second.seen.time)


def test_a_residual_of_something_else_says_nothing_of_jumps():
    curves = xr.Dataset({"loss_residual": (["time"], [0.0, 0.1])}, {"time": [0.0, 1.0]})
    assert [jump.seen for jump in StaircaseView(staircase(), curves).rows] == [None, None]


def test_rows_of_an_ensemble_are_medians_and_its_members_are_staircases():
    words = np.array([["a", "b"], ["c", "d"], ["e", "f"]])
    view = StaircaseView(staircase(seeds=3, learned=words, slow=[[False, False], [False, True], [False, False]]))
    assert [jump.time for jump in view.rows] == [20.0, 60.0]
    assert [(jump.learned, jump.slow) for jump in view.rows] == [("a", False), ("b", True)]
    members = list(view.members())
    np.testing.assert_array_equal([member.times for member in members], np.outer([1, 2, 3], TIMES))
    np.testing.assert_array_equal(members[1].levels, 2 * LEVELS)


def test_levels_begin_at_the_initial_loss_even_without_a_jump():
    np.testing.assert_array_equal(StaircaseView(staircase()).levels, LEVELS)
    empty = staircase(attributes={"initial_loss": 0.7}).isel(jump=slice(0))
    np.testing.assert_array_equal(StaircaseView(empty).levels, [0.7])
    assert StaircaseView(empty).rows == []


@pytest.mark.parametrize(
    ("attributes", "exponential", "unit"),
    [
        ({}, True, np.log(1e2)),
        ({"degree": 3}, False, 1e2),
        ({"degree": 3, "normalised": True}, True, np.log(1e2)),
    ],
)
def test_the_clock_is_that_of_the_degree_and_the_flow(attributes, exponential, unit):
    view = StaircaseView(staircase(attributes={**attributes, "scale": 1e-2}))
    assert view.exponential == exponential
    assert view.unit() == view.unit(1e-2) == pytest.approx(unit, rel=1e-15)


def test_a_staircase_has_times_and_levels():
    assert is_staircase(staircase())
    assert not is_staircase(staircase().drop_vars("loss_after"))


def test_jumps_of_less_than_a_thousandth_are_gathered_in_a_sentence_unless_there_is_one_only():
    losses = {"loss_before": [4.0, 1.0, 0.997, 0.994], "loss_after": [1.0, 0.997, 0.994, 0.991]}
    times = {"jump_time": (["jump"], [1.0, 2.0, 3.0, 4.0])}
    record = make_record(times | {name: (["jump"], each) for name, each in losses.items()}, {"jump": [1, 2, 3, 4]})
    assert [row.number for row in StaircaseView(record).shown] == [1]
    assert re.findall(r"[\d.]*\d", StaircaseView(record).gathered) == ["3", "0.23"]
    assert len(StaircaseView(record).rows) == 4
    for all_of_it in (record.isel(jump=slice(2)), record.assign_attrs(smallest_jump=1e-4)):
        view = StaircaseView(all_of_it)
        assert view.shown == view.rows
        assert view.gathered == ""


def test_draws_of_the_weights_are_counted():
    record = staircase().assign(
        seed_jump_time=(("seed", "jump"), [[10.0, 30.0], [12.0, np.nan], [17.0, 31.0]]),
        seed_learned=(("seed", "jump"), [["age", "size"], ["size", ""], ["age", "size"]]),
    )
    first, second = StaircaseView(record).over_seeds
    assert first == (1, 3, 12.0, 10.0, 17.0, {"age": 2, "size": 1})
    assert second == (2, 2, 30.5, 30.0, 31.0, {"size": 2})
    assert StaircaseView(record).seeds == 3
    assert StaircaseView(staircase()).over_seeds == []
