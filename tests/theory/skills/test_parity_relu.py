from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.skills.parity_relu import (
    INPUTS,
    TiedWeights,
    fixed_point,
    half_saturation_times,
    integrated_path,
    loss,
    mode_strengths,
    network_outputs,
    velocity,
)

GOLDEN = TiedWeights(0.3**2, 0.4**2, 0.5**2, -0.2)
SMALL = TiedWeights(1e-4, 1e-4, 1e-4, 0.0)

sizes = st.floats(0.1, 2)


def relu_network(alpha, beta, gamma, bias):
    """The network as it is built, from its tied weight matrices."""
    weights = np.array([[-alpha, alpha, -alpha], [-beta, beta, -beta], [gamma, -gamma, gamma]])
    hidden = np.maximum(INPUTS @ weights.T + [0, beta, -gamma], 0)
    return hidden @ [-2 * alpha, beta, gamma] + bias


def squared(parameters):
    return TiedWeights(*np.square(parameters[:3]), parameters[3])


def test_velocity_loss_and_strengths_golden():
    # The golden numbers are exact decimals.
    np.testing.assert_allclose(velocity(GOLDEN, target_scale=5.0), [0.4446, 0.4192, 0.61875, 0.09125], rtol=1e-13)
    np.testing.assert_allclose(loss(GOLDEN, 5.0), 12.13943125, rtol=1e-13)
    np.testing.assert_allclose(mode_strengths(GOLDEN, 5.0), [0.0045, 0.004, 0.00625], rtol=1e-13)


def test_half_saturation_golden():
    found = half_saturation_times(SMALL, target_scale=5.0)
    # The golden times are the first points past half strength of a grid of spacing 0.002.
    np.testing.assert_allclose(np.ceil(found / 0.002) * 0.002, [3.046, 3.598, 4.748], atol=1e-12)
    # By the Radau and Dormand-Prince integrators at a tolerance of 1e-11, which agree to all digits given.
    np.testing.assert_allclose(found, [3.04464336, 3.59750193, 4.74652074], atol=1e-7)


@settings(max_examples=12, deadline=None)
@given(sizes, sizes, sizes, st.floats(-2, 2), st.floats(0.5, 5))
def test_velocity_is_the_gradient_flow_of_the_tied_weights(alpha, beta, gamma, bias, target_scale):
    parameters = np.array([alpha, beta, gamma, bias])
    targets = target_scale * (-1) ** INPUTS.sum(axis=1)

    def network_loss(values):
        return np.sum((relu_network(*values) - targets) ** 2) / 16

    np.testing.assert_allclose(network_outputs(squared(parameters)), relu_network(*parameters), atol=1e-13)
    np.testing.assert_allclose(loss(squared(parameters), target_scale), network_loss(parameters), rtol=1e-12)
    step = 1e-5
    gradient = [(network_loss(parameters + d) - network_loss(parameters - d)) / (2 * step) for d in step * np.eye(4)]
    flow = -0.7 * np.array(gradient) * np.append(2 * parameters[:3], 1)
    # Differences over 2e-5 of a loss of order 100 carry 1e-9 of rounding and as much of curvature.
    found = velocity(squared(parameters), target_scale=target_scale, learning_rate=0.7)
    np.testing.assert_allclose(found, flow, atol=1e-7)


@settings(max_examples=10, deadline=None)
@given(st.floats(0.1, 20))
def test_the_fixed_point_is_the_parity(target_scale):
    end = fixed_point(target_scale)
    targets = target_scale * (-1) ** INPUTS.sum(axis=1)
    np.testing.assert_allclose(network_outputs(end), targets, rtol=1e-13)
    np.testing.assert_allclose(velocity(end, target_scale=target_scale), 0, atol=1e-12 * target_scale**2)
    np.testing.assert_allclose(mode_strengths(end, target_scale), [0.5, 0.25, 0.25], rtol=1e-13)


