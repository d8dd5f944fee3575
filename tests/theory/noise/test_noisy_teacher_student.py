from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.noise import (
    gaussian_collapse_exponent,
    noisy_imbalance,
    noisy_student_path,
    noisy_student_strength,
)

RATE, VARIANCE = 0.02, 30.0


def test_the_golden_path():
    # symmetry_sgd 5.4
    path = noisy_student_path(0.6, 0.5, 2 * np.sin(3 * np.arange(1, 31)), strength=1.0, learning_rate=0.05)
    assert path.first[-1] == pytest.approx(0.994537373671, abs=1e-12)
    assert path.second[-1] == pytest.approx(0.946436127182, abs=1e-12)


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_noise_lowers_what_is_learned_by_a_soft_threshold(strength):
    noise = np.sqrt(VARIANCE) * np.random.default_rng(1).normal(size=(6000, 400))
    path = noisy_student_path(0.5, 0.4, noise, strength=strength, learning_rate=RATE)
    learned = (path.first * path.second)[2000:].mean(axis=0)
    expected = noisy_student_strength(strength, VARIANCE, learning_rate=RATE)
    # Steps of this size are 1 percent of the strength away from continuous time.
    assert learned.mean() == pytest.approx(expected, abs=4 * learned.std() / 20 + 0.01)


def test_without_noise_all_is_learned_and_with_much_nothing():
    np.testing.assert_array_equal(noisy_student_strength([0.3, 2.0], 0.0, learning_rate=0.1), [0.3, 2.0])
    assert noisy_student_strength(0.29, VARIANCE, learning_rate=RATE) == 0


def test_the_exponent_is_the_growth_of_the_sum_near_zero():
    noise = np.sqrt(VARIANCE) * np.random.default_rng(2).normal(size=(500, 400))
    path = noisy_student_path(1e-9, 0.9e-9, noise, strength=0.2, learning_rate=RATE)
    grown = np.log(np.abs(path.first + path.second)[[0, -1]])
    slope = (grown[1] - grown[0]) / len(noise)
    expected = gaussian_collapse_exponent(-0.2, np.sqrt(VARIANCE), learning_rate=RATE)
    assert slope.mean() == pytest.approx(expected, abs=4 * slope.std() / 20)


def test_the_threshold_of_small_steps_is_half_of_the_noise():
    rate, variance = 1e-4, 1e4
    strengths = np.array([0.99, 1.01]) * rate * variance / 2
    at = gaussian_collapse_exponent(-strengths, np.sqrt(variance), learning_rate=rate)
    assert at[0] < 0 < at[1]


@given(
    u=st.floats(-2, 2),
    v=st.floats(-2, 2),
    strength=st.floats(-1, 1),
    rate=st.floats(0.001, 0.1),
    seed=st.integers(0, 1000),
)
def test_the_imbalance_follows_its_law_exactly(u, v, strength, rate, seed):
    noise = np.random.default_rng(seed).normal(size=30)
    path = noisy_student_path(u, v, noise, strength=strength, learning_rate=rate)
    found = noisy_imbalance(u**2 - v**2, path.errors, learning_rate=rate)
    np.testing.assert_allclose(found, path.first**2 - path.second**2, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: noisy_student_strength(1.0, -1.0, learning_rate=0.1), "noise_variance"),
        (lambda: noisy_student_path(1.0, 1.0, 0.0, strength=1.0, learning_rate=0.1), "label_noise"),
        (lambda: noisy_student_path([1.0], 1.0, np.zeros((3, 2)), strength=1.0, learning_rate=0.1), "first"),
        (lambda: noisy_imbalance(1.0, [0.0], learning_rate=0.0), "learning_rate"),
        (lambda: noisy_student_path(9.0, 9.0, np.full(99, 1e25), strength=1.0, learning_rate=9.0), "label_noise"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
