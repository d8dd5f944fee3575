from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.alternating import predict_next_activation
from dynascope.errors import InputError
from dynascope.flows import GradientFlow, Solver, gradient_flow
from dynascope.groups.encodings import encoding_from_frequencies
from dynascope.networks import DeepLinear, DiagonalLinear, NeuronSum, TwoLayer
from dynascope.probes import two_layer_utility, utility_spectrum
from dynascope.tasks import Expectation, Task, digits
from dynascope.tasks.algebra.modular_addition import modular_addition

THRESHOLD = 0.1
NEURONS = 10  # of every network on this task, so that programs are compiled once
ORTHOGONAL = Task(np.diag([1.0, 1.2, 0.9, 1.1]), [[1.5], [1.0], [-0.8], [-0.9]], name="orthogonal inputs")


def norms(network):
    return jnp.linalg.norm(network.neurons, axis=1)


RECORDED = {"save": 801, "statistics": {"norm": (norms, ("neuron",))}}


def first_activation(network, task, dormant, duration, normalised=False) -> tuple[int, float]:
    """Which dormant neuron passes the threshold first in a real run, and when."""
    run = gradient_flow(
        task,
        network,
        GradientFlow(duration=duration, normalised=normalised, solver=Solver(relative_tolerance=1e-6), **RECORDED),
    )
    seen = np.where(dormant, run["norm"], 0.0)
    last = int(np.argmax((seen >= THRESHOLD).any(axis=1)))
    assert last > 0, "no neuron passed the threshold"
    neuron = int(np.argmax(seen[last]))
    around = slice(last - 1, last + 1)
    return neuron, float(np.interp(np.log(THRESHOLD), np.log(seen[around, neuron]), run["time"][around]))


def scaled(network, scale):
    return network.with_neurons(scale * network.neurons)


@eqx.filter_jit
def probed(network, inputs, targets):
    residuals, layers = targets - network(inputs), (network.first, network.second)
    utility = two_layer_utility(inputs, residuals, *layers, activation=network.activation, degree=network.degree)
    found = utility_spectrum(utility, threshold=THRESHOLD)
    return found.next_neuron, found.next_time


def unturned(network, task) -> tuple[int, float]:
    """What the probe predicts, which does not let directions turn."""
    with jax.enable_x64(True):
        neuron, time = probed(network, task.inputs, task.targets)
        return int(neuron), float(time)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [6, 9])
