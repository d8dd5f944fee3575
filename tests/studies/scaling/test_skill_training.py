from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dynascope.studies.scaling.skill_training import train_skills


def missing_strengths(missing):
    return missing


@pytest.mark.slow
def test_the_flow_is_the_limit_of_gradient_descent_on_a_training_set():
    generator = np.random.default_rng(0)
    scale, start, step = 1.5, 0.03, 1e-3
    skill = generator.choice(4, size=50, p=[0.5, 0.3, 0.15, 0.05])
    bits = generator.integers(0, 2, (50, 4))
    # g_k is ±1 on the samples that ask for the skill k, and 0 on the others.
    features = np.where(skill[:, None] == np.arange(4), 1 - 2 * bits, 0)
    targets = scale * features.sum(axis=1)
    first = second = np.full(4, np.sqrt(start))
    for _ in range(8000):
        pull = (targets - features @ (first * second)) @ features / 50
        first, second = first + step * pull * second, second + step * pull * first
    shares = np.bincount(skill, minlength=4) / 50
    flow = train_skills(shares, np.array([1.0, 8.0]), missing_strengths, target_scale=scale, initial_strength=start)
    # Of first order in the step, over a growth by ten e-folds.
    np.testing.assert_allclose(scale - first * second, flow[-1], rtol=0.02, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("start", "accuracy"), [(0.3, 1e-8), (1e-3, 1e-8), (1e-9, 1e-5)])
def test_the_steps_are_short_enough_at_any_time(start, accuracy):
    shares = np.array([[0.9, 1e-2, 1e-4, 0.0], [1.0, 0.3, 1e-3, 1e-6]])
    times = np.array([1e-4, 1.0, 20.0, 700.0, 1e5])
    missing = train_skills(shares, times, missing_strengths, target_scale=2.0, initial_strength=start)
    expected = 2 * expit(np.log(2 / start - 1) - 4 * np.multiply.outer(times, shares))
    # The method is of fourth order, and a skill grows by ln(S/R₀)/100 e-folds in a step while it is learned.
    np.testing.assert_allclose(missing, expected, rtol=0, atol=accuracy)


def test_a_skill_of_frequency_zero_keeps_its_initial_strength():
    missing = train_skills(
        np.array([1.0, 0.0]), np.array([1e3]), missing_strengths, target_scale=1.0, initial_strength=0.1
    )
    np.testing.assert_allclose(missing[0], [0.0, 0.9], atol=1e-15)
