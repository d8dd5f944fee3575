from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.groups.encodings import encoding_from_frequencies
from dynascope.networks import TwoLayer
from dynascope.tasks.algebra.modular_addition import ModularAddition, modular_addition
from dynascope.training import Descent, descend


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def drawn_encoding(p: int, seed: int = 0) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=p)
    return x - x.mean()


def test_the_samples_are_all_pairs_and_their_sums():
    p, x = 6, drawn_encoding(6)
    task = modular_addition(x)
    assert (task.samples, task.input_dimension, task.output_dimension) == (36, 12, 6)
    for a in range(p):
        for b in range(p):
            row = a * p + b
            np.testing.assert_array_equal(task.inputs[row], np.append(np.roll(x, a), np.roll(x, b)))
            np.testing.assert_array_equal(task.targets[row], np.roll(x, a + b))


def test_a_modulus_alone_gives_one_hot_numbers():
    task = modular_addition(4)
    assert task.inputs.sum() == 2 * 16
    assert task.inputs[2 * 4 + 3].tolist() == [0, 0, 1, 0, 0, 0, 0, 1]
    assert task.targets[2 * 4 + 3].tolist() == [0, 1, 0, 0]


def test_an_encoding_has_the_amplitudes_and_phases_that_were_asked_for():
    x = encoding_from_frequencies(12, {1: 0.8, 5: 0.3, 6: 0.5}, {1: 0.4, 6: 1.0})
    spectrum = np.fft.rfft(x)
    # Sums of twelve numbers of order one.
    np.testing.assert_allclose(
        spectrum, [0, 4.8 * np.exp(0.4j), 0, 0, 0, 1.8, 12 * 0.5 * np.cos(1.0)], rtol=0, atol=1e-13
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "width", "frequencies"),
    # All frequencies, and a few.
    [(3, 1, None), (7, 5, None), (8, 2, None), (8, 5, {2: 1.0}), (8, 5, {1: 0.7, 4: 0.5}), (8, 5, {4: 1.0})],
)
def test_the_closed_form_is_the_average_over_all_pairs_with_its_gradient(p, width, frequencies):
    x = drawn_encoding(p, seed=p) if frequencies is None else encoding_from_frequencies(p, frequencies)
    task, sampled = ModularAddition(x), modular_addition(x)
    assert frequencies is None or task.analysis.shape == (8, 2 * len(frequencies))

    @jit  # one program for all networks
    def both(network):
        return [jax.value_and_grad(each.loss)(network) for each in (task, sampled)]

    for seed in range(3):
        network = TwoLayer(2 * p, width, p, activation="quadratic", seed=seed)
        (closed, closed_gradient), (average, average_gradient) = jax.device_get(both(network))
        # Both are sums of some thousand products.
        np.testing.assert_allclose(closed, average, rtol=1e-12)
        for one, other in zip(jax.tree.leaves(closed_gradient), jax.tree.leaves(average_gradient), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12 * float(np.abs(other).max()))


@pytest.mark.slow
def test_descent_on_the_average_is_that_on_all_pairs():
    x = encoding_from_frequencies(5, {1: 1.0})
    network = TwoLayer(10, 6, 5, activation="quadratic", scale=0.3)
    method = Descent(learning_rate=0.05, steps=200, save=[0, 50, 100, 200])
    run, same = (descend(task, network, method) for task in (ModularAddition(x), modular_addition(x)))
    assert float(run["loss"][-1]) < 0.9 * float(run["loss"][0])
    # Rounding, which the growth of the weights multiplies.
    np.testing.assert_allclose(run["loss"], same["loss"], rtol=1e-9)
    assert run.attrs["task"] == "modular addition, p = 5"


def test_the_average_has_the_precision_of_the_weights():
    task = ModularAddition(encoding_from_frequencies(5, {1: 1.0}))
    network = TwoLayer(10, 6, 5, activation="quadratic")
    single = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), network)
    loss = jit(lambda network: task.loss(network))
    assert loss(network).dtype == np.float64
    assert loss(single).dtype == np.float32
    np.testing.assert_allclose(loss(single), loss(network), rtol=1e-5)


def test_the_attributes_describe_the_data():
    attributes = ModularAddition(drawn_encoding(7)).attributes()
    assert attributes["samples"] == 49
    assert attributes["input_dimension"] == 14
    assert modular_addition(drawn_encoding(7)).attributes().keys() >= attributes.keys()


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ([1.0, -1.0], "p is 2"),
        (np.zeros(5), "zero"),
        ([1.0, 2.0, 3.0], "subtract"),
        (np.eye(3), "shape"),
        ([1.0, np.nan, -1.0], "not finite"),
    ],
)
def test_an_encoding_that_cannot_be_averaged_is_refused(encoding, words):
    with pytest.raises(InputError, match=words):
        ModularAddition(encoding)


@pytest.mark.parametrize("encoding", [2, 0, -1, 257, 4.5, np.eye(3), [1.0, np.inf, 0.0]])
def test_numbers_that_make_no_samples_are_refused(encoding):
    with pytest.raises(InputError):
        modular_addition(encoding)


@pytest.mark.parametrize(
    ("amplitudes", "phases", "argument"),
    [
        ({}, {}, "amplitudes"),
        ({0: 1.0}, {}, "amplitudes"),
        ({4: 1.0}, {}, "amplitudes"),
        ({1: np.nan}, {}, "amplitudes"),
        ({1: 1.0}, {2: 0.1}, "phases"),
        ({1: 1.0}, {1: np.inf}, "phases"),
    ],
)
def test_frequencies_out_of_range_are_refused(amplitudes, phases, argument):
    with pytest.raises(InputError) as refusal:
        encoding_from_frequencies(7, amplitudes, phases)
    assert refusal.value.argument == argument


@pytest.mark.parametrize(
    "network",
    [
        TwoLayer(10, 3, 5, activation="relu"),
        TwoLayer(10, 3, 4, activation="quadratic"),
        TwoLayer(8, 3, 5, activation="quadratic"),
        TwoLayer(10, 3, 5, activation="relu-power-2"),
    ],
)
def test_another_network_is_refused_with_the_one_that_fits(network):
    task = ModularAddition(encoding_from_frequencies(5, {1: 1.0}))
    with pytest.raises(InputError, match=r"TwoLayer\(10, width, 5, activation=\"quadratic\"\)"):
        task.loss(network)
