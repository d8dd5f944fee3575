from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope import observe
from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.flows import GradientFlow
from dynascope.networks import TwoLayer
from dynascope.probes import NeuronUtility, output_utility, two_layer_utility, utility_spectrum
from dynascope.tasks import Task
from dynascope.training import Descent, descend


class Arrays(NamedTuple):
    inputs: np.ndarray
    residuals: np.ndarray
    first: np.ndarray
    second: np.ndarray


def draw(seed=0, n=12, d=3, h=5, c=2, dtype=np.float64) -> Arrays:
    generator = np.random.default_rng(seed)
    return Arrays(*(generator.normal(size=shape).astype(dtype) for shape in ((n, d), (n, c), (d, h), (h, c))))


def relu(z):
    return z * (z > 0)


ACTIVATIONS = {2: relu, 3: lambda z: z**2, 4: lambda z: z**3}
every_degree = pytest.mark.parametrize("degree", ACTIVATIONS)


def spectrum(arrays, degree=2, **options):
    found = utility_spectrum(two_layer_utility(*arrays, activation=ACTIVATIONS[degree], degree=degree), **options)
    return found._asdict()


def test_a_model_of_two_neurons_has_the_utilities_computed_by_hand():
    # Two samples e_1, e_2; neuron 1 is ‖θ‖ (1, 0 | 1)/√2 and sees the first, neuron 2 is ‖θ‖ (0, 3 | −4)/5.
    first, second = np.array([[1e-3, 0.0], [0.0, 3e-2]]), np.array([[1e-3], [-4e-2]])
    found = spectrum((np.eye(2), np.array([[2.0], [-1.0]]), first, second), threshold=0.1)
    np.testing.assert_allclose(found["utility"], [2 / 2 / 2, 12 / 25 / 2], rtol=1e-14)
    np.testing.assert_allclose(found["growth_rate"], [1.0, 12 / 25], rtol=1e-14)
    np.testing.assert_allclose(found["norm"], [2**0.5 * 1e-3, 5e-2], rtol=1e-14)
    times = [np.log(100 / 2**0.5), np.log(2) * 25 / 12]
    np.testing.assert_allclose(found["activation_time"], times, rtol=1e-13)
    assert (int(found["next_neuron"]), float(found["next_time"])) == (1, found["activation_time"][1])


@every_degree
def test_the_general_version_gives_what_the_two_layer_version_gives(degree):
    x, r, first, second = arrays = draw()
    outputs = ACTIVATIONS[degree](x @ first)[:, :, None] * second
    norms = np.sqrt(np.sum(first**2, axis=0) + np.sum(second**2, axis=1))
    general = output_utility(outputs, r, norms, degree=degree)
    np.testing.assert_allclose(general.mean, spectrum(arrays, degree)["utility"], rtol=1e-13)


@every_degree
def test_norms_grow_in_a_small_step_as_the_utilities_say(degree):
    x, r, _, _ = draw(seed=1)
    name = {2: "relu", 3: "quadratic", 4: "power-3"}[degree]
    network = TwoLayer(3, 5, 2, activation=name, scale=0.7, seed=2)
    task = Task(x, r)
    # The norms are not small: what the utilities say of the real residual holds at any size.
    residuals = r - ACTIVATIONS[degree](x @ network.first) @ network.second
    found = spectrum((x, residuals, network.first, network.second), degree)
    step = 1e-5
    later = descend(task, network, Descent(learning_rate=step, steps=1), return_networks=True)[1]
    norms = [np.linalg.norm(net.neurons, axis=1) for net in (network, later)]
    rates = np.log(norms[1] / norms[0]) / step
    # The difference quotient is off by half a step times the second derivative, which is below a hundred here.
    np.testing.assert_allclose(rates, norms[0] ** (degree - 2) * found["growth_rate"], rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("degree", "normalised"), [(2, False), (3, False), (4, False), (3, True)])
