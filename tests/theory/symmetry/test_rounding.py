from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from charged_networks import BATCH_NORM, CHANNELS, COLUMNS, NEURONS, RELU
from hypothesis import given
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.symmetry import quadratic_charge, rounding_level, scheduled_charge, translation_charge

STEPS = 2000
CLIPPED = {
    "": lambda slope: slope,
    "by value": lambda slope: jnp.clip(slope, -0.02, 0.02),
    "by norm": lambda slope: slope * jnp.minimum(1, 0.02 / jnp.linalg.norm(slope)),
}


def trained(network, dtype, *, learning_rate, weight_decay=0.0, momentum=0.0, clip="", steps=STEPS, shared=3):
    """Train in a precision, with a batch that changes, and return the weights and the buffers at every step."""
    numbers = [jnp.asarray(each, dtype) for each in (learning_rate, weight_decay, momentum)]
    shares = jnp.asarray(np.stack([np.roll(np.arange(5) < shared, k) / shared for k in range(5)]), dtype)

    @jit
    def run(weights, rate, decay, beta):
        def step(state, k):
            weights, buffer = state
            slope = jax.grad(network._loss)(weights, shares[k % 5])
            slope = CLIPPED[clip](slope)
            buffer = beta * buffer + (slope + decay * weights)
            return (weights - rate * buffer, buffer), (weights, buffer)

        (last, _), (path, buffers) = jax.lax.scan(step, (weights, 0 * weights), jnp.arange(steps))
        return jnp.concatenate([path, last[None]]), buffers

    weights, buffers = run(jnp.asarray(network.start, dtype), *numbers)
    return np.asarray(weights, np.float64), np.asarray(buffers, np.float64), [float(each) for each in numbers]


@functools.cache
def recorded(name, dtype, momentum, clip=""):
    """Residuals of the charges of a run, and the levels of rounding of each."""
    network, diagonals = {"relu": (RELU, NEURONS), "batch norm": (BATCH_NORM, CHANNELS)}[name]
    with jax.enable_x64(True):
        # Full of steps, and yet finite for all of them.
        weights, buffers, (rate, decay, beta) = trained(
            network, dtype, learning_rate=0.02, weight_decay=1e-3, momentum=momentum, clip=clip
        )
    diagonals = np.transpose(diagonals)
    charges = weights**2 @ diagonals
    found = scheduled_charge(charges[0], buffers**2 @ diagonals, learning_rate=rate, weight_decay=decay, momentum=beta)
    level = rounding_level(
        weights**2 @ np.abs(diagonals), (rate * buffers) ** 2 @ np.abs(diagonals), momentum=beta, dtype=dtype
    )
    return np.abs(charges - found), level


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("name", "momentum"), [("relu", 0.0), ("relu", 0.9), ("batch norm", 0.0)])
def test_no_charge_of_a_whole_run_leaves_either_level(name, momentum, dtype):
    residual, level = recorded(name, dtype, momentum)
    assert (residual <= level.bound).all()
    assert (residual <= level.warning).all()
    # And there is something to see.
    assert residual.max() > np.finfo(dtype).eps / 10


@pytest.mark.slow
def test_gradients_that_are_nothing_but_rounding_stay_within_the_bound():
    # Two samples that a norm makes ±1 whatever the weights are.
    with jax.enable_x64(True):
        weights, buffers, (rate, decay, _) = trained(
            BATCH_NORM, "float32", learning_rate=0.02, weight_decay=1e-3, shared=2
        )
    diagonals = np.transpose(CHANNELS)
    charges = weights**2 @ diagonals
    found = scheduled_charge(charges[0], buffers**2 @ diagonals, learning_rate=rate, weight_decay=decay)
    level = rounding_level(charges, (rate * buffers) ** 2 @ diagonals)
    assert (np.abs(charges - found) <= level.bound).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradients_clipped_by_value_are_proved_to_break_the_law(dtype):
    residual, level = recorded("relu", dtype, 0.9, clip="by value")
    assert (residual[-1] > level.bound[-1]).any()


@pytest.mark.slow
def test_gradients_clipped_by_their_norm_break_no_law():
    residual, level = recorded("relu", "float32", 0.9, clip="by norm")
    assert (residual <= level.warning).all()


def test_steps_just_below_half_a_unit_in_the_last_place_reach_the_bound_and_not_more():
    # Above one the next number is 2⁻²³ away, and less than half of that moves no weight.
    weights = start = np.full(10, 1 + 2.0**-20, np.float32)
    # Decay of 0.49 of that distance, and no gradient.
    rate, decay = 1.0, float(np.float32(0.49 * 2.0**-23))
    for _ in range(STEPS):
        weights = weights - np.float32(decay) * weights
    np.testing.assert_array_equal(weights, start)
    size = np.full(STEPS + 1, np.sum(np.float64(start) ** 2))
    moved = size[1:] * decay**2
    residual = np.abs(size - scheduled_charge(size[0], moved, learning_rate=rate, weight_decay=decay))
    level = rounding_level(size, moved, gradient_roundings=1)
    assert (residual <= level.bound).all()
    # 0.49 of a unit is lost at each step, where the bound allows one half.
    assert residual[-1] > 0.95 * level.bound[-1]
    assert residual[-1] > 10 * level.warning[-1]


