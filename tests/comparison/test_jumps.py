from __future__ import annotations

import numpy as np
import pytest
from staircase_curves import LEVELS, TIMES, staircase

from dynascope.comparison import compare
from dynascope.comparison.jumps import compare_staircases, later_descent
from dynascope.errors import InputError
from dynascope.results import make_record


def observation(scale=1e-20, **changes):
    time, loss = staircase(**changes)
    return make_record({"loss": (["time"], loss)}, {"time": time}, attributes={"scale": scale})


def prediction(times=TIMES, levels=LEVELS, slow=None, scale=1e-20, **more):
    times = np.asarray(times)
    jumps = (["jump"],)
    return make_record(
        {
            "jump_time": (*jumps, times),
            "accelerated_time": (*jumps, times / -np.log(scale)),
            "loss_before": (*jumps, levels[:-1]),
            "loss_after": (*jumps, levels[1:]),
            **({} if slow is None else {"slow": (*jumps, np.array(slow))}),
            **{name: (*jumps, np.array(values)) for name, values in more.items()},
        },
        {"jump": np.arange(1, len(times) + 1)},
        attributes={"scale": scale},
    )


def errors(observed, predicted, at_other_scale=None):
    return compare_staircases(observed, predicted, at_other_scale)[1]


def test_true_pair_has_no_errors():
    residual, found, _ = compare_staircases(observation(), prediction(), None)
    # The tails of the drops, e^(−40) on the plateaus, and linear interpolation between 4000 samples.
    assert found["jump_time"] < 1e-3
    assert found["level"] < 1e-6
    assert (found["missing_jumps"], found["extra_jumps"]) == (0, 0)
    np.testing.assert_allclose(residual["observed_jump_time"], TIMES, atol=0.01)
    np.testing.assert_allclose(residual["predicted_jump_time"], TIMES)
    np.testing.assert_allclose(residual["observed_loss_before"], LEVELS[:-1], atol=1e-6)
    np.testing.assert_allclose(residual["observed_loss_after"], LEVELS[1:], atol=1e-6)


@pytest.mark.parametrize(("last", "complete", "warned"), [(0.0, 1, True), (0.0, 0, False), (0.1, 1, False)])
def test_a_descent_after_the_end_of_the_predicted_curve_is_reported(last, complete, warned):
    time, loss = staircase()
    curve = {"loss": (["time"], loss)}
    predicted = prediction().assign(curve).assign_coords(time=time).assign_attrs(complete=complete)
    later = np.linspace(1.1, 2.0, 50) * time[-1]
    after = np.where(later > 1.5 * time[-1], last, LEVELS[-1])
    observed = make_record({"loss": (["time"], np.append(loss, after))}, {"time": np.append(time, later)})
    assert bool(later_descent(observed, predicted)) == warned
    assert not later_descent(observation(), predicted)


def test_errors_are_predicted_less_observed():
    residual, found, _ = compare_staircases(observation(), prediction(times=1.1 * TIMES, levels=LEVELS + 0.02), None)
    # The middle between plateaus that are too high is passed a little earlier.
    np.testing.assert_allclose(residual["jump_time_error"], 0.1, atol=5e-3)
    np.testing.assert_allclose(residual["level_error"], 0.02 / 2.02, atol=1e-4)
    assert found["jump_time"] == pytest.approx(0.1, abs=5e-3)
    assert found["level"] == pytest.approx(0.02 / 2.02, abs=1e-4)


def test_slow_jumps_are_not_judged():
    late = TIMES * [1.0, 1.5, 1.0]
    assert errors(observation(), prediction(late))["jump_time"] == pytest.approx(0.5, abs=0.01)
    judged = errors(observation(), prediction(late, slow=[False, True, False]))
    assert judged["jump_time"] < 1e-3
    # Nor are the plateaus beside them.
    low = LEVELS + np.array([0, 0.1, 0.1, 0])
    assert errors(observation(), prediction(levels=low, slow=[False, True, False]))["level"] < 1e-6
    assert errors(observation(), prediction(levels=low))["level"] > 0.04
    assert np.isnan(errors(observation(), prediction(slow=[True] * 3))["jump_time"])


