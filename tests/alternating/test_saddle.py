from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.alternating.saddle import Departure, rest
from dynascope.flows.objective import Samples
from dynascope.networks import TwoLayer

# Two independent inputs and outputs, with strengths 2 and 1.
AVERAGE = Samples(np.eye(2) * 2**0.5, np.diag([2.0, 1.0]) * 2**0.5)
NETWORK = TwoLayer(2, 1, 2)


def test_a_saddle_is_found_with_the_rate_and_the_size_of_the_motion_away():
    # Near the map of the second mode, whose loss is 2: the first one grows at the rate 2 − 1 within this neuron.
    deviation = 1e-4
    rows = np.array([[deviation, 1.0, deviation, 1.0]]) + np.array([[0.0, 1e-3, 0.0, 1e-3]])
    with jax.enable_x64(True):
        found, loss, (rates, motions) = rest(NETWORK, AVERAGE, rows, False)
    assert loss == pytest.approx(2.0, abs=1e-6)
    assert rates == pytest.approx([1.0], rel=1e-4)
    assert np.linalg.norm(motions[0]) == pytest.approx(deviation * 2**0.5, rel=1e-3)
    # Newton completed what the flow would have done in the other directions.
    assert found[0, 1] * found[0, 3] == pytest.approx(1.0, abs=1e-6)


def test_rows_of_zeros_stay_zero():
    rows = np.array([[1.4, 0.1, 1.4, 0.1], [0.0, 0.0, 0.0, 0.0]])
    with jax.enable_x64(True):
        found, _, (rates, _) = rest(NETWORK, AVERAGE, rows, False)
    assert not np.any(found[1])
    # Its own growth, at the rate 1 of the second mode, belongs to the dormant neurons.
    assert len(rates) == 0


def test_a_deviation_leaves_when_it_has_grown_to_a_tenth_of_the_weights():
    departure = Departure(np.array([2.0]), np.array([[[1e-6, 0.0]]]))
    assert departure.time(3.0) == pytest.approx(np.log(0.3 / 1e-6) / 2)
    np.testing.assert_allclose(departure.growth(0.5), [[1e-6 * (np.e - 1), 0.0]])


def test_two_deviations_leave_before_the_faster_one_alone_would():
    both = Departure(np.array([1.0, 2.0]), np.array([[[1e-3, 0.0]], [[0.0, 1e-4]]]))
    faster = Departure(both.rates[1:], both.deviations[1:])
    time = both.time(1.0)
    assert 0 < time < faster.time(1.0)
    size = np.hypot(1e-3 * np.exp(time), 1e-4 * np.exp(2 * time))
    assert size == pytest.approx(0.1)


def test_nothing_leaves_without_a_deviation_above_rounding():
    assert Departure(np.zeros(0), np.zeros((0, 3, 2))).time(1.0) == np.inf
    assert Departure(np.array([1.0]), np.full((1, 1, 1), 1e-15)).time(1.0) == np.inf
