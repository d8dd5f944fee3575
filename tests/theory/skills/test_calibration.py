from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.skills import (
    calibrate,
    calibrate_data,
    calibrate_parameters,
    half_strength_steps,
    parameter_emergence,
    skill_strength,
    time_emergence,
)

STEPS = np.arange(0.0, 800.0, 20.0)
RUN = {"learning_rate": 0.05, "target_scale": 5.0}


def noisy(seed, runs, noise=0.02):
    clean = time_emergence(STEPS, [1.0], rate=0.045, offset=8.0, **RUN)[:, 0]
    return clean + noise * np.random.default_rng(seed).normal(size=(runs, len(STEPS)))


@settings(max_examples=12, deadline=None)
@given(st.floats(0.02, 0.06), st.floats(2, 9))
def test_time_calibration_returns_what_made_the_curve(rate, offset):
    steps = np.linspace(0, 2 * offset / (0.5 * rate), 40)
    found = calibrate(steps, time_emergence(steps, [1.0], rate=rate, offset=offset, **RUN)[:, 0], **RUN)
    np.testing.assert_allclose([found.rate, found.offset], [rate, offset], rtol=1e-12)
    np.testing.assert_allclose(found.half_step, offset / (0.5 * rate), rtol=1e-12)
    np.testing.assert_allclose(found.initial_strength, 1 / (1 + np.exp(offset)), rtol=1e-10)
    # The residuals of an exact line are rounding.
    assert found.rate_error < 1e-12 * rate


def test_the_forecast_of_a_calibration_is_its_half_step_over_the_frequency():
    found = calibrate(STEPS, noisy(1, 3), **RUN)
    steps = half_strength_steps([0.6, 0.1], rate=found.rate, offset=found.offset, **RUN)
    np.testing.assert_allclose(steps, found.half_step / np.array([0.6, 0.1]), rtol=1e-12)


def test_steps_and_strengths_alone_give_the_same_forecast():
    given, alone = calibrate(STEPS, noisy(1, 3), **RUN), calibrate(STEPS, noisy(1, 3))
    np.testing.assert_allclose(alone.rate, 0.05 * 5.0 * given.rate, rtol=1e-12)
    forecast = time_emergence(STEPS, [0.6, 0.1], rate=given.rate, offset=given.offset, **RUN)
    np.testing.assert_allclose(
        time_emergence(STEPS, [0.6, 0.1], rate=alone.rate, offset=alone.offset), forecast, rtol=1e-10
    )


def test_errors_say_how_far_repeated_calibrations_scatter():
    # One run each, with noise in proportion to the weights of the fit.
    clean = time_emergence(STEPS, [1.0], rate=0.045, offset=8.0, **RUN)[:, 0]
    noise = 0.03 * np.sqrt(clean * (1 - clean)) * np.random.default_rng(0).normal(size=(300, len(STEPS)))
    found = [calibrate(STEPS, run, window=(0.01, 0.99), **RUN) for run in clean + noise]
    for name in ("rate", "offset", "half_step"):
        scatter = np.std([getattr(one, name) for one in found])
        stated = np.sqrt(np.mean([getattr(one, f"{name}_error") ** 2 for one in found]))
        # Selection by a noisy window and the curvature of the logit cost some tens of percent.
        assert 0.6 < stated / scatter < 1.6


def test_several_runs_have_the_error_of_their_mean():
    runs = noisy(3, 5)
    each = [calibrate(STEPS, run, **RUN) for run in runs]
    together = calibrate(STEPS, runs, **RUN)
    assert together.runs == 5
    np.testing.assert_allclose(together.rate, np.mean([one.rate for one in each]), rtol=1e-12)
    np.testing.assert_allclose(together.rate_error, np.std([one.rate for one in each], ddof=1) / 5**0.5, rtol=1e-12)


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


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: calibrate(STEPS, noisy(0, 1)[0, :5], **RUN), "strength"),
        (lambda: calibrate(STEPS[:5], noisy(0, 1)[0, :5], **RUN), "strength"),
        (lambda: calibrate(STEPS, noisy(0, 1, 0.0)[0, ::-1], **RUN), "strength"),
        (lambda: calibrate(STEPS[::-1], noisy(0, 1)[0], **RUN), "steps"),
        (lambda: calibrate(STEPS, np.full(len(STEPS), np.nan), **RUN), "strength"),
        (lambda: calibrate(STEPS, noisy(0, 1)[0], learning_rate=0.0, target_scale=5.0), "learning_rate"),
        (lambda: calibrate(STEPS, noisy(0, 1)[0], window=(0.6, 0.05), **RUN), "window"),
        (lambda: calibrate_data([1, 2, 3], [0.1, 0.2, 0.3]), "strength"),
        (lambda: calibrate_data([1, 2, 3], [0.6, 0.7, 0.8]), "strength"),
        (lambda: calibrate_data([3, 2], [0.1, 0.8]), "samples"),
        (lambda: calibrate_parameters([-1, 2], [0.1, 0.8]), "neurons"),
        (lambda: calibrate_parameters([1, 2], np.zeros((0, 2))), "strength"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
