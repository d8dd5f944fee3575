from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.theory import LayerRates
from dynascope.theory.line_inputs import LineData, LineNetwork, layer_norms, line_trajectory, rescaling

FIRST = np.array([[0.3, 0.1], [-0.5, 0.2], [0.2, 0.4]]).T
SECOND = np.array([0.4, -0.2, 0.1])
DATA = LineData(np.array([0.6, 0.8]), 2.0, 0.6)
NETWORK = LineNetwork(FIRST, SECOND, 1.5, LayerRates(2.0, 0.5))
TIMES = np.linspace(0, 2, 400)


@pytest.mark.slow
def test_norms_are_those_of_the_trajectory():
    run, norms = (
        line_trajectory(NETWORK, DATA, TIMES, prefactor=1.0),
        layer_norms(NETWORK, DATA, TIMES, prefactor=1.0),
    )
    along = np.einsum("d,tdh->th", DATA.direction, run.first)
    np.testing.assert_allclose(norms.second, np.linalg.norm(run.second, axis=1), rtol=1e-12)
    np.testing.assert_allclose(norms.first, np.linalg.norm(along, axis=1), rtol=1e-12)
    np.testing.assert_allclose(norms.total, 2 * norms.second**2 + norms.first**2 / 2, rtol=1e-12)


@pytest.mark.slow
def test_norms_grow_by_residual_times_strength():
    step = 1e-4
    near = layer_norms(NETWORK, DATA, np.array([0.2 - step, 0.2 + step]), prefactor=1.0)
    run = line_trajectory(NETWORK, DATA, 0.2, prefactor=1.0)
    # k = 12 and γ = 1.5; the total is twice P g + Q/g. The difference is good to the square of the step.
    expected = 2 * 12 * run.residual * run.strength / 1.5
    np.testing.assert_allclose((near.total[1] - near.total[0]) / (2 * step), expected, rtol=1e-5)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(st.lists(st.floats(-1.5, 1.5).filter(lambda w: abs(w) > 0.05), min_size=6, max_size=6), st.floats(-2, 2))
def test_the_case_is_what_the_norms_do(weights, slope):
    second, first, data = np.array(weights[:3]), np.array([weights[3:]]), LineData(np.ones(1), 2.0, slope)
    found = rescaling(LineNetwork(first, second), data)
    total = np.asarray(layer_norms(LineNetwork(first, second), data, TIMES).total)
    rising = np.diff(total) > -1e-13 * total[0]
    falling = np.diff(total) < 1e-13 * total[0]
    turn = np.searchsorted(TIMES, float(found.turning_time))
    assert {
        "grows": rising.all(),
        "shrinks": falling.all(),
        "shrinks, then grows": falling[: max(turn - 1, 0)].all() and rising[turn:].all(),
        "static": np.allclose(total, total[0], rtol=1e-12),
    }[str(found.case)]


@pytest.mark.slow
def test_all_four_cases_and_the_saddle_are_told_apart():
    start = float(line_trajectory(LineNetwork(FIRST, SECOND), DATA, 0.0).strength)
    found = rescaling(LineNetwork(FIRST, SECOND), DATA._replace(target=start * np.array([2.0, 0.5, -1.0, 1.0, 0.0])))
    assert found.case.tolist() == ["grows", "shrinks", "shrinks, then grows", "static", "shrinks"]
    np.testing.assert_array_equal(found.turning_time[[0, 1, 3, 4]], [0.0, np.inf, 0.0, np.inf])
    # At the turn the network is zero.
    turned = line_trajectory(LineNetwork(FIRST, SECOND), DATA._replace(target=-start), found.turning_time[2])
    np.testing.assert_allclose(turned.strength, 0, atol=1e-12)
    trapped = rescaling(LineNetwork(-np.outer(DATA.direction, SECOND), SECOND), DATA)
    assert (trapped.case, trapped.turning_time) == ("shrinks", np.inf)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_network_that_starts_at_zero_output_grows(sign):
    first = np.outer(DATA.direction, [0.1, 0.2, 0.0])
    found = rescaling(LineNetwork(first, np.array([-0.2, 0.1, 0.5])), DATA._replace(target=0.6 * sign))
    assert (found.case, found.turning_time) == ("grows", 0.0)
