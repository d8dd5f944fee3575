from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.skills import calibrate_data, calibrate_parameters, parameter_emergence, skill_strength


@settings(max_examples=12, deadline=None)
@given(st.floats(20, 900), st.sampled_from(["correlation", "loss_equivalent"]))
def test_data_calibration_returns_the_need_that_made_the_curve(needed, definition):
    samples = np.linspace(0, 1000, 41)
    found = calibrate_data(samples, skill_strength(samples, needed, definition=definition), definition=definition)
    half = {"correlation": 1 / 2, "loss_equivalent": 3 / 4}[definition]
    if samples[np.searchsorted(samples, half * needed)] <= needed:
        # The curve is a straight line there, in the learned fraction.
        np.testing.assert_allclose(found.needed, needed, rtol=1e-12)
    assert abs(found.needed - needed) < np.sqrt(12) * found.error
    np.testing.assert_allclose(found.half, half * found.needed, rtol=1e-14)
    np.testing.assert_allclose(found.error, 25 / half / np.sqrt(12), rtol=1e-12)


def test_parameter_calibration_returns_the_need_that_made_the_curve():
    widths = np.arange(1, 9)
    for definition in ("correlation", "loss_equivalent"):
        strength = parameter_emergence(widths, 1, 4.0, definition=definition)[:, 0]
        assert calibrate_parameters(widths, strength, definition=definition).needed == pytest.approx(4.0, rel=1e-12)


def test_runs_that_differ_widen_the_error_of_the_need():
    samples = np.linspace(0, 1000, 101)
    needs = np.array([400.0, 500.0, 660.0])
    found = calibrate_data(samples, [skill_strength(samples, needed) for needed in needs])
    np.testing.assert_allclose(found.needed, needs.mean(), rtol=1e-12)
    np.testing.assert_allclose(found.error**2, needs.var(ddof=1) / 3 + 20**2 / 12, rtol=1e-12)


@pytest.mark.parametrize("runs", [2, 5])
def test_the_interval_of_several_runs_holds_the_need_as_often_as_it_says(runs):
    samples, held, draws = np.linspace(0, 1000, 101), 0, 100
    for seed in range(draws):
        needs = 500 * (1 + 0.1 * np.random.default_rng(seed).normal(size=runs))
        low, high = calibrate_data(samples, [skill_strength(samples, needed) for needed in needs]).interval
        held += low <= 500 <= high
    # 95 of 100 with three deviations of 2.2, and more where the distance of the sizes counts.
    assert held >= 88


def test_one_run_tells_between_which_sizes_half_was_passed():
    found = calibrate_data([100, 300, 500, 700], [0.1, 0.3, 0.55, 0.9])
    assert (found.interval, found.needed) == ((600.0, 1000.0), 920.0)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: calibrate_data([1, 2, 3], [0.1, 0.2, 0.3]), "strength"),
        (lambda: calibrate_data([1, 2, 3], [0.6, 0.7, 0.8]), "strength"),
        (lambda: calibrate_data([1, 2, 3], [0.1, 0.7, 1.8]), "strength"),
        (lambda: calibrate_data([3, 2], [0.1, 0.8]), "samples"),
        (lambda: calibrate_data([1, 2], [0.1, 0.8], confidence=0.0), "confidence"),
        (lambda: calibrate_parameters([-1, 2], [0.1, 0.8]), "neurons"),
        (lambda: calibrate_parameters([1, 2], np.zeros((0, 2))), "strength"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