def test_plateaus_that_have_no_time_to_settle_are_not_judged():
    low = LEVELS + np.array([0, 0.1, 0, 0])
    # The first plateau is judged ten units of time after its jump.
    assert errors(observation(), prediction(levels=low, settling_time=[5.0, 0.0, 0.0]))["level"] > 0.04
    assert errors(observation(), prediction(levels=low, settling_time=[15.0, 0.0, 0.0]))["level"] < 1e-6
    residual, *_ = compare_staircases(observation(), prediction(settling_time=[15.0, 0.0, 0.0]), None)
    assert residual["settled"].to_numpy().tolist() == [False, True, True]


def test_jump_that_is_due_and_never_reached_is_missing():
    short = observation(end=40.0)
    residual, found, _ = compare_staircases(short, prediction(times=[10.0, 30.0, 35.0]), None)
    assert found["missing_jumps"] == 1
    # What is unknown is no agreement.
    assert found["jump_time"] == np.inf
    assert found["level"] == np.inf
    assert np.isnan(residual["observed_jump_time"][-1])
    assert np.isnan(residual["level_error"][-1])
    assert residual["status"].to_numpy().tolist() == ["judged"] * 3


def test_jump_that_is_not_due_is_not_judged_nor_is_the_plateau_that_may_not_be_reached():
    residual, found, _ = compare_staircases(observation(end=40.0), prediction(), None)
    assert residual["status"].to_numpy().tolist() == ["judged", "judged", "not due"]
    assert found["missing_jumps"] == 0
    assert found["jump_time"] < 1e-3
    assert found["level"] < 1e-6
    # In the middle of the second drop.
    cut = observation(end=30.1)
    assert errors(cut, prediction())["level"] < 1e-6
    # That comes within the time that a jump may be late by.
    assert errors(observation(end=65.0, times=[10.0, 30.0, 70.0]), prediction())["missing_jumps"] == 0
    assert errors(observation(end=69.0, times=[10.0, 30.0, 70.0]), prediction())["missing_jumps"] == 1


def test_slow_jumps_are_never_missing():
    short = observation(end=40.0)
    assert errors(short, prediction(times=[10.0, 30.0, 35.0], slow=[False, False, True]))["missing_jumps"] == 0


def test_another_initial_loss_is_seen_where_all_jumps_are_slow():
    slow = prediction(slow=[True] * 3)
    assert errors(observation(), slow)["initial_loss"] < 1e-6
    assert errors(observation(levels=2 * LEVELS), slow)["initial_loss"] == pytest.approx(1.0)


def test_jumps_that_should_be_far_apart_but_merge_are_missing():
    merged = observation(times=[10.0, 30.0, 30.1])
    assert errors(merged, prediction())["missing_jumps"] == 1
    # Close in the theory too, so that no plateau is expected.
    assert errors(merged, prediction(times=[10.0, 30.0, 31.0]))["missing_jumps"] == 0
    # At a large scale the same accelerated times lie within few e-folds.
    assert errors(merged, prediction(scale=1e-2))["missing_jumps"] == 0
    assert errors(merged, prediction(slow=[False, True, True]))["missing_jumps"] == 0


def test_a_level_that_is_not_scored_has_a_reason():
    early, _, _ = compare_staircases(observation(), prediction(settling_time=[500.0, 500.0, 500.0]), None)
    assert early.attrs["level_unscored"] == (
        "the next jump begins before the loss is flat or the run or the predicted curve ends before the loss is flat"
    )
    wide, _, _ = compare_staircases(observation(), prediction(level_uncertainty=[np.inf] * 3), None)
    assert "exceeds a quarter" in wide.attrs["level_unscored"]
    scored, _, _ = compare_staircases(observation(), prediction(), None)
    assert "level_unscored" not in scored.attrs


def test_plateau_at_no_predicted_level_is_extra():
    halved = observation(times=[10.0, 20.0, 30.0, 60.0], levels=np.array([2.0, 1.6, 1.2, 0.5, 0.1]))
    assert errors(halved, prediction())["extra_jumps"] == 1
    assert errors(halved, prediction(slow=[True, False, False]))["extra_jumps"] == 0


