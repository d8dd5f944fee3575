from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.alternating import active_set_descent
from dynascope.alternating.optimizer import _Run
from dynascope.errors import InputError
from dynascope.networks import DeepLinear, DiagonalLinear, NeuronSum, TwoLayer
from dynascope.tasks import Expectation, Task, regression
from dynascope.theory.staircase import linear_staircase

FEW = {"starts": 16, "ascent_steps": 200}


def teacher(neurons, samples=128, d=5, c=3, degree=1, seed=0) -> Task:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(samples, d))
    hidden = np.maximum(x @ generator.normal(size=(d, neurons)) / d**0.5, 0) ** degree
    return Task(x, hidden @ generator.normal(size=(neurons, c)), name="teacher")


@pytest.fixture(scope="module")
def linear():
    """Linear neurons on data of any covariance, and the theory for them."""
    task = teacher(4)
    record, network = active_set_descent(task, TwoLayer(5, 1, 3), max_neurons=5, **FEW)
    return task, record, network


@pytest.fixture(scope="module")
def relu():
    task = teacher(3)
    record, network = active_set_descent(task, TwoLayer(5, 1, 3, activation="relu"), max_neurons=5, **FEW)
    return task, record, network


@pytest.mark.slow
def test_linear_neurons_pass_through_the_best_maps_of_each_rank(linear):
    task, record, network = linear
    theory = linear_staircase(task.cross_moment, task.input_moment, task.target_power, scale=1e-6)
    assert record["neurons"].to_numpy().tolist() == [0, 1, 2, 3]
    assert record.attrs["stopped"] == "no neuron can grow"
    # Slopes of one in a million leave an error of about their square.
    np.testing.assert_allclose(record["loss"], theory.levels, rtol=1e-6)
    solution = np.linalg.lstsq(task.inputs, task.targets, rcond=None)[0]
    np.testing.assert_allclose(network.first @ network.second, solution, atol=1e-4 * np.abs(solution).max())


@pytest.mark.slow
def test_linear_neurons_enter_at_the_largest_singular_value_of_what_is_left(linear):
    task, record, _ = linear
    theory = linear_staircase(task.cross_moment, task.input_moment, task.target_power, scale=1e-6)
    _, features = theory.features["output_feature"]
    for k, rate in enumerate(record["growth_rate"].to_numpy()[:3]):
        left = task.cross_moment - features[:k].T @ features[:k] @ task.cross_moment
        assert rate == pytest.approx(np.linalg.norm(left, 2), rel=1e-4)
    assert float(record["growth_rate"][-1]) < 1e-4 * float(record["growth_rate"][0])


@pytest.mark.slow
def test_a_teacher_is_found_with_as_few_neurons_as_it_has(relu):
    task, record, network = relu
    assert len(network.neurons) == 3
    assert record.attrs["stopped"] == "no neuron can grow"
    assert float(record["loss"][-1]) < 1e-8 * float(record["loss"][0])
    np.testing.assert_allclose(network(task.inputs), task.targets, atol=2e-4 * np.abs(task.targets).max())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "relu"])
def test_every_neuron_lowers_the_loss_by_no_less_than_its_utility_guarantees(kind, request):
    _, record, _ = request.getfixturevalue(kind)
    drops, promised = -np.diff(record["loss"]), record["guaranteed_drop"].to_numpy()[:-1]
    assert np.all(drops >= promised * (1 - 1e-9))
    assert np.all(promised > 0)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["linear", "relu"])
def test_the_power_of_the_outputs_makes_up_for_the_loss_where_neurons_rest(kind, request):
    task, record, network = request.getfixturevalue(kind)
    # At kinks the descent ends a little early.
    np.testing.assert_allclose(record["power"] + 2 * record["loss"], task.target_power, rtol=1e-3)
    outputs = np.asarray(network(task.inputs))
    # The network is applied in single precision here.
    assert float(record["power"][-1]) == pytest.approx(np.sum(outputs**2) / task.samples, rel=1e-5)
    assert float(record["loss"][-1]) == pytest.approx(float(task.loss(network)), rel=1e-4, abs=1e-10)


@pytest.mark.slow
def test_the_first_neuron_of_orthogonal_data_has_the_rate_of_the_ledger():
    # Early alignment: D_+ = E over positive targets of y x, and the first neuron grows at 1/τ_+.
    task = Task(np.diag([1.0, 1.2, 0.9, 1.1]), [[1.5], [1.0], [-0.8], [-0.9]])
    record, network = active_set_descent(task, TwoLayer(4, 1, 1, activation="relu"), max_neurons=2, starts=64)
    assert 1 / float(record["growth_rate"][0]) == pytest.approx(2.08231683, rel=1e-6)
    assert 1 / float(record["growth_rate"][1]) == pytest.approx(3.26762054, rel=1e-4)
    np.testing.assert_allclose(record["loss"], [0.5875, 0.18125, 0.0], atol=1e-6)
    assert len(network.neurons) == 2


