from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from charged_networks import descend
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.compilation import float64_jit, jit
from dynascope.errors import InputError
from dynascope.theory import SGD
from dynascope.theory.symmetry import convergence_orders, modified_flow_ratio, modified_loss, shifted_start

START = np.array([1.0, -0.8])


def quartic(point):
    x, y = point
    return x**2 / 2 + 0.3 * x * y + y**2 + x**4 / 4 + 0.1 * y**4


SLOPE = float64_jit(jax.grad(quartic))


def flowed(loss, start, time=0.8):
    slope = float64_jit(jax.grad(loss))
    return solve_ivp(lambda _, point: -slope(point), (0, time), start, "DOP853", rtol=1e-12, atol=1e-14).y[:, -1]


def stepped(rate, time=0.8, momentum=0.0, decay=0.0):
    chosen = {"learning_rate": rate, "momentum": momentum, "weight_decay": decay}
    return descend(lambda point, _: SLOPE(point), START, round(time / rate), **chosen).weights[-1]


def test_flow_modified_flow_and_steps_end_where_published():
    np.testing.assert_allclose(flowed(quartic, START), [0.382901003188, -0.214684366794], rtol=0, atol=1e-11)
    modified = flowed(modified_loss(quartic, SGD(0.02)), START)
    np.testing.assert_allclose(modified, [0.377277429152, -0.209758762620], rtol=0, atol=1e-11)
    np.testing.assert_allclose(stepped(0.02), [0.377087758562, -0.209613370718], rtol=0, atol=6e-13)


def test_plain_flow_is_of_first_order_and_the_modified_one_of_second():
    rates = [0.02, 0.01, 0.005]
    plain = [np.linalg.norm(flowed(quartic, START) - stepped(rate)) for rate in rates]
    modified = [np.linalg.norm(flowed(modified_loss(quartic, SGD(rate)), START) - stepped(rate)) for rate in rates]
    # What is left of the next order.
    np.testing.assert_allclose(convergence_orders(rates, np.transpose([plain, modified])), [[1, 2]] * 2, atol=0.03)


def test_momentum_needs_the_shifted_start_and_counts_decay():
    rates, chosen = [0.004, 0.002, 0.001], {"momentum": 0.5, "weight_decay": 0.1}
    shifted, unshifted = [], []
    for rate in rates:
        loss = modified_loss(quartic, SGD(**chosen, learning_rate=rate))
        start = shifted_start(START, SLOPE(START), SGD(**chosen, learning_rate=rate))
        end = stepped(rate, 0.4, momentum=0.5, decay=0.1)
        shifted.append(np.linalg.norm(flowed(loss, start, 0.4) - end))
        unshifted.append(np.linalg.norm(flowed(loss, START, 0.4) - end))
    found = convergence_orders(rates, np.transpose([shifted, unshifted]))
    # Measured with the shift: 2.03 and 1.93 in the source of these numbers.
    np.testing.assert_allclose(found, [[2, 1]] * 2, atol=0.1)


def test_weights_may_be_a_tree_and_the_loss_may_take_more():
    def loss(weights, scale, *, power=2):
        return scale * jnp.sum(weights["a"] ** power) / 2 + weights["b"] ** 2

    modified = modified_loss(loss, SGD(0.1, momentum=0.5, weight_decay=0.2))
    compiled = jit(modified, static_argnames="power")
    a, b = np.array([1.0, 2.0]), 3.0
    with jax.enable_x64(True):
        found = float(compiled({"a": a, "b": b}, 2.0, power=2))
    value, slope = 2 * 5 / 2 + 9 + 0.1 * 14, np.array([2.2, 4.4, 6.6])
    assert found == pytest.approx(value / 0.5 + 0.1 * 1.5 / (4 * 0.125) * slope @ slope, rel=1e-14)


@given(curvature=st.floats(0.1, 2), rate=st.floats(1e-4, 2e-3), momentum=st.floats(0, 0.6))
def test_on_a_parabola_it_is_as_near_as_its_ratio_says(curvature, rate, momentum):
    chosen = {"learning_rate": rate, "momentum": momentum}
    count = 40
    steps = descend(lambda x, _: curvature * x, np.ones(1), count, **chosen).weights[-1, 0]
    bend = curvature / (1 - momentum) + rate * (1 + momentum) / (2 * (1 - momentum) ** 3) * curvature**2
    start = shifted_start([1.0], [curvature], SGD(**chosen))[0]
    ratio = float(modified_flow_ratio(curvature, SGD(**chosen)))
    # The next order, at each of the steps; what momentum forgets is below it after forty.
    assert abs(start * np.exp(-bend * rate * count) - steps) < 10 * count * ratio**2 * (ratio + rate) + 3 * ratio**2


def test_the_ratio_counts_decay():
    found = modified_flow_ratio([2.0, 4.0], SGD(0.1, momentum=0.5, weight_decay=1.0))
    np.testing.assert_allclose(found, [1.2, 2.0], rtol=1e-14)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: modified_loss(None, SGD(0.1)), "loss"),
        (lambda: modified_loss(quartic, SGD(0.0)), "learning_rate"),
        (lambda: modified_loss(quartic, SGD(0.1, momentum=1.0)), "momentum"),
        (lambda: shifted_start([1.0], [1.0, 2.0], SGD(0.1)), "gradient"),
        (lambda: shifted_start([1.0], [1.0], SGD(0.1, weight_decay=-1.0)), "weight_decay"),
        (lambda: modified_flow_ratio(-1.0, SGD(0.1)), "curvature"),
        (lambda: convergence_orders([0.1], [0.1]), "learning_rates"),
        (lambda: convergence_orders([0.1, 0.1], [0.1, 0.2]), "learning_rates"),
        (lambda: convergence_orders([0.1, 0.2], [0.1, 0.0]), "errors"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
