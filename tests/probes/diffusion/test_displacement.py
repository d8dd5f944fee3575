from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.probes.diffusion import displacements
from dynascope.theory import SGD
from dynascope.theory.noise import stationary_displacement, thermometer, velocity_correlation

SETTINGS = SGD(0.1, momentum=0.8, batch_size=4)
CURVATURE, NOISE = np.array([0.5, 3.0]), np.array([1.0, 2.0])


@pytest.fixture(scope="module")
def path() -> np.ndarray:
    """The weights of a long run of steps on a quadratic loss, at rest."""
    draw = np.random.default_rng(0)
    a, v, found = np.zeros(2), np.zeros(2), []
    for noise in draw.normal(size=(60_000, 2)) * np.sqrt(NOISE / 4):
        v = 0.8 * v - CURVATURE * a - noise
        a = a + 0.1 * v
        found.append(a)
    return np.array(found[1000:])


def test_a_long_run_goes_and_remembers_as_theory_says(path):
    found = displacements(path)
    local = found.local_displacement.mean()
    # 59 000 steps that remember some ten each: standard errors of about 2 %.
    assert local == pytest.approx(stationary_displacement(CURVATURE, NOISE, 1, SETTINGS), rel=0.05)
    lags = [0, 1, 5]
    expected = 0.1**2 * velocity_correlation(CURVATURE, NOISE, lags, SETTINGS)
    moves = np.diff(path, axis=0)
    correlated = [np.mean(np.sum(moves[lag:] * moves[: len(moves) - lag], axis=1)) for lag in lags]
    np.testing.assert_allclose(correlated, expected, atol=0.05 * expected[0])
    assert correlated[0] == pytest.approx(local)


def test_variances_along_the_axes_of_the_hessian_are_those_of_the_thermometer(path):
    expected = thermometer(CURVATURE, NOISE, SETTINGS)
    # A thousand times the relaxation of the slow mode: 5 %, and three times that.
    np.testing.assert_allclose(path.var(axis=0), expected.position_variance, rtol=0.15)
    moves = np.diff(path, axis=0)
    np.testing.assert_allclose(np.mean(moves**2, axis=0), 0.01 * expected.velocity_variance, rtol=0.05)


@given(steps=st.integers(1, 20), seed=st.integers(0, 99))
def test_displacements_do_not_depend_on_axes_or_origin(steps, seed):
    draw = np.random.default_rng(seed)
    path, turn = draw.normal(size=(steps + 1, 3)), np.linalg.qr(draw.normal(size=(3, 3)))[0]
    one, other = displacements(path), displacements((path + 5) @ turn)
    for here, there in zip(one, other, strict=True):
        np.testing.assert_allclose(here, there, atol=1e-10)
    assert one.global_displacement[1] == pytest.approx(one.local_displacement[0])


def test_a_path_of_one_checkpoint_is_refused_by_name():
    with pytest.raises(InputError) as caught:
        displacements(np.ones((1, 2)))
    assert caught.value.argument == "path"
