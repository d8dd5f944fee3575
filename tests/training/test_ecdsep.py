"""ECDSep: golden step, conservation of the energy in continuous time, and bad input."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.training import ecdsep

POINT = np.array([1.0, 0.3])


def square(theta):
    return 0.5 * jnp.sum(theta**2)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def begun(optimizer, momentum, energy):
    state = optimizer.init(jnp.asarray(POINT))
    return state._replace(count=jnp.asarray(1), momentum=jnp.asarray(momentum), energy=jnp.asarray(energy))


def test_a_step_has_the_golden_numbers():
    optimizer = ecdsep(0.1, eta=2.0, target_loss=-0.2)
    state = begun(optimizer, [0.3, 0.4], np.log(1.25) + 2 * np.log(0.745))
    updates, after = optimizer.update(jnp.asarray(POINT), state, jnp.asarray(POINT), value=square(POINT))
    np.testing.assert_allclose(POINT + updates, [1.005719337576, 0.357923503962], atol=1e-12)
    np.testing.assert_allclose(after.momentum, [0.031543624161, 0.319463087248], atol=1e-12)


def test_the_vector_field_conserves_the_energy():
    # One step without rescaling, divided by the rate, is the Hamiltonian vector field.
    rate, momentum, eta, softening = 1e-7, np.array([0.3, 0.4]), 2.0, 1.5

    def energy(theta, momentum):
        return np.log(softening + momentum @ momentum) + eta * np.log(square(theta) + 0.2)

    optimizer = ecdsep(rate, eta=eta, target_loss=-0.2, softening=softening)
    state = begun(optimizer, momentum, energy(POINT, momentum))
    updates, after = optimizer.update(jnp.asarray(POINT), state, jnp.asarray(POINT), value=square(POINT))
    change = float(energy(POINT + updates, np.asarray(after.momentum)) - energy(POINT, momentum))
    assert abs(change) < 1e-6 * rate / 1e-2


def test_momenta_are_rescaled_to_the_conserved_energy():
    optimizer = ecdsep(0.05, eta=2.0, target_loss=-0.2, excess_energy=0.5)
    theta = jnp.asarray(POINT)
    state = optimizer.init(theta)
    for _ in range(20):
        value, gradient = jax.value_and_grad(square)(theta)
        updates, state = optimizer.update(gradient, state, theta, value=value)
        theta = optax.apply_updates(theta, updates)
    # Momentum before the latest kick, from the energy; it can be recovered from the position before the step.
    before = theta - updates
    kicked = state.momentum + 0.05 * 2.0 * before / (square(before) + 0.2)
    energy = jnp.log(1 + jnp.sum(kicked**2)) + 2 * jnp.log(square(before) + 0.2)
    np.testing.assert_allclose(energy, state.energy, rtol=1e-12)
    np.testing.assert_allclose(state.energy, np.log(1.5) + 2 * np.log(square(POINT) + 0.2), rtol=1e-12)


def test_noise_keeps_the_norm_of_the_momentum():
    state = begun(ecdsep(0.1), [0.3, 0.4], 0.1)
    quiet, noisy = (ecdsep(0.1, noise=noise).update(POINT, state, POINT, value=square(POINT))[1] for noise in (0, 0.5))
    assert np.linalg.norm(quiet.momentum - noisy.momentum) > 0.01
    np.testing.assert_allclose(np.linalg.norm(noisy.momentum), np.linalg.norm(quiet.momentum), rtol=1e-12)


def test_bad_input_is_named():
    optimizer = ecdsep(0.1, target_loss=1.0)
    with pytest.raises(InputError, match="target_loss is above the initial loss"):
        optimizer.update(
            jnp.asarray(POINT), optimizer.init(jnp.asarray(POINT)), jnp.asarray(POINT), value=square(POINT)
        )
    with pytest.raises(InputError, match="softening"):
        ecdsep(0.1, softening=0.0)
