"""BBI: golden step, conservation of the energy, bounces, and bad input."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from dynascope.errors import InputError
from dynascope.training import bbi

POINT = np.array([1.0, 0.3])


def square(theta):
    return 0.5 * jnp.sum(theta**2)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def trained(optimizer, steps):
    theta, states = jnp.asarray(POINT), []
    state = optimizer.init(theta)
    update = jax.jit(optimizer.update)
    for _ in range(steps):
        value, gradient = jax.value_and_grad(square)(theta)
        updates, state = update(gradient, state, theta, value=value)
        theta = optax.apply_updates(theta, updates)
        states.append(state)
    return states


def test_a_step_has_the_golden_numbers():
    optimizer, start = bbi(0.1, target_loss=-0.2), jnp.asarray(POINT)
    state = optimizer.init(start)._replace(
        count=jnp.asarray(1), momentum=jnp.asarray([0.3, 0.4]), energy=jnp.sqrt(0.745 * 0.995)
    )
    updates, after = optimizer.update(start, state, start, value=square(start))
    np.testing.assert_allclose(start + updates, [1.017215274969, 0.331988875838], atol=1e-12)
    np.testing.assert_allclose(after.momentum, [0.198951568686, 0.369685470606], atol=1e-12)


def test_the_vector_field_conserves_the_energy():
    rate, momentum = 1e-7, np.array([0.3, 0.4])

    def energy(theta, momentum):
        excess = square(theta) + 0.2
        return jnp.sqrt(excess * (excess + momentum @ momentum))

    optimizer, start = bbi(rate, target_loss=-0.2), jnp.asarray(POINT)
    state = optimizer.init(start)._replace(
        count=jnp.asarray(1), momentum=jnp.asarray(momentum), energy=energy(POINT, momentum)
    )
    updates, after = optimizer.update(start, state, start, value=square(start))
    assert abs(float(energy(start + updates, after.momentum) - energy(POINT, momentum))) < 1e-4 * rate


def test_bounces_turn_the_momentum_at_fixed_steps_and_without_progress():
    smooth, bouncing = trained(bbi(0.01, fixed_bounces=0), 20), trained(bbi(0.01, bounce_interval=20, seed=1), 20)
    assert all(
        np.array_equal(one.momentum, other.momentum) for one, other in zip(smooth[:19], bouncing[:19], strict=True)
    )
    turned = bouncing[19].momentum
    assert np.linalg.norm(turned - smooth[19].momentum) > 0.01
    np.testing.assert_allclose(np.linalg.norm(turned), np.linalg.norm(smooth[19].momentum), rtol=1e-12)
    # Far too large a rate: the loss makes no progress, so the counter runs up to the patience and is reset.
    waited = [int(state.waited) for state in trained(bbi(2.0, fixed_bounces=0, patience=5), 40)]
    assert max(waited) <= 4
    assert any(one > 0 and two == 0 for one, two in itertools.pairwise(waited))


def test_bad_input_is_named():
    optimizer, start = bbi(0.1, target_loss=1.0), jnp.asarray(POINT)
    with pytest.raises(InputError, match="target_loss is above the initial loss"):
        optimizer.update(start, optimizer.init(start), start, value=square(start))
    with pytest.raises(InputError, match="patience"):
        bbi(0.1, patience=0)
