from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.alternating.utility_phase import Dormant, Residual, grow, steepest
from dynascope.compilation import filter_jit, jit
from dynascope.flows.objective import Samples
from dynascope.networks import NeuronSum, TwoLayer

ONE = Samples(np.ones((1, 1)), np.ones((1, 1)))


def alone(degree):
    """φ(θ) = θ^κ on the datum y = 1: a neuron of one weight, which is aligned from the start and has U = 1."""
    return NeuronSum(np.ones((1, 1)), lambda weights, x: weights[0] ** degree * x, degree=degree)


def numbers(threshold=0.0, longest=np.inf, sense=1.0):
    found = {"threshold": threshold, "longest": longest, "least": 0.0, "sense": sense}
    return {**{name: np.asarray(value, float) for name, value in found.items()}, "max_steps": np.asarray(100_000)}


def grown(network, average, rows, power, **options):
    rows = np.asarray(rows, float)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    dormant = Dormant(rows / norms, np.log(norms[:, 0]), np.zeros(rows.shape))
    return grow_from(network, average, dormant, np.asarray(power, float), numbers(**options))


@filter_jit
def grow_from(network, average, dormant, power, numbers):
    nobody, waiting = jnp.zeros(dormant.directions.shape), jnp.ones(len(dormant.log_norms), bool)
    return grow(Residual(network, average, nobody), dormant, waiting, dormant.directions, numbers, power)


@pytest.mark.slow
# κ U · t = log(1/‖θ‖), or (‖θ‖^(2−κ) − 1)/(κ − 2): the thresholds of accumulated utility in arXiv:2506.06489.
@pytest.mark.parametrize(
    ("degree", "norm", "threshold"), [(2, 1e-3, 6.907755278982137), (3, 1e-2, 99.0), (4, 1e-1, 49.5)]
)
def test_an_aligned_neuron_reaches_the_threshold_when_it_should(degree, norm, threshold):
    with jax.enable_x64(True):
        state, end = grown(alone(degree), ONE, [[norm]], degree - 2)
        assert bool(end["reached"])
        assert float(state.log_norms[0]) == pytest.approx(0.0, abs=1e-9)
        # Steps of half an e-fold of the clock integrate it to 3 digits.
        assert degree * float(end["elapsed"]) == pytest.approx(threshold, rel=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("longest", [20.0, 3e7])
def test_the_longest_time_is_kept_though_a_step_of_a_tiny_neuron_lasts_longer(longest):
    with jax.enable_x64(True):
        state, end = grown(alone(3), ONE, [[1e-8]], 1, longest=longest)
        assert not bool(end["reached"])
        assert float(end["elapsed"]) == longest
        # ‖θ‖' = 3 ‖θ‖² from 10⁻⁸, in steps as above.
        assert float(state.log_norms[0]) == pytest.approx(-np.log(1e8 - 3 * longest), abs=5e-3)


@pytest.mark.slow
def test_the_normalised_flow_grows_every_degree_exponentially():
    with jax.enable_x64(True):
        _, end = grown(alone(4), ONE, [[1e-3]], 0)
        assert 4 * float(end["elapsed"]) == pytest.approx(6.907755278982137, rel=1e-9)


@pytest.mark.slow
def test_going_back_undoes_going_on():
    draw = np.random.default_rng(0)
    average = Samples(draw.normal(size=(20, 3)), draw.normal(size=(20, 1)))
    network = TwoLayer(3, 1, 1, seed=1)
    with jax.enable_x64(True):
        start = 1e-2 * network.neurons
        ahead, end = jax.device_get(grown(network, average, start, 0, longest=1.5))
        elapsed = end["elapsed"]
        options = numbers(threshold=np.inf, longest=elapsed, sense=-1.0)
        back, _ = jax.device_get(grow_from(network, average, ahead, np.zeros(()), options))
        # Both end with the first step beyond their time, so they differ by less than one step, of one time unit.
        then = back.directions * np.exp(back.log_norms)[:, None]
        assert float(elapsed) < 4
        assert np.linalg.norm(then - start) < np.linalg.norm(ahead.directions * np.exp(ahead.log_norms) - start)


def test_slopes_of_samples_are_those_of_the_loss():
    draw = np.random.default_rng(1)
    average = Samples(draw.normal(size=(15, 3)), draw.normal(size=(15, 2)))
    network = TwoLayer(3, 4, 2, activation="quadratic", seed=2)
    rows = np.asarray(network.neurons)
    dormant = np.array([False, False, True, True])
    active = np.where(dormant[:, None], 0.0, rows)

    class Formula:
        def loss(self, network):
            return average.loss(network)

    @jit
    def slopes(rows, active, dormant):
        # The same utility by the errors, and as the slope of the loss in the coefficients of the dormant neurons.
        return [Residual(network, each, active).slopes(rows, dormant) for each in (average, Formula())]

    with jax.enable_x64(True):
        by_error, by_slope = slopes(rows, active, dormant)
        np.testing.assert_allclose(by_error, by_slope, rtol=1e-5, atol=1e-6)
        assert not np.any(by_error[:2])


@pytest.mark.slow
def test_ascent_finds_the_largest_utility_of_a_linear_neuron():
    draw = np.random.default_rng(2)
    average = Samples(draw.normal(size=(30, 4)), draw.normal(size=(30, 3)))
    network = TwoLayer(4, 6, 3, seed=0)
    with jax.enable_x64(True):
        rows = network.neurons / np.linalg.norm(network.neurons, axis=1, keepdims=True)
        residual = jit(lambda nobody: Residual(network, average, nobody))(np.zeros(rows.shape))
        largest = float(steepest(residual, rows, np.ones(6, bool)).max())
    strengths = np.linalg.svd(average.targets.T @ average.inputs / 30, compute_uv=False)
    # κ U* is the first singular value; twenty steps of power iteration come close, never above.
    assert strengths[0] * (1 + 1e-9) >= largest > 0.9 * strengths[0]


@pytest.mark.slow
def test_what_an_active_neuron_lacks_of_its_rest_does_not_drive_off_its_followers():
    # f(x) = a w·x on x = (1, 0), y = 1, which the neuron in the direction of x fits but for a hundredth.
    task, rows = Samples(np.array([[1.0, 0.0]]), np.ones((1, 1))), np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]])
    network, sizes = TwoLayer(2, 2, 1), np.sqrt([0.99, 1e-8])
    active = np.array([rows[0] * sizes[0], np.zeros(3)])
    directions, waiting = rows / np.sqrt(2), np.array([False, True])

    def follow(spent):
        dormant = Dormant(*(jnp.asarray(each) for each in (directions, np.log(sizes), spent)))
        residual = Residual(network, task, jnp.asarray(active))
        ends = numbers(longest=500.0), np.asarray(0.0)
        return grow(residual, dormant, jnp.asarray(waiting), jnp.asarray(directions), *ends)[0]

    with jax.enable_x64(True):
        free, bound = (follow(spent) for spent in (np.zeros((2, 3)), np.array([np.zeros(3), directions[1]])))
        # θ' = r θ with the residual r = 0.01.
        assert float(free.log_norms[1] - np.log(sizes[1])) == pytest.approx(5.0, rel=1e-3)
        assert float(bound.log_norms[1]) == pytest.approx(np.log(sizes[1]), abs=1e-12)
