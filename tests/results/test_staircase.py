from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.results import Staircase, StaircaseView, staircase_record, training_time
from dynascope.results.staircase import slopes_between, with_slow_jumps, with_tolerances

SCALE = np.exp(-10.0)
TASK = SimpleNamespace(attributes=lambda: {"task": "an example"}, feature_names=("age", "mass"))


def steps(**changes) -> Staircase:
    given = {
        "accelerated_times": np.array([1.0, 3.0]),
        "times": np.array([10.0, 30.0]),
        "levels": np.array([4.0, 1.0, 0.0]),
        "learned": ("one", "two"),
        "slow": ("", "it is late"),
        "features": {"coefficient": (("jump", "feature"), np.eye(2)), "weights": (("jump", "weight"), np.ones((2, 3)))},
        "theory": "a theory",
        "reference": "a paper",
    }
    return Staircase(**{**given, **changes})


def record(scale=SCALE, **changes):
    return staircase_record(steps(**changes), TASK, scale=float(scale), network="linear")


def test_a_record_holds_all_that_the_theory_said():
    view = StaircaseView(record(warnings=("careful",), degree=3, normalised=True))
    assert [(jump.time, jump.accelerated_time, jump.learned) for jump in view.rows] == [
        (10.0, 1.0, "one"),
        (30.0, 3.0, "two"),
    ]
    np.testing.assert_array_equal(view.levels, [4.0, 1.0, 0.0])
    assert [(jump.slow, jump.reason) for jump in view.rows] == [(False, ""), (True, "it is late")]
    said = view.record.attrs
    assert (said["theory"], said["reference"], said["network"]) == ("a theory", "a paper", "linear")
    assert (said["degree"], said["normalised"], said["initial_loss"]) == (3, 1, 4.0)
    assert said["warnings"] == ["careful"]
    assert said["task"] == "an example"


def test_dimensions_are_labelled_by_the_task_where_it_has_names_for_them():
    found = record()
    assert found["feature"].to_numpy().tolist() == ["age", "mass"]
    assert found["weight"].to_numpy().tolist() == [0, 1, 2]


def test_tolerances_are_attributes_with_their_reasons_and_absent_if_not_said():
    assert not [name for name in record().attrs if "tolerance" in name]
    told = with_tolerances(record(), jump_time=(0.1, "so"))
    told = with_tolerances(told, slope=(0.2, "thus"))
    assert {name: value for name, value in told.attrs.items() if "tolerance" in name} == {
        "jump_time_tolerance": 0.1,
        "jump_time_tolerance_reason": "so",
        "slope_tolerance": 0.2,
        "slope_tolerance_reason": "thus",
    }


def test_a_jump_with_a_reason_is_slow():
    marked = StaircaseView(with_slow_jumps(record(), ["early", ""]))
    assert [(jump.slow, jump.reason) for jump in marked.rows] == [(True, "early"), (False, "")]


def test_slopes_between_two_scales_leave_out_what_does_not_grow():
    offset = np.array([2.0, 7.0])
    here, there = (
        record(np.exp(-units), times=units * np.array([1.0, 3.0]) + offset, accelerated_times=np.zeros(2))
        for units in (10.0, 25.0)
    )
    # The difference of times of order 100 over 15, to round-off.
    np.testing.assert_allclose(StaircaseView(slopes_between(here, there)).accelerated_times, [1.0, 3.0], rtol=1e-14)


def test_training_lasts_a_quarter_beyond_the_last_jump_at_the_scale_of_the_training():
    # 30 at the scale of the prediction; each e-fold more of scale moves the last jump by 3.
    assert training_time(record(), SCALE) == pytest.approx(30 * (1.25 + 2 / 10), rel=1e-12)
    assert training_time(record(), np.exp(-20.0)) == pytest.approx(60 * (1.25 + 2 / 20), rel=1e-12)


def test_training_of_what_is_learned_from_the_start_lasts_as_long_as_that_takes_to_grow():
    at_once = record(times=np.zeros(2), accelerated_times=np.array([1.0, 3.0]))
    assert training_time(at_once, SCALE) == pytest.approx(3 * (1.25 + 2 / 10), rel=1e-12)


def test_training_for_a_staircase_that_was_cut_short_stops_before_what_follows():
    cut = record(slow=("", "")).assign_attrs(complete=0)
    assert training_time(cut, SCALE) == pytest.approx(30 * (1.1 + 2 / 10), rel=1e-12)
    # Unless the last jump is slow, which may come much later.
    late = record().assign_attrs(complete=0)
    assert training_time(late, SCALE) == pytest.approx(30 * (1.5 + 2 / 10), rel=1e-12)


def test_a_staircase_without_jumps_does_not_say_how_long_to_train():
    with pytest.raises(InputError, match="no jumps") as caught:
        training_time(record().isel(jump=slice(0)), SCALE)
    assert caught.value.argument == "staircase"