def test_the_time_is_when_the_growth_equation_passes_the_threshold(degree, normalised):
    from scipy.integrate import solve_ivp

    rate, norm, threshold = 0.7, 0.02, 0.3
    neuron = NeuronUtility(np.array([rate / degree]), 1, np.array([norm]), degree)
    time = float(utility_spectrum(neuron, threshold=threshold, normalised=normalised).next_time)
    power = 0 if normalised else degree - 2
    end = solve_ivp(lambda t, log: rate * np.exp(power * log), (0, time), [np.log(norm)], rtol=1e-10, atol=1e-12)
    assert np.exp(end.y[0, -1]) == pytest.approx(threshold, rel=1e-6)


@pytest.mark.parametrize(("degree", "norm", "golden"), [(2, 1e-3, 6.907755278982137), (3, 1e-2, 99), (4, 1e-1, 49.5)])
def test_the_accumulated_utility_at_norm_one_is_that_of_the_ledger(degree, norm, golden):
    found = utility_spectrum(NeuronUtility(np.array([1 / degree]), 1, np.array([norm]), degree), threshold=1.0)
    assert float(found.next_time) == pytest.approx(golden, rel=1e-14)


def test_active_neurons_need_no_time_and_shrinking_ones_have_none():
    neurons = NeuronUtility(np.array([1.0, 1.0, -1.0, 0.0]), 1, np.array([2.0, 0.0, 1e-3, 1e-3]), 2)
    found = utility_spectrum(neurons)._asdict()
    assert found["activation_time"].tolist() == [0.0, np.inf, np.inf, np.inf]
    assert found["dormant"].tolist() == [False, True, True, True]
    assert (int(found["next_neuron"]), float(found["next_time"])) == (-1, np.inf)


def test_a_neuron_without_weights_has_no_utility():
    x, r, first, second = draw()
    first[:, 0], second[0] = 0.0, 0.0
    found = spectrum((x, r, first, second))
    assert (found["utility"][0], found["norm"][0]) == (0.0, 0.0)
    assert np.all(found["utility"][1:] != 0)


@given(st.integers(0, 2**16), st.integers(2, 4), st.lists(st.integers(1, 11), max_size=4, unique=True))
def test_batches_add_up_to_the_whole(seed, degree, cuts):
    x, r, first, second = arrays = draw(seed)
    rows = np.split(np.arange(len(x)), sorted(cuts))
    parts = [
        two_layer_utility(x[part], r[part], first, second, activation=ACTIVATIONS[degree], degree=degree)
        for part in rows
    ]
    whole = functools.reduce(operator.add, parts)
    assert whole.samples == len(x)
    # Sums in another order round differently.
    np.testing.assert_allclose(whole.mean, spectrum(arrays, degree)["utility"], rtol=1e-10, atol=1e-13)


@given(st.integers(0, 2**16), st.integers(2, 4), st.floats(-140, 100))
def test_the_size_of_a_neuron_does_not_change_its_utility(seed, degree, exponent):
    x, r, first, second = draw(seed)
    scale = 10.0**exponent
    small = spectrum((x, r, scale * first, scale * second), degree, threshold=1e200)
    np.testing.assert_allclose(small["utility"], spectrum(draw(seed), degree)["utility"], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(small["norm"] / scale, spectrum(draw(seed), degree)["norm"], rtol=1e-12)


@given(st.integers(0, 2**16), st.permutations(range(5)))
def test_neurons_may_come_in_any_order(seed, order):
    x, r, first, second = draw(seed)
    here, there = spectrum((x, r, first, second)), spectrum((x, r, first[:, order], second[list(order)]))
    np.testing.assert_allclose(there["growth_rate"], here["growth_rate"][list(order)], rtol=1e-12, atol=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("degree", "traced"),
    [
        (2, False),
        *((degree, True) for degree in ACTIVATIONS),
        pytest.param(3, False, marks=pytest.mark.slow),
        pytest.param(4, False, marks=pytest.mark.slow),
    ],
)
def test_jax_arrays_give_the_numbers_of_numpy(degree, traced):
    arrays = draw()
    small = arrays._replace(first=1e-3 * arrays.first, second=1e-3 * arrays.second)

    def measured(*arrays):
        return spectrum(arrays, degree)

    with jax.enable_x64(True):
        found = (jit(measured) if traced else measured)(*map(jax.device_put, small))
        assert all(isinstance(values, jax.Array) for values in found.values())
    for name, values in spectrum(small, degree).items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12, err_msg=name)


