import numpy as np
import pytest

from dynascope.studies.features.linear_models import least_norm, noise_power, ridge_fit, train_from_zero


@pytest.mark.parametrize("n", [8, 12])
def test_the_ridge_fit_matches_its_dual_form_for_any_shape(n):
    features = np.random.default_rng(0).normal(size=(n, 12))
    intensity, target = np.arange(1.0, 13) ** -1.5, 1 / np.arange(1.0, 13)
    loss, training, learned, fraction = ridge_fit(features, intensity, target, ridge=0.3, noise_variance=0.25)
    scaled = features * intensity
    dual = np.linalg.inv(scaled @ features.T + 0.3 * np.eye(n))
    np.testing.assert_allclose(learned, scaled.T @ dual @ features @ target, atol=1e-10)
    np.testing.assert_allclose(fraction, np.diag(scaled.T @ dual @ features), atol=1e-10)
    noise = 0.25 * np.sum((scaled.T @ dual) ** 2)
    np.testing.assert_allclose(2 * loss, np.sum((learned - target) ** 2) + noise, rtol=1e-10)
    left = 0.3 * dual
    clean = left @ features @ target
    np.testing.assert_allclose(2 * training, np.mean(clean**2) + 0.25 * np.sum(left**2) / n, rtol=1e-10)


def test_the_flow_from_zero_ends_at_the_minimum_norm_fit():
    draw = np.random.default_rng(0)
    features, labels = draw.normal(size=(3, 5)), draw.normal(size=(3, 2))
    run = train_from_zero(features, labels, np.array([0.0, 1e3]))
    found = least_norm(features, labels)
    np.testing.assert_allclose(features @ found, labels, rtol=1e-10)
    # The solver tolerance is 1e-8 in float64 and 1e-4 in float32.
    np.testing.assert_allclose(run["weights"][-1].T, found, atol=1e-3)


def test_more_modes_fit_pure_noise_with_less_power():
    draw = np.random.default_rng([0, 1])
    power = [noise_power(modes, 50, draw) for modes in (100, 400, 2000)]
    assert np.all(np.diff(power) < 0)
    # n/(p − n); with p = 2000, nearly coincident samples hardly affect the median.
    assert power[-1] == pytest.approx(50 / 1950, rel=0.1)
