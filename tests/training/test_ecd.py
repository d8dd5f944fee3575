"""Energy-conserving descent: golden step, sampled distribution, conserved quantities and equivariance."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope import Task, TwoLayer, observe
from dynascope.errors import InputError
from dynascope.theory.noise import ecd_quadratic_loss
from dynascope.training import Descent, ecd

POINT = jnp.array([1.0, 0.3])


def square(theta):
    return 0.5 * jnp.sum(theta**2)


@pytest.fixture(autouse=True)
def _double_precision():
    with jax.enable_x64(True):
        yield


def run(optimizer, loss, start, steps):
    """Positions, losses and states of a run."""

    def step(carry, _):
        theta, state = carry
        value, gradient = jax.value_and_grad(loss)(theta)
        updates, after = optimizer.update(gradient, state, theta, value=value)
        return (optax.apply_updates(theta, updates), after), (theta, value, after)

    return jax.lax.scan(step, (start, optimizer.init(start)), None, length=steps)[1]


def test_a_euler_step_has_the_golden_numbers():
    optimizer = ecd(0.1, eta=4.0, target_loss=-0.5, kick="euler")
    start = jnp.asarray(np.array([1.0, 0.3]))
    state = optimizer.init(start)._replace(count=jnp.asarray(1), direction=jnp.asarray(np.array([0.6, 0.8])))
    updates, after = optimizer.update(start, state, start, value=square(start))
    np.testing.assert_allclose(start + updates, [1.025253588517, 0.343559808612], rtol=2e-12)
    np.testing.assert_allclose(after.direction, [0.505071770335, 0.871196172249], rtol=2e-12)


def sampled(kick, learning_rate, noise):
    optimizer = ecd(learning_rate, eta=6.0, target_loss=-0.5, kick=kick, noise=noise)

    def member(seed):
        theta = jax.random.normal(jax.random.key(seed), (2,))
        state = optimizer.init(theta)._replace(key=jax.random.PRNGKey(seed))

        def step(carry, _):
            theta, state = carry
            value, gradient = jax.value_and_grad(square)(theta)
            updates, state = optimizer.update(gradient, state, theta, value=value)
            return (theta + updates, state), value

        return jax.lax.scan(step, (theta, state), None, length=5000)[1][1500:]

    return np.median(jax.jit(jax.vmap(member))(np.arange(4000)))


@pytest.mark.slow
def test_the_measure_preserving_kick_samples_the_density_of_theory():
    expected = ecd_quadratic_loss(2, eta=6.0, target_loss=-0.5).median
    assert abs(sampled("measure-preserving", 0.2, 0.1) / expected - 1) < 0.01
    # The published kick samples higher losses, even with steps a quarter as long.
    assert 0.08 < sampled("euler", 0.05, 0.1) / expected - 1 < 0.2


def test_the_kick_solves_the_equation_of_the_direction():
    # Many small Euler kicks at a fixed point.
    force, unit = np.array([0.7, -1.2, 0.4]), np.array([0.6, 0.0, 0.8])
    length, many = 0.5, 10_000
    slow = unit.copy()
    for _ in range(many):
        slow = slow - length / many * (force - slow * (slow @ force))
        slow /= np.linalg.norm(slow)
    # At θ = 0 with ∇F = w (F − F₀) (d − 1)·2/(ηd), the kick is that of the force w.
    power = 4.0 * 3 / (2 * 2)
    optimizer = ecd(length * 4.0**0.5, eta=4.0, target_loss=-1.0)
    start = jnp.zeros(3)
    state = optimizer.init(start)._replace(count=jnp.asarray(1), direction=jnp.asarray(unit))
    _, after = optimizer.update(jnp.asarray(force / power), state, start, value=jnp.asarray(0.0))
    np.testing.assert_allclose(after.direction, slow, atol=1e-4)
    assert abs(float(jnp.linalg.norm(after.direction)) - 1) < 1e-14


@pytest.mark.parametrize("kick", ["measure-preserving", "euler"])
def test_the_energy_is_conserved_to_the_order_of_the_steps(kick):
    def drift(learning_rate):
        steps = round(20 / learning_rate)
        states = run(ecd(learning_rate, eta=4.0, target_loss=-0.5, kick=kick), square, POINT, steps)[2]
        return float(jnp.max(jnp.abs(states.energy - states.initial_energy)))

    coarse, fine = drift(0.04), drift(0.01)
    assert fine < 0.3 * coarse < 0.3


@given(st.integers(0, 1000))
def test_rotations_commute_with_the_steps(seed):
    draw = np.random.default_rng(seed)
    rotation, target = np.linalg.qr(draw.normal(size=(3, 3)))[0], draw.normal(size=(4, 3))

    def loss(weights):
        return jnp.sum((weights @ weights.T - target @ target.T) ** 2)

    start = draw.normal(size=(4, 3))
    optimizer = ecd(0.1, eta=10.0, target_loss=-1.0)
    one = run(optimizer, loss, jnp.asarray(start), 20)[0]
    other = run(optimizer, loss, jnp.asarray(start @ rotation), 20)[0]
    np.testing.assert_allclose(one @ rotation, other, rtol=1e-9, atol=1e-10)


def test_weights_rest_at_the_target_loss_and_a_loss_that_is_not_finite_shows():
    optimizer = ecd(0.1, target_loss=1.0)
    state = optimizer.init(POINT)._replace(count=jnp.asarray(3))
    updates, after = optimizer.update(POINT, state, POINT, value=jnp.asarray(0.5))
    assert not np.any(updates)
    assert after.count == 4
    updates, _ = optimizer.update(POINT, state, POINT, value=jnp.asarray(np.nan))
    assert np.isnan(updates).all()


def test_an_ensemble_trains_and_a_target_above_the_initial_loss_is_named():
    task = Task(np.eye(2), np.diag([2.0, 1.0]))
    network = TwoLayer(2, 10, 2)
    run = observe(task, network, scale=[0.3, 0.5], method=Descent(ecd(0.1, eta=20.0), steps=300, save=[0, 300]))
    assert (run["loss"].isel(step=-1) < 0.02 * run["loss"].isel(step=0)).all()
    with pytest.raises(InputError, match=r"target_loss is above the initial loss by 3\.7") as found:
        observe(task, network, scale=0.3, method=Descent(ecd(0.1, target_loss=5.0), steps=3))
    assert found.value.argument == "target_loss"


def test_bad_input_is_named():
    optimizer = ecd(0.1)
    with pytest.raises(InputError, match="value is missing"):
        optimizer.update(POINT, optimizer.init(POINT), POINT)
    with pytest.raises(InputError, match="params is missing"):
        optimizer.update(POINT, optimizer.init(POINT), value=1.0)
    with pytest.raises(InputError, match="eta"):
        ecd(0.1, eta=0.0)
    with pytest.raises(InputError, match="per-tensor"):
        ecd(0.1, inner_product="per-tensor")
    with pytest.raises(InputError, match="single number"):
        optimizer.update(jnp.ones(1), optimizer.init(jnp.ones(1)), jnp.ones(1), value=jnp.asarray(1.0))
    with pytest.raises(InputError, match="target_loss is the initial loss"):
        ecd(0.1, target_loss=1.0).update(POINT, optimizer.init(POINT), POINT, value=jnp.asarray(1.0))
