from __future__ import annotations

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks import DeepLinear, DiagonalLinear, TwoLayer, linear_layers
from dynascope.networks.two_layer import HomogeneousActivation

shapes = st.lists(st.integers(1, 5), min_size=2, max_size=5)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@given(shapes, st.integers(0, 2**32 - 1))
def test_the_network_is_the_product_of_its_weights(widths, seed):
    network = DeepLinear(widths, seed=seed)
    x = np.random.default_rng(seed).normal(size=(4, widths[0]))
    product = np.linalg.multi_dot([np.eye(widths[0]), *network.weights])
    assert [weight.shape for weight in network.weights] == list(itertools.pairwise(widths))
    size = np.abs(x).max() * np.prod([np.linalg.norm(weight) for weight in network.weights])
    np.testing.assert_allclose(network(x), x @ product, atol=1e-13 * size)  # rounding, where terms cancel
    np.testing.assert_allclose(network(x[0]), network(x)[0], atol=1e-13 * size)


@given(shapes, st.floats(0.1, 10.0), st.integers(0, 2**32 - 1))
def test_the_network_is_homogeneous_of_its_depth(widths, factor, seed):
    network = DeepLinear(widths, seed=seed)
    scaled = jax.tree.map(lambda weight: factor * weight, network)
    x = np.random.default_rng(seed).normal(size=(4, widths[0]))
    assert network.degree == len(widths) - 1
    expected = factor**network.degree * network(x)
    size = factor**network.degree * np.prod([np.linalg.norm(weight) for weight in network.weights])
    np.testing.assert_allclose(scaled(x), expected, rtol=1e-12, atol=1e-12 * size)


@given(st.integers(2, 5), st.floats(-2, 2), st.floats(1e-6, 10))
def test_scale_multiplies_every_layer_and_balance_is_the_log_ratio_of_neighbours(depth, balance, scale):
    widths = [3] * (depth + 1)
    plain, scaled = DeepLinear(widths, seed=2), DeepLinear(widths, seed=2, scale=scale, balance=balance)
    ratios = [after / before for after, before in zip(scaled.weights, plain.weights, strict=True)]
    for ratio in ratios:
        np.testing.assert_allclose(ratio, ratio[0, 0], rtol=1e-12)
    logs = np.log([ratio[0, 0] for ratio in ratios])
    np.testing.assert_allclose(np.diff(logs), balance, atol=1e-12)
    assert logs.mean() == pytest.approx(np.log(scale), abs=1e-12)  # the product of the layers keeps its size


def test_an_entry_has_the_inverse_square_root_of_the_output_width_as_deviation():
    network = DeepLinear((200, 50, 400), scale=0.1)
    for weight in network.weights:
        # The deviation of N Gaussian entries is off by 1/√(2N); four times that.
        assert np.std(weight) == pytest.approx(0.1 / np.sqrt(weight.shape[1]), rel=4 / np.sqrt(2 * weight.size))


def test_one_hidden_layer_is_a_linear_two_layer_network_in_form():
    deep, shallow = DeepLinear((3, 5, 2)), TwoLayer(3, 5, 2)
    deep = eqx.tree_at(lambda network: network.weights, deep, (shallow.first, shallow.second))
    x = np.random.default_rng(0).normal(size=(4, 3))
    np.testing.assert_array_equal(deep(x), shallow(x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_outputs_follow_the_type_of_the_inputs(dtype):
    network = jax.tree.map(lambda weight: weight.astype(dtype), DeepLinear((3, 4, 2)))
    assert network(jnp.ones((5, 3), dtype)).dtype == dtype


def test_a_draw_depends_on_the_seed_alone():
    assert eqx.tree_equal(DeepLinear((3, 2), seed=1), DeepLinear((3, 2), seed=1))
    assert not eqx.tree_equal(DeepLinear((3, 2), seed=1), DeepLinear((3, 2), seed=2))


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"widths": ()}, "widths"),
        ({"widths": (3,)}, "widths"),
        ({"widths": (3, 0, 2)}, "widths"),
        ({"scale": -1.0}, "scale"),
        ({"balance": float("nan")}, "balance"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, argument):
    with pytest.raises(InputError) as caught:
        DeepLinear(**{"widths": (3, 4, 2), **arguments})
    assert caught.value.argument == argument


def test_layers_are_linear_only_for_the_plain_linear_activation():
    assert linear_layers(TwoLayer(3, 5, 2)) is not None
    assert linear_layers(TwoLayer(3, 5, 2, activation="power-1")) is not None
    assert linear_layers(TwoLayer(3, 5, 2, activation="relu")) is None
    assert linear_layers(DiagonalLinear(3)) is None
    # f = 2 x W₁ W₂ flows differently from any x W₁ W₂ at rate one.
    steep = TwoLayer(3, 5, 2)
    object.__setattr__(steep, "activation", HomogeneousActivation(1, 2.0, -2.0, "steep"))
    assert linear_layers(steep) is None
