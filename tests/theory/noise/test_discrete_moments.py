from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import discrete_moments, discrete_stationary_moments, langevin_moments

ONE = {"curvature": 2.0, "noise": 0.7, "sgd": SGD(0.05, momentum=0.9, weight_decay=0.1, batch_size=8)}
CURVATURE, DECAY = np.array([1.5, 0.4, 0.05]), 0.01
CENTRE = CURVATURE / (CURVATURE + DECAY) * [1.0, -2.0, 0.5]
THREE = {
    "curvature": CURVATURE,
    "noise": 0.25 * CURVATURE,
    "sgd": SGD(0.1, momentum=0.8, weight_decay=DECAY, batch_size=4),
}


def test_stationary_variances_are_the_published_ones():
    found = discrete_stationary_moments(**ONE)
    got = [float(each) for each in (found.position_variance, found.velocity_variance, found.covariance)]
    np.testing.assert_allclose(got, [0.010712674786, 0.473612990528, 0.011840324763], rtol=0, atol=6e-13)


def test_moments_of_three_modes_are_the_published_ones():
    found = discrete_moments(200, **THREE, position=-CENTRE)
    np.testing.assert_allclose(
        found.position_variance, [0.016201067974, 0.015419513566, 0.013042556813], rtol=0, atol=6e-13
    )
    np.testing.assert_allclose(
        found.velocity_variance, [0.271817918237, 0.070244450688, 0.008695045429], rtol=0, atol=6e-13
    )
    assert found.position[2] == pytest.approx(-3.978096050304e-4, abs=6e-17)
    assert found.velocity[2] == pytest.approx(1.447548780746e-4, abs=6e-17)


@given(
    steepness=st.floats(-0.05, 1.9),
    momentum=st.floats(0, 0.95),
    position=st.floats(-2, 2),
    steps=st.lists(st.integers(0, 60), min_size=1, max_size=4),
)
def test_doubling_gives_what_step_by_step_gives(steepness, momentum, position, steps):
    rate, h = 0.1, steepness / 0.1
    step, pushed = np.array([[1 - steepness, rate * momentum], [-h, momentum]]), np.array([rate, 1.0])
    means, spreads = [np.array([position, 0.5])], [np.zeros((2, 2))]
    for _ in range(max(steps)):
        means.append(step @ means[-1])
        spreads.append(step @ spreads[-1] @ step.T + 0.3 / 2 * np.outer(pushed, pushed))
    found = discrete_moments(
        steps, SGD(rate, momentum=momentum, batch_size=2), curvature=h, noise=0.3, position=position, velocity=0.5
    )
    mean, spread = np.array(means)[steps], np.array(spreads)[steps]
    scale = np.abs(mean).max() + np.abs(spread).max()
    expected = (mean[:, 0], mean[:, 1], spread[:, 0, 0], spread[:, 0, 1], spread[:, 1, 1])
    for got, known in zip(found, expected, strict=True):
        np.testing.assert_allclose(got, known, rtol=1e-9, atol=1e-12 * scale)


def test_many_steps_are_stationary_and_small_steps_continuous():
    late, stationary = discrete_moments(10**9, **ONE, position=5.0), discrete_stationary_moments(**ONE)
    np.testing.assert_allclose(
        [float(part) for part in late], [float(part) for part in stationary], rtol=1e-12, atol=1e-15
    )
    errors = []
    for halvings in (0, 2):
        rate, steps = 0.02 / 2**halvings, 50 * 2**halvings
        chosen = ONE | {"sgd": SGD(rate, weight_decay=0.1)}
        steps = discrete_moments(steps, **chosen, position=1.0)
        flow = langevin_moments(1.0, **chosen, position=1.0)
        errors.append(abs(float(steps.position - flow.position)))
    # Continuous time is off by the first order of the rate.
    assert errors[1] == pytest.approx(errors[0] / 4, rel=0.1)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: discrete_moments(1.5, **ONE), "steps"),
        (lambda: discrete_moments(-1, **ONE), "steps"),
        (lambda: discrete_moments(1, **ONE | {"sgd": SGD(2.0)}), "learning_rate"),
        (
            lambda: discrete_stationary_moments(**ONE | {"sgd": SGD(3.8 / 2.1, momentum=0.9, weight_decay=0.1)}),
            "learning_rate",
        ),
        (lambda: discrete_stationary_moments(**ONE | {"curvature": [1.0, -0.1]}), "curvature"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
