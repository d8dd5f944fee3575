"""How much of the fall of the loss a comparison judges."""

from __future__ import annotations

import numpy as np
import pytest

from dynascope.comparison import compare
from dynascope.results import make_record

TIME = np.linspace(0.0, 60.0, 3001)


def staircase(levels, times, slow=()):
    jumps = np.arange(1, len(times) + 1)
    return make_record(
        {
            "jump_time": (["jump"], times),
            "accelerated_time": (["jump"], np.array(times) / 10),
            "loss_before": (["jump"], levels[:-1]),
            "loss_after": (["jump"], levels[1:]),
            "slow": (["jump"], [each in slow for each in jumps]),
            "reason": (["jump"], ["it is slow" if each in slow else "" for each in jumps]),
        },
        {"jump": jumps},
        attributes={"scale": float(np.exp(-10.0)), "theory": "a theory", "initial_loss": levels[0]},
    )


def run(levels, times, end=60.0):
    drops = sum(
        (before - after) / (1 + np.exp(5 * (TIME - time)))
        for before, after, time in zip(levels[:-1], levels[1:], times, strict=True)
    )
    kept = end >= TIME
    return make_record({"loss": (["time"], (levels[-1] + drops)[kept])}, {"time": TIME[kept]})


LEVELS, TIMES = [1.0, 0.7, 0.0], [10.0, 30.0]


@pytest.mark.parametrize(
    ("slow", "share"),
    [((), 1.0), ((1,), 0.7), ((2,), 0.3)],
)
def test_of_a_staircase_the_judged_jumps_count(slow, share):
    told = compare(run(LEVELS, TIMES), staircase(LEVELS, TIMES, slow)).verdict
    assert told.outcome == "agree"
    assert told.share_of_fall == pytest.approx(share, abs=1e-3)
    assert ("30" in told.sentence) is (share < 0.5)


def test_of_a_run_that_ends_early_the_predicted_fall_counts():
    told = compare(run(LEVELS, TIMES, end=20.0), staircase(LEVELS, TIMES)).verdict
    assert (told.outcome, told.share_of_fall) == ("agree", pytest.approx(0.3, abs=1e-3))
    assert "30" in told.sentence


def test_of_a_run_that_goes_on_its_own_fall_counts():
    few = staircase([1.0, 0.7], [10.0]).assign_attrs(complete=0)
    told = compare(run(LEVELS, TIMES), few).verdict
    assert told.share_of_fall == pytest.approx(0.3, abs=1e-3)
    assert "30" in told.sentence


def test_without_a_scored_jump_the_shared_times_of_the_curve_count():
    falling = run(LEVELS, TIMES)
    theory = staircase(LEVELS, TIMES, (1, 2)).assign(loss=("time", falling["loss"].to_numpy()))
    theory = theory.assign_coords(time=TIME).assign_attrs(curve_variables="other variables than those of the run")
    told = compare(run(LEVELS, TIMES, end=20.0), theory, tolerance={"curve": 0.05}).verdict
    assert (told.outcome, told.share_of_fall) == ("agree", pytest.approx(0.3, abs=1e-3))
    assert "time span shared by both curves accounts for only 30 %" in told.sentence


def test_of_curves_the_shared_times_count():
    theory = make_record({"loss": (["time"], 1 - TIME / 60)}, {"time": TIME})
    kept = TIME <= 12
    told = compare(make_record({"loss": (["time"], 1 - TIME[kept] / 60)}, {"time": TIME[kept]}), theory).verdict
    assert told.share_of_fall == pytest.approx(0.2)
    assert "20" in told.sentence


@pytest.mark.parametrize("fall", [0.0, 1e-6])
def test_a_loss_that_does_not_fall_has_no_share(fall):
    flat = make_record({"loss": (["time"], np.ones(len(TIME)))}, {"time": TIME})
    run = flat.assign(loss=("time", 1 - fall * TIME / TIME[-1]))
    assert compare(run, flat).verdict.share_of_fall is None
