from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.grokking.grokking_digits.remedies import (
    DECIDING,
    TABLE,
    TWINS,
    _unreached,
    remedies,
    remedy_claims,
)
from dynascope.studies.grokking.grokking_digits.twins import ScaleFactors

RUNS = remedies(ScaleFactors(5.0, 3.0), weights=1.0, targets=30.0, inputs=0.01, outputs=0.1)


@pytest.mark.parametrize(
    ("remedy", "factor", "value"),
    list(zip(TABLE[1:], ScaleFactors._fields[:4], (1.0, 30.0, 0.01, 0.1), strict=True)),
)
def test_each_remedy_changes_one_factor(remedy, factor, value):
    assert RUNS[remedy] == RUNS["default"]._replace(**{factor: value})


def test_a_twin_has_the_same_product_of_factors():
    assert set(RUNS) == {*TABLE, *TWINS}
    target, first, last = (RUNS[name] for name in TWINS)
    # The network learns the ratio of targets to outputs; the weight decay scales with their square.
    assert target.output / target.target == pytest.approx(1 / 30.0)
    assert target.loss == target.output**2 != 1
    assert first.input * first.first_layer == pytest.approx(0.01)
    assert last.output * last.last_layer == pytest.approx(0.1)
    assert first.first_layer != 1 != last.last_layer


def test_claims_compare_each_remedy_with_the_default():
    draw = np.random.default_rng(0)
    metrics = ("delay", "delay_decades", "kappa_before", "kappa_after", "test_kappa_before", "test_kappa_after")
    found = {name: {run: draw.normal(size=4) for run in TABLE} for name in metrics}
    found["delay"] |= {"weight downscaling": found["delay"]["default"] - 100.0}
    found |= {threshold: dict.fromkeys(TABLE, np.array([True] * 4)) for threshold in ("fitted", "generalised")}
    told = remedy_claims(found)
    names = told["hypothesis"][1].tolist()
    assert len(set(names)) == len(names) == 3 * len(TABLE) + 2
    assert names[0] == "weight downscaling: delay" == DECIDING[0]
    assert (told["direction"][1][0], told["holds"][1][0]) == (-1, "holds")


def test_claims_about_the_delay_of_runs_without_one_are_undecided():
    metrics = ("delay", "delay_decades", "kappa_before", "kappa_after", "test_kappa_before", "test_kappa_after")
    found = {name: {run: k + np.arange(2.0) for k, run in enumerate(TABLE[::-1])} for name in metrics}
    found["fitted"] = dict.fromkeys(TABLE, np.array([True, True]))
    found["generalised"] = {run: np.array([True, run != "input downscaling"]) for run in TABLE}
    report = {name: values.tolist() for name, (_, values) in remedy_claims(found).items()}
    outcomes = dict(zip(report["hypothesis"], report["holds"], strict=True))
    assert outcomes["target upscaling: delay"] == outcomes["input downscaling: final features"] == "holds"
    assert outcomes["input downscaling: delay"] == outcomes["input downscaling: delay in decades"] == "undecided"
    reasons = dict(zip(report["hypothesis"], report["why_undecided"], strict=True))
    assert reasons["input downscaling: delay"] == (
        "the true change is at least this value; "
        "1 of 2 input downscaling networks did not reach the test threshold by the end of training"
    )


@pytest.mark.parametrize(
    ("fitted", "generalised", "bound"),
    [((), ("default",), "at most this value"), ((), ("default", "remedy"), ""), (("default",), ("default",), "")],
)
def test_unreached_thresholds_bound_the_change_of_the_delay(fitted, generalised, bound):
    missed = {"fitted": fitted, "generalised": generalised}
    found = {
        threshold: {run: np.array([run not in runs]) for run in ("default", "remedy")}
        for threshold, runs in missed.items()
    }
    reason = _unreached(found, ("default", "remedy"))
    assert ("this value" in reason) == bool(bound)
    assert bound in reason
    assert "1 of 1 default networks did not reach the test threshold" in reason
