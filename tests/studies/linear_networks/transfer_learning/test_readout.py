import numpy as np
import pytest

from dynascope.studies.linear_networks.transfer_learning.readout import decay_rates, reachable_share


def test_rates_are_those_of_exponentials_until_too_little_is_left():
    times, rates = np.linspace(0, 4, 41), np.array([[0.5, 1.0, 3.0], [2.0, 0.1, 0.7]])
    left = np.exp(-rates[:, None] * times[:, None])
    # What is left in the end is the error of a solver, and not looked at.
    floored = np.where(left > 0.01, left, 1e-5)
    np.testing.assert_allclose(decay_rates(times, floored, 0.01), rates, rtol=1e-12)
    assert decay_rates(times, floored, 1e-6)[0, 2] > 1.2 * rates[0, 2]


def test_a_target_is_reached_as_far_as_it_lies_in_the_span_of_the_features():
    draw = np.random.default_rng(0)
    first, target = draw.normal(size=(5, 2)), draw.normal(size=(5, 3))
    fitted = first @ np.linalg.lstsq(first, target, rcond=None)[0]
    share = np.sum(fitted**2) / np.sum(target**2)
    assert reachable_share(first, target, 1e-6) == pytest.approx(share, rel=1e-12)
    assert reachable_share(draw.normal(size=(5, 5)), target, 1e-6) == pytest.approx(1.0)


def test_features_that_are_lost_reach_nothing():
    target = np.ones((2, 1))
    assert reachable_share(np.diag([1.0, 1e-5]), target, 1e-6) == pytest.approx(1.0)
    assert reachable_share(np.diag([1.0, 1e-7]), target, 1e-6) == pytest.approx(0.5)
