from __future__ import annotations

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.noise import quartic_collapse_exponent, quartic_path, quartic_stationary_law

GROWTH = 1.5


def paths(noise, *, runs, duration, steps, seed=0, start=1.0):
    increments = np.sqrt(duration) * np.random.default_rng(seed).normal(size=(runs, steps))
    return quartic_path(start, increments, growth=GROWTH, noise=noise, duration=duration)


def test_the_golden_laws():
    # symmetry_sgd 5.3
    law = quartic_stationary_law(1.0, growth=GROWTH, noise=1.0)
    assert (law.shape, law.scale, law.mean_square) == (1.0, 1.0, 1.0)
    law = quartic_stationary_law(1.0, growth=GROWTH, noise=1.4)
    assert law.shape == pytest.approx(0.265306122449, abs=1e-12)
    assert (law.scale, law.mean_square) == (pytest.approx(1.96), pytest.approx(0.52))
    assert quartic_collapse_exponent(growth=GROWTH, noise=2.5) == -1.625


def test_simulated_weights_have_the_stationary_law():
    ends = paths(1.0, runs=2000, duration=0.02, steps=600)[:, -1]
    cumulative = lambda x: quartic_stationary_law(x, growth=GROWTH, noise=1.0).cumulative  # noqa: E731
    assert scipy.stats.kstest(ends**2, cumulative).pvalue > 0.01
    # Another law is told apart.
    other = lambda x: quartic_stationary_law(x, growth=GROWTH, noise=1.1).cumulative  # noqa: E731
    assert scipy.stats.kstest(ends**2, other).pvalue < 1e-3
    assert (ends > 0).all()


def test_more_noise_makes_weights_vanish_at_the_exponent():
    runs, steps, duration = 400, 1000, 0.02
    found = paths(2.5, runs=runs, duration=duration, steps=steps, start=1e-3)
    slope = np.log(found[:, -1] / found[:, 199]) / (duration * (steps - 200))
    expected = quartic_collapse_exponent(growth=GROWTH, noise=2.5)
    assert slope.mean() == pytest.approx(expected, abs=4 * slope.std() / np.sqrt(runs))


def test_the_path_is_that_of_the_closed_form():
    duration, noise, start = 1e-4, 0.8, 0.3
    increments = np.sqrt(duration) * np.random.default_rng(3).normal(size=20_000)
    y = np.concatenate([[0.0], np.cumsum((GROWTH - noise**2 / 2) * duration + noise * increments)])
    integral = np.cumsum(np.exp(2 * y[1:]) + np.exp(2 * y[:-1])) * duration / 2
    expected = start * np.exp(y[1:]) / np.sqrt(1 + 2 * start**2 * integral)
    found = quartic_path(start, increments, growth=GROWTH, noise=noise, duration=duration)
    # Both replace the integral by a sum, to the order of the interval.
    np.testing.assert_allclose(found, expected, rtol=1e-7)


def test_without_noise_it_goes_to_the_bottom_of_the_well():
    found = quartic_path([0.01, -0.01, 0.0], np.zeros((3, 2000)), growth=2.0, noise=0.0, duration=0.01)
    # Splitting keeps the bottom to the second order of the interval.
    np.testing.assert_allclose(found[:, -1], [np.sqrt(2), -np.sqrt(2), 0], rtol=1e-4)


@given(growth=st.floats(0.1, 10), share=st.floats(0.05, 0.95), x=st.floats(0, 20))
def test_the_law_is_a_gamma_law_with_its_mean(growth, share, x):
    noise = np.sqrt(2 * growth * share)
    law = quartic_stationary_law(x, growth=growth, noise=noise)
    assert law.shape * law.scale == pytest.approx(law.mean_square, rel=1e-12)
    assert law.mean_square == pytest.approx(quartic_collapse_exponent(growth=growth, noise=noise), rel=1e-12)
    assert law.cumulative == pytest.approx(scipy.stats.gamma.cdf(x, law.shape, scale=law.scale), abs=1e-13)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: quartic_stationary_law(1.0, growth=1.0, noise=1.5), "noise"),
        (lambda: quartic_stationary_law(-1.0, growth=1.0, noise=1.0), "squares"),
        (lambda: quartic_path([1.0, 2.0], np.zeros((3, 2)), growth=1.0, noise=1.0, duration=0.1), "start"),
        (lambda: quartic_path(1.0, 0.0, growth=1.0, noise=1.0, duration=0.1), "increments"),
        (lambda: quartic_path(1.0, [0.0], growth=1.0, noise=1.0, duration=0.0), "duration"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