@pytest.mark.parametrize(("weight_decay", "lost"), [(0.0, False), (1e-2, False), (5e-7, True), (2.9e-6, True)])
def test_dead_units_decay_within_the_bound(weight_decay, lost):
    rate = np.float32(0.01)
    decay = np.float32(weight_decay)
    weights = (1 + np.random.default_rng(0).uniform(size=20)).astype(np.float32)
    path, buffers = [weights], []
    for _ in range(STEPS):
        buffer = decay * weights
        weights = weights - rate * buffer
        path.append(weights)
        buffers.append(buffer)
    path, buffers = np.array(path, np.float64), np.array(buffers, np.float64)
    size = np.sum(path**2, axis=1)
    found = scheduled_charge(size[0], np.sum(buffers**2, axis=1), learning_rate=float(rate), weight_decay=float(decay))
    residual = np.abs(size - found)
    level = rounding_level(size, np.sum((float(rate) * buffers) ** 2, axis=1))
    assert (residual <= level.bound).all()
    if weight_decay == 0:
        np.testing.assert_array_equal(residual, 0)
    if lost:
        # Nothing moves where the law says that it decays, step after step.
        assert (path == path[0]).all()


def test_decoupled_decay_rounds_three_times():
    rate, decay = 0.1, 0.3
    factor = np.float32(1 - rate * decay)
    weights = np.random.default_rng(0).normal(size=50).astype(np.float32)
    push = (1e-3 * np.random.default_rng(1).normal(size=(300, 50))).astype(np.float32)
    path = [weights]
    for step in push:
        # Pushes of a loss whose gradient is orthogonal to the weights.
        step = (step - weights * (weights @ step) / (weights @ weights)).astype(np.float32)
        weights = factor * weights - np.float32(rate) * step
        path.append(weights)
    path = np.array(path, np.float64)
    size = np.sum(path**2, axis=1)
    steps = np.diff(path, axis=0) + rate * decay * path[:-1]
    found = scheduled_charge(
        size[0],
        np.sum(steps**2, axis=1) / rate**2,
        learning_rate=rate,
        weight_decay=decay,
        optimizer="decoupled",
    )
    residual = np.abs(size - found)
    level = rounding_level(size, np.sum(steps**2, axis=1), weight_roundings=3)
    assert (residual <= level.bound).all()
    assert residual.max() > 1e-8


@pytest.mark.slow
def test_sums_of_weights_have_levels_of_degree_one():
    with jax.enable_x64(True):
        weights, _, (rate, decay, beta) = trained(
            RELU, "float32", learning_rate=0.02, weight_decay=1e-3, momentum=0.9, steps=500
        )
    columns = np.transpose(COLUMNS)
    sums = weights @ columns
    found = translation_charge(np.arange(501), sums[0], SGD(rate, weight_decay=decay, momentum=beta))
    moved = np.abs(np.diff(weights, axis=0)) @ np.abs(columns)
    level = rounding_level(np.abs(weights) @ np.abs(columns), moved, momentum=beta, degree=1)
    residual = np.abs(sums - found)
    assert (residual <= level.bound).all()
    assert (residual <= level.warning).all()
    assert residual.max() > 1e-8


@given(seed=st.integers(0, 10**6), momentum=st.floats(0, 0.95), degree=st.sampled_from([1, 2]))
def test_levels_only_grow_scale_with_the_charge_and_warn_before_they_prove(seed, momentum, degree):
    random = np.random.default_rng(seed)
    sizes, steps = random.uniform(size=(31, 2)), random.uniform(size=(30, 2))
    chosen = {"momentum": momentum, "degree": degree}
    level = rounding_level(sizes, steps, **chosen)
    assert (level.warning <= level.bound).all()
    single = rounding_level(sizes, steps, **chosen, dtype="float64")
    assert (single.bound < level.bound)[1:].all()
    scaled = rounding_level(4 * sizes, 4 * steps, **chosen)
    np.testing.assert_allclose(scaled.bound, 4 * level.bound, rtol=1e-13)
    np.testing.assert_allclose(scaled.warning, 4 * level.warning, rtol=1e-13)


def test_two_thousand_steps_of_unit_size_are_machine_epsilon_times_steps_and_thrice_its_root():
    level = rounding_level(np.ones(STEPS + 1), np.zeros(STEPS))
    epsilon = float(np.finfo(np.float32).eps)
    assert level.bound[-1] == pytest.approx(epsilon * STEPS, rel=1e-6)
    assert level.warning[-1] == pytest.approx(3 * epsilon * np.sqrt(STEPS), rel=1e-6)


def test_the_law_itself_is_rounded_less_than_the_levels_say():
    random = np.random.default_rng(0)
    q = random.uniform(0, 1e-6, STEPS)
    exact = quadratic_charge(1.0, q.astype(np.longdouble), SGD(0.1, momentum=0.9))
    change, charge, before = np.longdouble(0), np.longdouble(1), np.longdouble(0)
    for now in q.astype(np.longdouble):
        change, before = np.longdouble(0.9) * (change + before) + now, now
        charge = charge + change
    level = rounding_level(exact, q, momentum=0.9, dtype="float64", gradient_roundings=1)
    assert abs(float(charge - exact[-1])) <= level.warning[-1]


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"sizes": [1.0]}, "sizes"),
        ({"sizes": [1.0, -1.0]}, "sizes"),
        ({"displacements": [-1.0]}, "displacements"),
        ({"momentum": 1.0}, "momentum"),
        ({"dtype": "int8"}, "dtype"),
        ({"recorded": "frob"}, "recorded"),
        ({"degree": 3}, "degree"),
        ({"weight_roundings": 0}, "weight_roundings"),
        ({"gradient_roundings": 1.5}, "gradient_roundings"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        rounding_level(**{"sizes": [1.0, 1.0], "displacements": [0.1]} | changes)
    assert caught.value.argument == argument