def test_the_path_is_that_of_the_tied_network():
    times = np.linspace(0, 8, 9)
    start = np.array([0.1, 0.05, 0.2, 0.3])

    def flow(_, parameters):
        rates = velocity(squared(parameters), target_scale=2.0, learning_rate=0.5)
        return rates / np.append(2 * parameters[:3], 1)

    direct = solve_ivp(flow, (0, 8), start, "DOP853", times, rtol=1e-11, atol=1e-13).y
    path = integrated_path(times, squared(start), target_scale=2.0, learning_rate=0.5)
    # Both integrators are good to 1e-10 a step.
    np.testing.assert_allclose(np.array(path), np.array(squared(direct)), atol=1e-7)


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(st.floats(1e-12, 1e-2), st.floats(-1, 1))
def test_a_small_start_learns_the_parity_and_never_loses_ground(size, bias):
    path = integrated_path(np.linspace(0, 60, 40), TiedWeights(size, size, size, bias), target_scale=3.0)
    levels = loss(path, 3.0)
    # The integrator may add its own error where nothing is left to lose.
    assert np.all(np.diff(levels) <= 1e-8)
    assert levels[-1] < 1e-8
    assert path.bias[-1] == pytest.approx(-3.0, abs=1e-4)


def test_half_strength_is_there_at_the_half_saturation_times_and_scales_with_the_clock():
    start = TiedWeights(1e-4, 2e-4, 5e-5, 0.1)
    times = half_saturation_times(start, target_scale=5.0)
    path = integrated_path(times, start, target_scale=5.0)
    halves = np.diag(mode_strengths(path, 5.0))
    np.testing.assert_allclose(halves, [0.25, 0.125, 0.125], rtol=1e-7)
    np.testing.assert_allclose(half_saturation_times(start, target_scale=5.0, learning_rate=0.1), 10 * times, rtol=1e-9)


def test_a_start_that_would_underflow_is_followed():
    tiny = half_saturation_times(TiedWeights(1e-300, 1e-300, 1e-300, 0.0), target_scale=5.0)
    small = half_saturation_times(TiedWeights(1e-100, 1e-100, 1e-100, 0.0), target_scale=5.0)
    # A grows as e^(St) to the saddle A = 4S/7, c = S/7, which is below half; there B, at e^(St/2) until then, grows as
    # e^(9St/7) and takes A along. So ln(1/start) takes 1/S + ½ · 7/(9S) = 25/(18S), and lower orders cancel.
    np.testing.assert_allclose(tiny[0] - small[0], 200 * np.log(10) * 25 / (18 * 5), rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: velocity(TiedWeights(-1.0, 1.0, 1.0, 0.0), target_scale=1.0), "weights.first"),
        (lambda: velocity(GOLDEN, target_scale=0.0), "target_scale"),
        (lambda: velocity(GOLDEN, target_scale=1.0, learning_rate=np.inf), "learning_rate"),
        (lambda: loss(TiedWeights(np.nan, 1.0, 1.0, 0.0), 1.0), "weights.first"),
        (lambda: loss(GOLDEN, -1.0), "target_scale"),
        (lambda: mode_strengths(GOLDEN, 0.0), "target_scale"),
        (lambda: fixed_point(0.0), "target_scale"),
        (lambda: integrated_path([1.0, 0.0], SMALL, target_scale=1.0), "times"),
        (lambda: integrated_path([-1.0], SMALL, target_scale=1.0), "times"),
        (lambda: integrated_path([1.0], SMALL, target_scale=0.0), "target_scale"),
        (lambda: integrated_path([1.0], SMALL._replace(first=0.0), target_scale=1.0), "start"),
        (lambda: half_saturation_times(SMALL._replace(second=2.0), target_scale=1.0), "start"),
        (lambda: half_saturation_times(SMALL, target_scale=0.0), "target_scale"),
    ],
)
def test_bad_input_is_named(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
