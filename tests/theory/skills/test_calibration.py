from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.skills import calibrate, half_strength_steps, time_emergence

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


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 2, 4])
def test_intervals_hold_the_truth_as_often_as_they_say(runs):
    held, draws = np.zeros(3), 120
    for seed in range(draws):
        draw = np.random.default_rng(seed)
        own = 1 + (0.05 * draw.normal(size=(2, runs, 1)) if runs > 1 else np.zeros((2, 1, 1)))
        clean = 1 / (1 + np.exp(8.0 * own[0] - 0.0225 * own[1] * STEPS))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            found = calibrate(STEPS, clean + 0.02 * draw.normal(size=clean.shape))
        truths = (found.rate_interval, 0.01125), (found.offset_interval, 8.0), (found.half_step_interval, 8 / 0.0225)
        held += [low <= truth <= high for (low, high), truth in truths]
    # 95 % of 120 with three deviations of 2.0 %; the half step of several runs is that of mean offset and rate.
    assert np.all(np.abs(held / draws - 0.95) < 0.06)


def test_noise_does_not_bias_a_calibration():
    found = [calibrate(STEPS, run) for run in noisy(5, 60, noise=0.03)]
    for name, truth in (("rate", 0.045 * 0.25), ("offset", 8.0)):
        values = np.array([getattr(each, name) for each in found])
        # A line through logits of values in the window is off by 23 % at this noise; a median of 60 scatters by 1.6 %.
        assert abs(np.median(values) / truth - 1) < 0.05


def test_two_runs_that_differ_do_not_tell_a_rate_and_say_so():
    clean = np.stack([time_emergence(STEPS, [1.0], rate=rate, offset=8.0)[:, 0] for rate in (0.009, 0.014)])
    with pytest.warns(UserWarning, match="2 runs do not determine the rate"):
        found = calibrate(STEPS, clean)
    assert found.rate_interval[0] == 0
    assert found.half_step_interval[1] == np.inf
    assert 0 < found.half_step_interval[0] < found.half_step
    # With more of the same they do.
    found = calibrate(STEPS, np.tile(clean, (4, 1)))
    assert 0 < found.rate_interval[0] < found.rate < found.rate_interval[1]
    assert found.half_step_interval[0] < found.half_step < found.half_step_interval[1] < np.inf


@pytest.mark.parametrize("decades", [-300, -160, -40, 40, 160, 300])
def test_steps_in_any_unit_give_the_same_calibration_in_it(decades):
    runs, unit = noisy(3, 4), 10.0**decades
    one, other = calibrate(STEPS, runs, **RUN), calibrate(STEPS * unit, runs, **RUN)
    for name in ("rate", "rate_error", "rate_interval"):
        np.testing.assert_allclose(np.multiply(getattr(other, name), unit), getattr(one, name), rtol=1e-9)
    for name in ("half_step", "half_step_error", "half_step_interval"):
        np.testing.assert_allclose(np.divide(getattr(other, name), unit), getattr(one, name), rtol=1e-9)
    for name in ("offset", "offset_error", "offset_interval", "initial_strength"):
        np.testing.assert_allclose(getattr(other, name), getattr(one, name), rtol=1e-9)


def test_strengths_above_one_are_refused_but_for_noise():
    clean = time_emergence(STEPS, [1.0], rate=0.045, offset=8.0, **RUN)[:, 0]
    for strength in (5 * clean, 1.1 * clean):
        with pytest.raises(InputError, match="a perfect network has strength one") as refusal:
            calibrate(STEPS, strength, **RUN)
        assert refusal.value.argument == "strength"
    # The greatest of hundreds of values with a scatter of 0.05 is 1.15.
    assert calibrate(STEPS, noisy(1, 20, noise=0.05)).runs == 20


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
        (lambda: calibrate(STEPS, noisy(0, 1)[0], confidence=1.0), "confidence"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