@pytest.mark.slow
@every_degree
def test_torch_tensors_give_the_numbers_of_numpy(degree):
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    pytest.importorskip("array_api_compat", reason="array-api-compat comes with the torch extra")
    arrays = draw()
    small = arrays._replace(first=1e-3 * arrays.first, second=1e-3 * arrays.second)
    activation = torch.relu if degree == 2 else ACTIVATIONS[degree]
    tensors = map(torch.from_numpy, small)
    found = utility_spectrum(two_layer_utility(*tensors, activation=activation, degree=degree))
    for name, values in spectrum(small, degree).items():
        assert isinstance(getattr(found, name), torch.Tensor)
        np.testing.assert_allclose(getattr(found, name).numpy(), values, rtol=1e-12, err_msg=name)


def test_torch_is_loaded_by_nobody_but_the_user():
    import subprocess
    import sys

    code = """
import sys, numpy as np
from dynascope.probes import output_utility, utility_spectrum
utility_spectrum(output_utility(np.ones((1, 1, 1)), np.ones((1, 1)), np.ones(1), degree=2))
print(*({"torch", "jax", "array_api_compat"} & sys.modules.keys()))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.slow
def test_a_run_can_be_measured_on_the_way():
    x, r, _, _ = draw()
    task = Task(x, r)

    def utilities(network):
        residuals = task.targets - network(task.inputs)
        layers = (network.first, network.second)
        utility = two_layer_utility(task.inputs, residuals, *layers, activation=network.activation, degree=2)
        return utility_spectrum(utility, threshold=0.05)

    network = TwoLayer(3, 4, 2, activation="relu", seed=1)
    record = observe(task, network, method=GradientFlow(duration=2.0, save=401), scale=1e-3, probes=[utilities]).record
    assert record["growth_rate"].dims == ("time", "neuron")
    assert record["next_neuron"].dims == ("time",)
    # The accumulated utility is the growth of the log norm; the trapezoid rule is good to the square of the steps.
    grown = np.log(record["norm"]).isel(time=-1) - np.log(record["norm"]).isel(time=0)
    np.testing.assert_allclose(record["growth_rate"].integrate("time"), grown, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inputs": np.ones((11, 3))}, "do not match"),
        ({"second": np.ones((4, 2))}, "do not match"),
        ({"first": np.ones(3)}, "first has shape"),
        ({"residuals": np.full((12, 2), np.nan)}, "not finite"),
        ({"first": np.full((3, 5), np.inf)}, "not finite"),
        ({"inputs": [[1.0, 2.0, 3.0]]}, "type list"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_arrays_that_make_no_sense_are_refused(change, message):
    arrays = draw()._replace(**change)
    with pytest.raises(InputError, match=message):
        two_layer_utility(*arrays, activation=relu, degree=2)


@pytest.mark.parametrize(
    ("activation", "degree", "message"),
    [(np.tanh, 2, "not homogeneous of degree 1"), (relu, 3, "not homogeneous of degree 2"), (relu, 1, "degree is 1")],
)
def test_activations_that_are_not_of_the_degree_are_refused(activation, degree, message):
    with pytest.raises(InputError, match=message):
        two_layer_utility(*draw(), activation=activation, degree=degree)


def test_numbers_outside_their_domain_are_refused():
    with pytest.raises(InputError, match="threshold is 0"):
        spectrum(draw(), threshold=0)
    with pytest.raises(InputError, match="do not match"):
        output_utility(np.ones((2, 3, 1)), np.ones((2, 1)), np.ones(2), degree=2)
    one, other = (two_layer_utility(*draw(seed), activation=relu, degree=2) for seed in (0, 1))
    with pytest.raises(InputError, match="different neurons"):
        one + other


def test_a_utility_can_leave_a_compiled_function_as_arrays():
    @eqx.filter_jit
    def mean(*arrays):
        return two_layer_utility(*arrays, activation=lambda z: z**2, degree=3).mean

    with jax.enable_x64(True):
        np.testing.assert_allclose(mean(*map(jax.device_put, draw())), spectrum(draw(), 3)["utility"], rtol=1e-12)