def test_descent_below_the_last_level_is_extra():
    assert errors(observation(), prediction(TIMES[:2], LEVELS[:3]))["extra_jumps"] == 1


@pytest.mark.parametrize(("end", "extra", "level"), [(45.0, 0, 0.0), (90.0, 1, 0.2)])
def test_what_a_run_shows_after_theory_ceased_to_follow_the_loss_is_not_judged(end, extra, level):
    time, loss = staircase(TIMES[:2], LEVELS[:3], end=end)
    known = prediction(TIMES[:2], LEVELS[:3]).drop_vars("loss", errors="ignore")
    found = errors(observation(), known.assign_coords(time=time).assign(loss=("time", loss)))
    assert found["extra_jumps"] == extra
    assert found["level"] == pytest.approx(level, abs=1e-3)


@pytest.mark.parametrize(("complete", "level", "extra"), [(0, False, 0), (1, True, 1)])
def test_where_further_jumps_are_not_known_the_last_level_may_be_left(complete, level, extra):
    first = prediction(times=TIMES[:1], levels=LEVELS[:2]).assign_attrs(complete=complete)
    found = errors(observation(), first)
    assert found["jump_time"] < 1e-3
    # NaN where it is not judged.
    assert (found["level"] > 0.1) == level
    assert (found["missing_jumps"], found["extra_jumps"] > 0) == (0, extra)


def test_a_level_that_is_left_after_a_slow_jump_is_no_extra_one():
    assert errors(observation(), prediction(TIMES[:2], LEVELS[:3], slow=[False, True]))["extra_jumps"] == 0


def test_jump_before_the_first_sample_is_no_division_by_zero():
    below = make_record({"loss": (["time"], [0.4, 0.05, 0.04])}, {"time": [0.0, 1.0, 2.0]})
    assert errors(below, prediction())["jump_time"] == np.inf


def test_slopes_compare_two_scales():
    scales = (1e-20, 1e-40)
    observed, other = (
        observation(scale, times=TIMES * factor, end=180.0) for scale, factor in zip(scales, (1, 2), strict=True)
    )
    residual, found, _ = compare_staircases(observed, prediction(), other)
    np.testing.assert_allclose(residual["slope"], TIMES / np.log(1e20), rtol=1e-3)
    assert found["slope"] < 1e-3
    wrong = prediction(slow=[False, False, True]).assign(accelerated_time=("jump", TIMES * [1, 1.2, 3] / np.log(1e20)))
    residual, found, _ = compare_staircases(observed, wrong, other)
    np.testing.assert_allclose(residual["slope_error"], [0, 0.2, 2], atol=1e-2)
    assert found["slope"] == pytest.approx(0.2, abs=1e-2)


def test_slopes_need_two_scales():
    for other in (observation(), observation().drop_attrs()):
        with pytest.raises(InputError) as caught:
            compare_staircases(observation(), prediction(), other)
        assert caught.value.argument == "at_other_scale"


def test_ensembles_are_refused():
    time, loss = staircase()
    ensemble = make_record({"loss": (["seed", "time"], [loss, loss])}, {"seed": [0, 1], "time": time})
    with pytest.raises(InputError, match="does not contain exactly one loss over time") as caught:
        compare_staircases(ensemble, prediction(), None)
    assert caught.value.argument == "observed"
    assert errors(ensemble.isel(seed=0), prediction())["missing_jumps"] == 0


def test_where_no_jump_is_predicted_a_flat_loss_is_no_error_and_a_fall_is_extra():
    none = prediction().isel(jump=slice(0)).assign_attrs(initial_loss=2.0)
    time = np.linspace(0.0, 10.0, 50)
    flat = make_record({"loss": (["time"], np.full(50, 2.0))}, {"time": time}, attributes={"scale": 1e-20})
    residual, found, _ = compare_staircases(flat, none, None)
    assert residual.sizes["jump"] == 0
    assert (found["missing_jumps"], found["extra_jumps"], found["initial_loss"]) == (0, 0, 0)
    assert np.isnan(found["jump_time"])
    assert compare(flat, none).verdict.outcome == "undecided"
    assert errors(observation(), none)["extra_jumps"] > 0
