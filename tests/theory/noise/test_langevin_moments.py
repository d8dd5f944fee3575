from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import langevin_moments, langevin_stationary_moments

GOLDEN = {"curvature": 2.0, "noise": 0.7, "sgd": SGD(0.05, momentum=0.9, weight_decay=0.1, batch_size=8)}


def test_moments_from_a_start_are_the_published_ones():
    found = langevin_moments(0.83, **GOLDEN, position=1.0, velocity=-0.5)
    published = [0.254434240529, 1.916830264477, 0.008840182075, 0.002149835918, 0.365220859144]
    np.testing.assert_allclose([float(part) for part in found], published, rtol=0, atol=6e-13)


@given(
    curvature=st.floats(-0.5, 5),
    momentum=st.floats(0, 0.95),
    decay=st.floats(0, 0.5),
    position=st.floats(-2, 2),
    time=st.floats(0.01, 5),
)
def test_moments_solve_the_equations_of_moments(curvature, momentum, decay, position, time):
    rate, h = 0.1, curvature + decay
    gamma, square = (1 - momentum) / (rate * (1 + momentum)), 2 * h / (rate * (1 + momentum))
    strength = 4 * 0.3 / ((1 + momentum) ** 2 * rate * 2)

    def motion(_, state):
        a, b, aa, ab, bb = state
        return [
            b,
            -2 * gamma * b - square * a,
            2 * ab,
            bb - 2 * gamma * ab - square * aa,
            -4 * gamma * bb - 2 * square * ab + strength,
        ]

    path = solve_ivp(motion, (0, time), [position, 0.5, 0, 0, 0], "DOP853", rtol=1e-11, atol=1e-13).y[:, -1]
    found = langevin_moments(
        time,
        SGD(rate, momentum=momentum, weight_decay=decay, batch_size=2),
        curvature=curvature,
        noise=0.3,
        position=position,
        velocity=0.5,
    )
    # What the solver keeps over some hundred periods.
    np.testing.assert_allclose([float(part) for part in found], path, rtol=1e-8, atol=1e-9)


def test_late_moments_are_stationary_and_a_flat_mode_diffuses():
    late, stationary = langevin_moments(1e4, **GOLDEN, position=3.0), langevin_stationary_moments(**GOLDEN)
    np.testing.assert_allclose(
        [float(part) for part in late], [float(part) for part in stationary], rtol=1e-12, atol=1e-15
    )
    sgd = SGD(0.05, momentum=0.9, batch_size=8)
    flat = langevin_moments([1e6, 2e6], sgd, curvature=[0.0, 1e-14], noise=0.7).position_variance
    # The law of diffusion, after the momentum time: what a mode of curvature 1e-14 loses of it is below a millionth.
    law = 2 * (0.7 / 8) * 0.05 / (2 * 0.1**2) * 1e6
    np.testing.assert_allclose(np.diff(flat, axis=0), [[law, law]], rtol=1e-6)


def test_early_variances_keep_their_digits():
    # D t³/3 and D t up to the first order of γ t.
    rate, time = 0.05, 1e-7
    strength = 4 * 0.7 / (1.9**2 * rate * 8)
    found = langevin_moments(time, **GOLDEN)
    assert found.position_variance == pytest.approx(strength * time**3 / 3, rel=1e-6)
    assert found.velocity_variance == pytest.approx(strength * time, rel=1e-6)


def test_times_and_modes_are_the_axes():
    found = langevin_moments([0.0, 1.0], **GOLDEN | {"curvature": [1.0, 2.0, 3.0]}, position=[1.0, 2.0, 3.0])
    assert found.position.shape == (2, 3)
    np.testing.assert_array_equal(found.position[0], [1, 2, 3])
    np.testing.assert_array_equal(found.position_variance[0], 0)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [({"times": -1.0}, "times"), ({"position": [1.0, 2.0]}, "position"), ({"velocity": np.nan}, "velocity")],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        langevin_moments(**{"times": 1.0} | GOLDEN | changes)
    assert caught.value.argument == argument