@pytest.mark.slow
def test_neurons_of_a_higher_degree_and_given_by_a_function_are_trained():
    def squared(weights, x):
        return jnp.maximum(x @ weights[:5], 0)[:, None] ** 2 * weights[5:]

    task = teacher(2, degree=2)
    network = NeuronSum(np.ones((1, 8)), squared, degree=3)
    record, trained = active_set_descent(task, network, max_neurons=4, **FEW)
    assert trained.neurons.shape[1] == 8
    assert record["neurons"].to_numpy().tolist() == list(range(record.sizes["step"]))
    assert float(record["loss"][-1]) < 1e-6 * float(record["loss"][0])


@pytest.mark.slow
def test_an_expectation_is_as_good_as_samples(linear):
    task, record, _ = linear
    again, _ = active_set_descent(Expectation(task.loss), TwoLayer(5, 1, 3), max_neurons=5, **FEW)
    np.testing.assert_allclose(again["loss"], record["loss"], rtol=1e-6)
    np.testing.assert_allclose(again["growth_rate"][:3], record["growth_rate"][:3], rtol=1e-4)


@pytest.mark.slow
def test_it_stops_at_the_number_of_neurons_asked_for():
    task = teacher(3)
    record, network = active_set_descent(task, TwoLayer(5, 1, 3, activation="relu"), max_neurons=1, **FEW)
    assert (record.attrs["stopped"], len(network.neurons)) == ("max_neurons was reached", 1)
    assert record.sizes["step"] == 2
    assert np.all(np.diff(record["seconds"]) > 0)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_network():
    task = teacher(3)
    runs = [active_set_descent(task, TwoLayer(5, 1, 3), max_neurons=5, seed=seed, **FEW) for seed in (4, 4, 5)]
    rows = [network.neurons for _, network in runs]
    np.testing.assert_array_equal(rows[0], rows[1])
    assert np.abs(rows[0] - rows[2]).max() > 0
    # Other starts find the same function.
    np.testing.assert_allclose(runs[0][0]["loss"], runs[2][0]["loss"], rtol=1e-6)


def test_a_neuron_that_vanishes_is_taken_out():
    task = teacher(3)
    with jax.enable_x64(True):
        run = _Run(TwoLayer(5, 1, 3), task, 4, 1e-6, 100)
        run.rows = np.array(TwoLayer(5, 3, 3, seed=1).neurons)
        run.rows[1] *= 1e-5
        kept = run.rows[[0, 2]]
        assert run._prune() == 1
    assert run.rows.shape == kept.shape


@pytest.mark.slow
@pytest.mark.usefixtures("unchecked_types")
def test_what_makes_no_sense_is_refused():
    task, network = teacher(2), TwoLayer(5, 1, 3)
    with pytest.raises(InputError, match="max_neurons is 0"):
        active_set_descent(task, network, max_neurons=0)
    with pytest.raises(InputError, match="seed is -1"):
        active_set_descent(task, network, max_neurons=1, seed=-1)
    with pytest.raises(InputError, match="network is DeepLinear"):
        active_set_descent(task, DeepLinear([5, 2, 3]), max_neurons=1)
    with pytest.raises(InputError, match="a DiagonalLinear"):
        active_set_descent(task.only("y1"), DiagonalLinear(5), max_neurons=1)
    bent = NeuronSum(np.ones((1, 8)), lambda w, x: jnp.tanh(x @ w[:5])[:, None] * w[5:], degree=2)
    with pytest.raises(InputError, match="not homogeneous of degree 2"):
        active_set_descent(task, bent, max_neurons=1)
    with pytest.raises(InputError, match="loss without neurons is zero"):
        active_set_descent(Task(task.inputs, np.zeros_like(task.targets)), network, max_neurons=1)


@pytest.mark.slow
def test_modes_that_do_not_mix_are_added_in_the_order_in_which_they_grow():
    # σ = (2, 1.5) and s = σ/√λ = (1, 1.5): the stronger correlation is learned first though it explains less.
    task = regression(
        samples=8, input_covariance=[4.0, 1.0], target_map=np.diag([0.5, 1.5]), exact_moments=True, seed=0
    )
    record, _ = active_set_descent(task, TwoLayer(2, 1, 2), max_neurons=2, starts=8)
    theory = linear_staircase(task.cross_moment, task.input_moment, task.target_power, scale=1e-6)
    np.testing.assert_allclose(theory.levels, [1.625, 1.125, 0.0], atol=1e-12)
    # The first resting point is a saddle, as the best map of rank one has the loss 0.5; gradient flow rests there too.
    np.testing.assert_allclose(record["loss"], theory.levels, atol=1e-10)
    np.testing.assert_allclose(record["growth_rate"][:2], [2.0, 1.5], rtol=1e-8)
