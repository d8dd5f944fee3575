from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.noise.stochastic_collapse.model_runs import double_well, matrix_noise, noisy_students
from dynascope.theory.noise import gaussian_collapse_exponent, noisy_student_path, quartic_stationary_law


@pytest.mark.slow
def test_a_weight_in_a_double_well_settles_or_falls_as_the_noise_says():
    noises = np.array([1e-4, 1.0, 2.0])
    middle, end = double_well(noises, [20.0, 20.0, 20.0], runs=4000, steps=1000, seed=3)
    # Without noise the weight stays at the minimum, θ = 1; the noise of the first is 1e-4 in one unit of time.
    assert np.abs(end[0]).max() < 1e-3
    law = quartic_stationary_law(0.5, growth=1.0, noise=1.0)
    # Standard errors of 4000 paths are 0.008 of a share, and 0.012 of a mean of variance ½.
    assert np.mean(np.exp(2 * end[1]) <= 0.5) == pytest.approx(float(law.cumulative), abs=0.032)
    assert np.mean(np.exp(2 * end[1])) == pytest.approx(law.mean_square, abs=0.05)
    # ζ/√(10 · 4000) is 0.01.
    assert np.mean(end[2] - middle[2]) / 10 == pytest.approx(-1.0, abs=0.04)


@pytest.mark.slow
def test_students_of_labels_without_noise_follow_the_recursion_of_descent():
    found = noisy_students(np.array([[1.5]]), np.array([0.1]), noise_variance=1e-12, runs=8, steps=200, seed=0)
    # From uv = s and u² − v² = 0.3 s.
    u = np.sqrt(1.5 * (0.15 + np.sqrt(1 + 0.15**2)))
    path = noisy_student_path(u, 1.5 / u, np.zeros(200), strength=1.5, learning_rate=0.1)
    assert path.first[0] ** 2 - path.second[0] ** 2 == pytest.approx(0.3 * 1.5)
    assert np.allclose(found.learned, 1.5, atol=1e-5)
    assert np.allclose(found.log_product, np.log(path.first[-1] * path.second[-1]), atol=1e-5)
    # Balanced by nothing but noise, of which there is none.
    assert np.allclose(found.imbalance_ratio, 1, rtol=1e-12)


@pytest.mark.slow
def test_students_forget_weak_teachers():
    chosen = {"noise_variance": 80.0, "runs": 8, "steps": 20_000, "seed": 1}
    found = noisy_students(np.array([[0.1, 1.2]]), np.array([0.01]), **chosen)
    weak, strong = found.log_product[:, 0].mean(axis=2)[1]
    # At the rate 2(s − ης²/2) for each unit of time, of which there are 200; its standard error is 2ς√(η · 200/8)/10.
    assert weak == pytest.approx(-0.6 * 200, rel=0.2)
    assert strong > -5


@pytest.mark.slow
def test_one_input_and_one_output_shrink_by_the_exact_mean_logarithm_of_a_step():
    step = 0.1  # η²ς²(n + m) = 0.02
    grown = matrix_noise([(1, 1), (2, 3)], strength=2 * step**2, runs=64, steps=2000, seed=0)
    assert grown.shape == (2, 64)
    exact = gaussian_collapse_exponent(0.0, 1.0, learning_rate=step) / step**2
    error = grown[0].std(ddof=1) / 8
    assert error < 0.02
    assert abs(grown[0].mean() - exact) < 4 * error
    assert grown[1].mean() > 4 * grown[1].std(ddof=1) / 8
