from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_lyapunov

from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.noise import thermometer
from dynascope.theory.symmetry import equilibration_steps, equilibrium_angular_step

GOLDEN = SGD(0.05, momentum=0.9, weight_decay=0.1, batch_size=8)


def test_golden_numbers():
    found = thermometer(2.0, 0.7, GOLDEN)
    assert found.position_variance == pytest.approx(0.010712674786, abs=6e-13)
    assert found.velocity_variance == pytest.approx(0.473612990528, abs=6e-13)


@given(rho=st.floats(0.01, 6.0), momentum=st.floats(0.0, 0.95), noise=st.floats(0.1, 3.0))
def test_it_is_the_lyapunov_equation_and_temperatures_are_equal(rho, momentum, noise):
    rate, decay = 0.1, 0.01
    found = thermometer(rho, noise, SGD(rate, momentum=momentum, weight_decay=decay))
    h = rho + decay
    matrix, kick = np.array([[1 - rate * h, rate * momentum], [-h, momentum]]), np.array([[rate], [1.0]])
    moments = solve_discrete_lyapunov(matrix, noise * kick @ kick.T)
    np.testing.assert_allclose([found.position_variance, found.velocity_variance], np.diag(moments), rtol=1e-7)
    # Equipartition, exactly, between position and velocity.
    temperature = [h * found.position_variance, rate * (1 + momentum) / 2 * found.velocity_variance]
    np.testing.assert_allclose(temperature, found.temperature, rtol=1e-12)
    slowest = np.abs(np.linalg.eigvals(matrix)).max()
    assert np.exp(-1 / found.relaxation_steps) == pytest.approx(slowest, abs=1e-6)


def test_directions_without_a_stationary_law_are_told():
    found = thermometer([1.0, 0.0, -1.0, 100.0], 1.0, SGD(0.05))
    np.testing.assert_array_equal(found.stationary, [True, False, False, False])
    for part in found[1:5]:
        np.testing.assert_array_equal(np.isinf(part), [False, True, True, True])


def test_normalised_layers_are_those_of_the_symmetry():
    sgd = SGD(0.05, weight_decay=0.1, momentum=0.9)
    found = thermometer(2.0, 0.7, GOLDEN)
    assert found.angular_step == equilibrium_angular_step(sgd) == pytest.approx(np.sqrt(2 * 0.05 * 0.1 / 1.9))
    assert found.equilibration_steps == equilibration_steps(sgd)
    without = thermometer(2.0, 0.7, SGD(0.05))
    assert (without.angular_step, without.equilibration_steps) == (0, np.inf)


def test_noise_of_another_shape_is_refused_by_name():
    with pytest.raises(InputError) as caught:
        thermometer(2.0, [1.0, 1.0], GOLDEN)
    assert caught.value.argument == "noise"
