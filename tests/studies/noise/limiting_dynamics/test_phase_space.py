from __future__ import annotations

import numpy as np
import pytest

from dynascope.studies.noise.limiting_dynamics.phase_space import (
    ALONG,
    DIRECTIONS,
    SHARES,
    PhaseSpace,
    allowed_deviation,
    contour_arcs,
    current_arrows,
    current_of_sector,
    expected_current,
    moments_of,
    regression_data,
)
from dynascope.studies.noise.limiting_dynamics.regression_laws import RegressionLaws
from dynascope.theory import SGD
from dynascope.theory.noise import discrete_stationary_moments


def laws(seed=0):
    data = regression_data(np.random.default_rng(seed), 500, np.array([1.0, 0.2]), 0.5, 1.0)
    return RegressionLaws(*data, SGD(0.05, momentum=0.9, weight_decay=0.01, batch_size=4))


def additive_runs(theory, runs, steps):
    """Steps of Gaussian noise that does not depend on the weights, from the stationary law."""
    random, law = np.random.default_rng(1), discrete_stationary_moments(theory.sgd, **theory.modes)
    parts = [law.position_variance, law.covariance, law.covariance, law.velocity_variance]
    covariance = np.moveaxis(np.reshape(parts, (2, 2, -1)), -1, 0)
    a, b = np.stack([random.multivariate_normal([0, 0], each, size=runs) for each in covariance], -1).swapaxes(0, 1)
    path = [(a, b)]
    h, noise = theory.loss.curvature + theory.sgd.weight_decay, np.sqrt(theory.loss.mode_noise / theory.sgd.batch_size)
    for _ in range(steps):
        b = theory.sgd.momentum * b - h * a + noise * random.normal(size=a.shape)
        a = a + theory.sgd.learning_rate * b
        path.append((a, b))
    return PhaseSpace(*(np.array(each) for each in zip(*path, strict=True)))


def test_data_have_the_curvatures_and_the_distance_that_are_asked_for():
    found = laws()
    np.testing.assert_allclose(found.loss.curvature, [1.0, 0.2], rtol=1e-12)
    np.testing.assert_allclose(np.abs(found.loss.minimum @ found.loss.directions), 1.0, rtol=1e-12)
    residuals = found.inputs @ found.loss.minimum - found.targets
    assert np.std(residuals) == pytest.approx(0.5, rel=1e-12)
    assert found.least == pytest.approx(np.mean(residuals**2) / 2, rel=1e-12)


def test_stationary_steps_circle_and_drift_as_theory_says():
    theory, runs = laws(), 4000
    phase = additive_runs(theory, runs, 40)
    turned = phase.circulation(theory.sgd.learning_rate)
    # Four standard errors of each of two means.
    error = turned.std(axis=0) / np.sqrt(runs)
    assert (np.abs(turned.mean(axis=0) - theory.circulation) < 4 * error).all()
    assert (error < 0.1 * np.abs(theory.circulation)).all()
    seen, told = current_of_sector(phase, theory.scales), expected_current(41, theory.scales, theory.sgd, theory.modes)
    # An eighth of the runs is in the sector, of scales near one; the law of small steps is off by a few percent.
    np.testing.assert_allclose(seen, told, atol=4 / np.sqrt(runs / 8) + 0.05)


def test_deviations_are_of_chance_for_the_right_law_alone():
    theory = laws()
    phase = additive_runs(theory, 4000, 3)
    law = discrete_stationary_moments(theory.sgd, **theory.modes)
    right = law._replace(**{name: np.tile(each, (4, 1)) for name, each in law._asdict().items()})
    assert np.abs(phase.deviations(right)).max() < allowed_deviation(40)
    wrong = right._replace(velocity_variance=1.2 * right.velocity_variance)
    assert np.abs(phase.deviations(wrong)).max() > allowed_deviation(40)
    np.testing.assert_allclose(moments_of(phase)["position_variance"], right.position_variance, rtol=0.15)


def test_arrows_go_along_the_contours_of_the_modified_loss():
    theory, runs = laws(), 4000
    phase = additive_runs(theory, runs, 40)
    contours, arrows = contour_arcs(2), current_arrows(phase, theory.scales, theory.sgd.learning_rate)
    assert contours[0].shape == arrows[0].shape == (len(ALONG), len(SHARES), len(DIRECTIONS), 2)
    # Only of the mode that swings are there whole turns within the run, and no run leaves its place unseen.
    a, b = (part[..., 0] for part in arrows)
    turned = np.rad2deg(np.arctan2(b[-1], a[-1]) - np.arctan2(b[0], a[0])) % -360
    # Half of a part, less what a straight line falls behind a circle by; a hundred of the runs are about each place.
    half = np.rad2deg(np.arctan(np.pi / len(DIRECTIONS)))
    np.testing.assert_allclose(turned, -half, atol=0.3 * half)
    inside = -np.expm1(-(a[0] ** 2 + b[0] ** 2) / 2)
    np.testing.assert_allclose(inside, np.broadcast_to(SHARES[:, None], inside.shape), atol=0.05)


def test_runs_that_are_nowhere_have_no_arrow():
    theory = laws()
    at_rest = PhaseSpace(*np.zeros((2, 5, 10, 2)))
    assert np.isnan(current_arrows(at_rest, theory.scales, theory.sgd.learning_rate)[0]).all()
