from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.theory.staircase.settling import settling_times


def settled(drops, rates, right, maps, *, power, times, initial_loss):
    arrays = {"drops": drops, "rates": rates, "right": right, "maps": maps, "power": power, "times": times}
    return settling_times(**{name: np.asarray(each, float) for name, each in arrays.items()}, initial_loss=initial_loss)


def independent(rates, power):
    """Modes along the input coordinates, whose maps are complete when they have grown."""
    rates, power = np.array(rates), np.array(power)
    return rates**2 / (2 * power), rates, np.eye(len(rates)), np.diag(rates / power)


def test_complete_modes_settle_by_their_own_growth():
    learned = independent([2.0, 0.5], [1.0, 1.0])
    times = settled(*learned, power=[1, 1], times=[10, 40], initial_loss=2.2)
    # Half of the drop remains at the jump, and falls as exp(−2σt) to two percent of the initial loss.
    np.testing.assert_allclose(times, np.log(np.array([2.0, 0.125]) / 2 / (0.02 * 2.2)) / np.array([4.0, 1.0]))


def test_drops_too_small_to_be_seen_settle_at_once():
    learned = independent([2.0, 0.1], [1.0, 1.0])
    assert settled(*learned, power=[1, 1], times=[10, 200], initial_loss=2.005)[1] == 0


@given(st.floats(0.01, 0.5), st.floats(0.1, 1.3))
def test_input_of_small_variance_is_fitted_at_its_own_rate(variance, angle):
    # One output, two inputs of variance one and less; the map m that fits both needs more than the first direction.
    power = np.array([1.0, variance])
    target = np.array([np.cos(angle), np.sin(angle)])
    cross = target * power
    rate, drop = float(np.linalg.norm(cross)), float(target @ cross / 2)
    initial = 1.02 * drop
    (expected,) = settled(
        [drop], [rate], (cross / rate)[:, None], target[None], power=power, times=[30], initial_loss=initial
    )

    def velocity(_, weights):
        # The balanced neuron (w, a) with map a·w, in the eigenbasis of the inputs.
        w, a = weights[:2], weights[2]
        pull = cross - a * w * power
        return np.append(a * pull, w @ pull)

    start = 1e-8 * np.append(cross / rate, 1.0)
    times = np.linspace(0, 60 / rate + 3 * expected, 20001)
    path = solve_ivp(velocity, (0, times[-1]), start, "DOP853", times, rtol=1e-10, atol=1e-14).y
    excess = ((path[2] * path[:2] - target[:, None]) ** 2 * power[:, None] / 2).sum(axis=0)
    half = times[np.argmax(excess < drop / 2)]
    seen = times[np.argmax(excess < 0.02 * initial)] - half
    # An estimate, good to a factor: the neuron itself grows while it turns.
    assert seen / 3 - 1 / rate < expected < 3 * seen + 1 / rate


def test_later_jumps_wait_for_earlier_ones():
    # The first mode leaves a slow remainder, which is still there after the second jump.
    learned = [0.6, 0.005], [1.0, 0.05], np.eye(2), [[1.0, 4.0], [0.0, 0.2]]
    soon = settled(*learned, power=[1, 0.05], times=[10, 12], initial_loss=1.0)
    late = settled(*learned, power=[1, 0.05], times=[10, 200], initial_loss=1.0)
    assert soon[1] == pytest.approx(soon[0] - 2, abs=1)
    assert late[1] == 0