def test_on_the_second_plateau_of_orthogonal_data_the_next_neuron_and_its_time_are_foretold(seed):
    # The jumps are at 2.08 and 3.27 times log(1e6), 28.8 and 45.1. With these seeds some neuron sees all data at first.
    start = TwoLayer(4, NEURONS, 1, activation="relu", seed=seed)
    run, network = gradient_flow(
        ORTHOGONAL, start, GradientFlow(duration=36.0, **RECORDED), scale=1e-6, return_networks=True
    )
    assert float(run["loss"][-1]) == pytest.approx(0.18125, rel=0.02), "this is no plateau"
    coming = predict_next_activation(ORTHOGONAL, network)
    neuron, time = first_activation(network, ORTHOGONAL, coming.dormant, 1.3 * coming.time)
    assert (coming.neuron, coming.reason) == (neuron, "")
    # By then the dormant neurons together lower the loss by a few percent of its drop.
    assert coming.time == pytest.approx(time, rel=0.01)
    # The directions have long settled, so that the probe knows as much; the rate is that of the ledger.
    assert unturned(network, ORTHOGONAL) == (neuron, pytest.approx(time, rel=0.01))
    assert coming.growth_rate == pytest.approx(1 / 3.26762054, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_quadratic_neurons_that_still_turn_are_foretold_for_modular_addition(seed):
    task = modular_addition(encoding_from_frequencies(7, {1: 1.0, 2: 0.6}))
    network = scaled(TwoLayer(task.input_dimension, 8, task.output_dimension, activation="quadratic", seed=seed), 0.01)
    coming = predict_next_activation(task, network)
    neuron, time = first_activation(network, task, coming.dormant, 1.1 * coming.time)
    assert coming.neuron == neuron
    assert coming.time == pytest.approx(time, rel=0.005)
    # Above degree two turning takes a finite share of the time, without which it is far too long.
    assert unturned(network, task)[1] > 2 * time


@pytest.mark.slow
def test_the_first_neuron_is_foretold_for_digits():
    whole = digits()
    task = Task(whole.inputs[:40], whole.targets[:40], name="digits").centred()
    network = scaled(TwoLayer(64, 6, 10, activation="relu", seed=0), 1e-4)
    coming = predict_next_activation(task, network)
    neuron, time = first_activation(network, task, coming.dormant, 1.1 * coming.time)
    assert coming.neuron == neuron
    # A neuron reaches the threshold while others are not much smaller.
    assert coming.time == pytest.approx(time, rel=0.01)


@pytest.mark.slow
def test_the_normalised_flow_is_foretold():
    task = modular_addition(encoding_from_frequencies(7, {1: 1.0}))
    network = scaled(TwoLayer(task.input_dimension, 8, task.output_dimension, activation="quadratic", seed=3), 1e-4)
    coming = predict_next_activation(task, network, normalised=True)
    neuron, time = first_activation(network, task, coming.dormant, 1.1 * coming.time, normalised=True)
    assert (coming.neuron, coming.time) == (neuron, pytest.approx(time, rel=0.01))


@pytest.mark.slow
@given(st.floats(1e-12, 1e-2), st.floats(0.1, 5.0))
@settings(max_examples=10)
def test_a_neuron_at_the_maximum_takes_the_time_of_the_growth_equation(norm, strength):
    task = Task(np.eye(2) * 2**0.5, [[strength * 2**0.5], [0.1 * strength * 2**0.5]])
    # At u = v the utility of the first coordinate is u v · strength, and κÛ = strength.
    network = DiagonalLinear(2).with_neurons(np.array([[norm, norm], [norm, 0]]) / 2**0.5)
    coming = predict_next_activation(task, network)
    assert coming.neuron == 0
    assert coming.time == pytest.approx(np.log(THRESHOLD / norm) / strength, rel=1e-6)
    assert coming.growth_rate == pytest.approx(strength, rel=1e-6)
    np.testing.assert_allclose(coming.direction, np.ones(2) / 2**0.5, atol=1e-9)


@pytest.mark.slow
def test_samples_and_their_expectation_give_the_same():
    expectation = Expectation(ORTHOGONAL.loss, name="the same loss")
    network = scaled(TwoLayer(4, NEURONS, 1, activation="relu", seed=1), 1e-3)
    active = np.array(network.neurons)
    active[0] *= 1e3
    for checkpoint in (network, network.with_neurons(active)):
        here, there = (predict_next_activation(task, checkpoint) for task in (ORTHOGONAL, expectation))
        assert (here.neuron, here.dormant.tolist()) == (there.neuron, there.dormant.tolist())
        assert here.time == pytest.approx(there.time, rel=1e-9)


@pytest.mark.slow
def test_a_neuron_of_zero_weights_takes_no_part():
    rows = 1e-3 * np.array(TwoLayer(4, NEURONS, 1, activation="relu", seed=1).neurons)
    rows[2] = 0.0
    network = TwoLayer(4, NEURONS, 1, activation="relu").with_neurons(rows)
    others = network.with_neurons(np.delete(rows, 2, axis=0))
    here, there = predict_next_activation(ORTHOGONAL, network), predict_next_activation(ORTHOGONAL, others)
    assert here.time == pytest.approx(there.time, rel=1e-9)
    assert here.neuron == there.neuron + (there.neuron >= 2)
    assert here.dormant.all()


@pytest.mark.slow
def test_why_no_neuron_comes_is_said():
    network = TwoLayer(4, NEURONS, 1, activation="relu", seed=1)
    small = scaled(network, 1e-3)
    assert predict_next_activation(ORTHOGONAL, scaled(network, 10)).reason == "no neuron is dormant"
    assert predict_next_activation(ORTHOGONAL, scaled(network, 0)).reason == "the dormant neurons are zero"
    assert "duration" in predict_next_activation(ORTHOGONAL, small, duration=1e-3).reason
    assert "max_steps" in predict_next_activation(ORTHOGONAL, small, max_steps=2).reason
    # Every neuron pushes the output up, and it should go down; with such signs no neuron can change its own.
    rows = np.resize(np.concatenate([np.eye(4), np.full((4, 1), 2.0)], axis=1), (NEURONS, 5))
    down = Task(np.eye(4), -np.ones((4, 1)))
    gone = predict_next_activation(down, network.with_neurons(1e-3 * rows))
    assert (gone.neuron, gone.time, gone.growth_rate) == (-1, np.inf, 0.0)
    assert gone.reason == "no dormant neuron has positive utility"


@pytest.mark.usefixtures("unchecked_types")
def test_what_makes_no_sense_is_refused():
    network = TwoLayer(4, NEURONS, 1, activation="relu", seed=1)
    with pytest.raises(InputError, match="threshold is 0"):
        predict_next_activation(ORTHOGONAL, network, threshold=0)
    with pytest.raises(InputError, match="duration is -1"):
        predict_next_activation(ORTHOGONAL, network, duration=-1)
    with pytest.raises(InputError, match="network is DeepLinear"):
        predict_next_activation(ORTHOGONAL, DeepLinear([4, 3, 1]))
    with pytest.raises(InputError, match="of degree 1"):
        predict_next_activation(ORTHOGONAL, NeuronSum(np.ones((2, 4)), lambda w, x: x @ w[:, None], degree=1))
    with pytest.raises(InputError, match="not finite"):
        predict_next_activation(ORTHOGONAL, scaled(network, np.nan))
