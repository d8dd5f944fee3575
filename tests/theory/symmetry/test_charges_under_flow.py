from __future__ import annotations

import numpy as np
import pytest
from charged_networks import ATTENTION, COLUMNS, LINEAR, NEURONS, RELU
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.symmetry import gradient_flow_charge


def flowed(network, duration, decay=0.0):
    return solve_ivp(
        lambda _, weights: -network.gradient(weights) - decay * weights,
        (0, duration),
        network.start,
        "DOP853",
        rtol=1e-12,
        atol=1e-13,
    ).y[:, -1]


def hidden_matrix(weights):
    split = LINEAR.split(weights)
    return split["second"].T @ split["second"] - split["first"] @ split["first"].T


def test_the_matrix_of_a_linear_network_is_the_published_one_and_stays():
    published = [[-1.334385180043, -1.649631978177], [-1.649631978177, -0.251139367438]]
    np.testing.assert_allclose(hidden_matrix(LINEAR.start), published, rtol=0, atol=6e-13)
    end = flowed(LINEAR, 5.0)
    found = gradient_flow_charge(5.0, hidden_matrix(LINEAR.start))
    np.testing.assert_allclose(hidden_matrix(end), found, rtol=0, atol=1e-11)
    assert LINEAR.loss(end) == pytest.approx(0.431587808429, abs=1e-11)


def test_the_matrices_of_attention_are_the_published_ones_and_stay():
    assert ATTENTION.loss(ATTENTION.start) == pytest.approx(1.253906739543, abs=6e-13)

    def matrices(weights):
        parts = ATTENTION.split(weights)
        q, k, v, o = (parts[name] for name in ("query", "key", "value", "output"))
        return np.stack([q @ q.T - k @ k.T, v @ v.T - o.T @ o])

    published = [
        [[0.669049132101, 1.256736357248], [1.256736357248, 0.448595457415]],
        [[0.097820733533, -1.200590559642], [-1.200590559642, -1.110393803681]],
    ]
    np.testing.assert_allclose(matrices(ATTENTION.start), published, rtol=0, atol=6e-13)
    found = gradient_flow_charge(2.0, matrices(ATTENTION.start))
    np.testing.assert_allclose(matrices(flowed(ATTENTION, 2.0)), found, rtol=0, atol=1e-11)


def test_decay_takes_squares_twice_as_fast_as_sums():
    end = flowed(RELU, 1.5, decay=0.3)
    for degree, diagonals in ((1, COLUMNS), (2, NEURONS)):
        before, after = (weights**degree @ np.transpose(diagonals) for weights in (RELU.start, end))
        found = gradient_flow_charge(1.5, before, weight_decay=0.3, degree=degree)
        # Kinks of ReLU cost the integrator digits.
        np.testing.assert_allclose(after, found, rtol=0, atol=1e-8)


@given(time=st.floats(0, 1e3), more=st.floats(0, 1e3), decay=st.floats(0, 1), degree=st.sampled_from([1, 2]))
def test_two_spans_of_time_are_one(time, more, decay, degree):
    chosen = {"weight_decay": decay, "degree": degree}
    twice = gradient_flow_charge(more, gradient_flow_charge(time, [1.0, -2.0], **chosen), **chosen)
    # The exponent is rounded to 1e-16 of up to four thousand.
    np.testing.assert_allclose(twice, gradient_flow_charge(time + more, [1.0, -2.0], **chosen), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"times": -1.0}, "times"),
        ({"initial": np.inf}, "initial"),
        ({"weight_decay": -1.0}, "weight_decay"),
        ({"degree": 3}, "degree"),
    ],
)
def test_bad_input_is_refused_by_name(changes, argument):
    with pytest.raises(InputError) as caught:
        gradient_flow_charge(**{"times": 1.0, "initial": 1.0} | changes)
    assert caught.value.argument == argument
