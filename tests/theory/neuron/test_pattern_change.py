from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.flows import pattern_flow
from dynascope.theory import LayerRates
from dynascope.theory.neuron import pattern_change
from dynascope.theory.neuron.state import weights_of

X, Y = np.array([[1.0, 0.0], [0.5, np.sqrt(0.75)]]), np.array([1.0, 0.8])
SCALE, ANGLE = 0.3, np.deg2rad(-40)
MAP = SCALE**2 * np.array([np.cos(ANGLE), np.sin(ANGLE)])
GOLDEN = np.array(
    [
        [-1, 3.6622291317, 0.1619264910, 0.9922940359],
        [-0.25, 1.4211060406, 0.2931370613, 0.4674517549],
        [0, 0.6777709166, 0.3497406080, 0.2410375682],
        [0.25, 0.2413393445, 0.3609070572, 0.1963717712],
        [1, 0.0676761478, 0.3622926017, 0.1908295931],
        [4, 0.0170639957, 0.3624022680, 0.1903909281],
    ]
)


def test_golden_times_and_losses():
    imbalances, *expected = GOLDEN.T
    change = pattern_change(X, Y, *weights_of(np.broadcast_to(MAP, (6, 2)), imbalances))
    # Stored with ten decimals.
    for found, numbers in zip((change.time, change.loss, change.used), expected, strict=True):
        np.testing.assert_allclose(found, numbers, rtol=0, atol=6e-11)
    assert change.sample.tolist() == [1] * 6
    assert change.status.tolist() == ["crosses"] * 6


def test_the_share_that_the_initial_function_uses_does_not_depend_on_the_imbalance():
    f = MAP[0]
    np.testing.assert_allclose(1 - (1 - f) ** 2, 0.1331347246, atol=6e-11)


def test_upstream_limit():
    (a,), (w,) = weights_of(MAP[None], np.array([1e4]))
    change = pattern_change(X, Y, a, w)
    boundary = -w[1] * X[1, 1] / X[1, 0]
    # With a constant output weight, f relaxes to y₁ at the rate a²/n, from its initial value to a u*.
    f = np.array([MAP[0], a * boundary])
    exact = 2 / a**2 * np.log((1 - f[0]) / (1 - f[1]))
    np.testing.assert_allclose(change.time, exact, rtol=1e-6)


@given(
    a=st.floats(-1.5, 1.5).filter(lambda a: abs(a) > 0.05),
    seed=st.integers(0, 10_000),
    rates=st.builds(LayerRates, st.floats(0.3, 3), st.floats(0.3, 3)),
)
def test_the_first_change_is_that_of_the_integrated_flow(a, seed, rates):
    rng = np.random.default_rng(seed)
    x, y, w = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=3) / 2
    assume(np.sum(x @ w > 0) == 1)
    change = pattern_change(x, y, a, w, rates=rates)
    end = 30.0 if np.isinf(change.time) else 1.01 * float(change.time)
    assume(end < 100)
    flow = pattern_flow([end], x, y, [a], [w], rates=rates)
    if change.status == "never":
        assert flow.flip_time.size == 0
    else:
        np.testing.assert_allclose(flow.flip_time[0], change.time, rtol=1e-7)
        np.testing.assert_allclose(flow.flip_loss[0], change.loss, rtol=1e-8)
        assert flow.flip_sample[0] == change.sample
        assert (flow.status == "sliding") == (change.status == "slides")


def test_status_of_neurons_that_never_change_slide_or_die():
    weights = SCALE * np.array([np.cos(ANGLE), np.sin(ANGLE)])
    far = np.array([0.1, -3.0])
    assert pattern_change(X, Y, SCALE, far).status == "never"
    assert np.isinf(pattern_change(X, Y, SCALE, far).time)
    assert pattern_change(X, [1.0, -8.0], SCALE, weights).status == "slides"
    dead = pattern_change(X, [-1.0, 0.8], SCALE, weights)
    assert (dead.status, dead.sample) == ("dies", 0)
    np.testing.assert_allclose(dead.weights @ X[0], 0, atol=1e-15)


def test_an_output_weight_that_changes_its_sign_turns_the_neuron_back_to_its_boundary():
    # The neuron first loses u, then a changes its sign and u grows again, until the second sample becomes active.
    a, w = 0.1, np.array([1.0, -0.7])
    change = pattern_change(X, [-2.0, 0.8], a, w)
    flow = pattern_flow([1.01 * float(change.time)], X, [-2.0, 0.8], [a], [w])
    assert change.output_weight < 0
    np.testing.assert_allclose(flow.flip_time, [change.time], rtol=1e-8)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((X, Y, 0.3, [0.5, 0.5]), "initial_weights"),
        ((X, Y, 0.3, [-0.5, -0.5]), "initial_weights"),
        ((X, Y, 0.3, [0.0, -0.5]), "initial_weights"),
        ((X, [0.0, 1.0], 0.3, [0.5, -0.5]), "targets"),
        (([[1.0, 0.0], [-2.0, 0.0]], Y, 0.3, [0.5, -0.5]), "inputs"),
    ],
)
def test_bad_input_is_refused_by_name(arguments, name):
    with pytest.raises(InputError) as caught:
        pattern_change(*arguments)
    assert caught.value.argument == name
