from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import langevin_displacement, stationary_displacement

SETTINGS = SGD(0.05, momentum=0.9, batch_size=8)


@pytest.mark.parametrize(
    # The last by arithmetic of sixty digits; what is published, 0.255001512919, lost three to cancellation.
    ("curvature", "expected"),
    [(2.0, 0.014144969942), (0.1, 0.219501938087), (1e-6, 0.2550015129215402)],
)
def test_golden_numbers(curvature, expected):
    assert langevin_displacement(curvature, 0.7, 1.0, SETTINGS).squared == pytest.approx(expected, rel=3e-11)


def test_a_flat_mode_is_the_limit_at_every_time():
    times = np.array([0.0, 1e-6, 0.1, 0.2, 1.0, 30.0])
    flat, nearly = (langevin_displacement(h, 0.7, times, SETTINGS) for h in (0.0, 1e-13))
    for one, other in zip(flat, nearly, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert flat.exponent[0] == 2
    assert flat.exponent[-1] == pytest.approx(1, abs=0.02)


@given(h=st.floats(0.01, 5.0), time=st.floats(0.0, 20.0), momentum=st.floats(0.0, 0.95))
def test_it_is_the_exponential_of_the_drift(h, time, momentum):
    found = langevin_displacement(h, 1.0, time, SGD(0.1, momentum=momentum))
    gamma, square = (1 - momentum) / (0.1 * (1 + momentum)), 2 * h / (0.1 * (1 + momentum))
    law = expm(time * np.array([[0.0, 1.0], [-square, -2 * gamma]]))
    position, velocity = 0.1 / (2 * (1 - momentum) * h), 1 / (1 - momentum**2)
    assert found.squared == pytest.approx(2 * position * (1 - law[0, 0]), abs=1e-9 * position)
    assert found.velocity_correlation == pytest.approx(velocity * law[1, 1], abs=1e-9 * velocity)


def test_its_exponent_is_the_slope_of_its_logarithm():
    h = np.array([0.0, 0.3, 2.0])
    time, step = 3.0, 1e-4
    around = langevin_displacement(h, h + 1, [time * np.exp(-step), time * np.exp(step)], SETTINGS).squared
    slope = np.log(around[1] / around[0]) / (2 * step)
    assert langevin_displacement(h, h + 1, time, SETTINGS).exponent == pytest.approx(slope, rel=1e-6)


def test_small_steps_are_its_limit_of_first_order():
    errors = []
    for rate in (0.02, 0.01):
        steps = round(2.0 / rate)
        exact = stationary_displacement([0.5, 2.0], 1.0, steps, SGD(rate, momentum=0.5))
        limit = langevin_displacement([0.5, 2.0], 1.0, 2.0, SGD(rate, momentum=0.5)).squared
        errors.append(abs(exact / limit - 1))
    assert errors[1] < 0.02
    assert errors[0] / errors[1] == pytest.approx(2, abs=0.05)


@pytest.mark.parametrize(("changes", "argument"), [({"times": -1.0}, "times"), ({"curvature": -1.0}, "curvature")])
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        langevin_displacement(**{"curvature": 1.0, "noise": 1.0, "times": 1.0, "sgd": SGD(0.05)} | changes)
    assert caught.value.argument == argument
