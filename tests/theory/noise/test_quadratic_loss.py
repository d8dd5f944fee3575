from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import discrete_stationary_moments, quadratic_loss


def regression(seed=0, samples=40, inputs=3):
    random = np.random.default_rng(seed)
    x = random.normal(size=(samples, inputs)) * np.arange(1, inputs + 1)
    return x, x @ random.normal(size=inputs) + random.normal(size=samples)


@given(seed=st.integers(0, 99), decay=st.floats(0, 2))
def test_the_gradient_with_decay_is_zero_at_the_centre_and_its_noise_is_the_covariance_there(seed, decay):
    x, y = regression(seed)
    found = quadratic_loss(x, y, weight_decay=decay)
    gradients = x * (x @ found.centre - y)[:, None]
    np.testing.assert_allclose(gradients.mean(0) + decay * found.centre, 0, atol=1e-12)
    np.testing.assert_allclose(found.noise, np.cov(gradients.T, bias=True), rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.mode_noise, np.diag(found.directions.T @ found.noise @ found.directions))
    np.testing.assert_allclose(found.minimum, np.linalg.lstsq(x, y)[0], rtol=1e-9)
    assert found.residual == pytest.approx(np.mean((x @ found.centre - y) ** 2))


def test_directions_that_no_sample_has_are_flat_and_no_part_of_the_minimum():
    x, y = regression(samples=2, inputs=4)
    found = quadratic_loss(x, y)
    np.testing.assert_allclose(x @ found.minimum, y)
    assert (found.curvature[2:] == 0).all()
    assert np.linalg.norm(found.minimum) == pytest.approx(np.linalg.norm(np.linalg.lstsq(x, y)[0]))
    # What is interpolated has no noise at the minimum.
    np.testing.assert_allclose(found.noise, 0, atol=1e-12)


def test_rotated_inputs_rotate_the_minimum_and_change_no_mode():
    x, y = regression()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    one, other = quadratic_loss(x, y, weight_decay=0.3), quadratic_loss(x @ turn, y, weight_decay=0.3)
    np.testing.assert_allclose(other.centre, turn.T @ one.centre)
    np.testing.assert_allclose(other.mode_noise, one.mode_noise)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"curvature": [[1.0]]}, "curvature"),
        ({"noise": -1.0}, "noise"),
        ({"noise": [1.0, 2.0, 3.0]}, "noise"),
    ],
)
def test_modes_that_do_not_fit_are_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        discrete_stationary_moments(SGD(0.1), **{"curvature": [1.0, 2.0], "noise": 1.0} | changes)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("inputs", "targets", "argument"),
    [([[1.0]], [1.0, 2.0], "targets"), (np.zeros((0, 2)), [], "inputs"), ([[1.0]], [[1.0, 2.0]], "targets")],
)
def test_data_that_do_not_fit_are_refused_by_name(inputs, targets, argument):
    with pytest.raises(InputError) as caught:
        quadratic_loss(inputs, targets)
    assert caught.value.argument == argument
