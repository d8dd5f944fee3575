from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import TwoLayer, homogeneous_activation

KINDS = ["linear", "relu", "leaky-relu", "leaky-relu-0.3", "quadratic", "power-1", "power-3", "power-4", "relu-power-3"]
factors = st.floats(0.1, 10.0)


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        ("linear", lambda z: z),
        ("relu", lambda z: np.maximum(z, 0)),
        ("leaky-relu", lambda z: np.where(z > 0, z, 0.01 * z)),
        ("leaky-relu-0.3", lambda z: np.where(z > 0, z, 0.3 * z)),
        ("leaky-relu--1", np.abs),
        ("quadratic", np.square),
        ("power-1", lambda z: z),
        ("power-3", lambda z: z**3),
        ("power-4", lambda z: z**4),
        ("relu-power-2", lambda z: np.maximum(z, 0) ** 2),
        ("relu-power-3", lambda z: np.maximum(z, 0) ** 3),
    ],
)
def test_each_name_is_the_function_of_the_field(kind, formula):
    z = np.linspace(-3, 3, 25)
    activation = homogeneous_activation(kind)
    for values in (activation(z), jit(activation)(z)):  # of NumPy and of JAX
        np.testing.assert_allclose(values, formula(z), rtol=1e-14, atol=1e-300)  # powers round to the last bit
    np.testing.assert_array_equal(activation(np.array([1.0, -1.0])), [activation.positive, activation.negative])
    assert activation.name == kind


@given(st.sampled_from(KINDS), factors, st.floats(-5, 5))
def test_activations_are_positively_homogeneous(kind, factor, z):
    activation = homogeneous_activation(kind)
    scaled, plain = activation(np.array([factor * z])), activation(np.array([z]))
    np.testing.assert_allclose(scaled, factor**activation.degree * plain, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("kind", KINDS)
def test_activations_have_a_finite_slope_at_zero(kind):
    slope = jax.grad(lambda z: homogeneous_activation(kind)(z))(jnp.array(0.0))
    assert np.isfinite(slope)
    assert slope == 0 or homogeneous_activation(kind).degree == 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_follow_the_type_of_the_inputs(kind, dtype):
    network = jax.tree.map(lambda weight: weight.astype(dtype), TwoLayer(3, 4, 2, activation=kind))
    for function, shape in ((homogeneous_activation(kind), (2,)), (network, (5, 3))):
        assert function(np.ones(shape, dtype)).dtype == dtype
        assert jax.eval_shape(function, jax.ShapeDtypeStruct(shape, dtype)).dtype == dtype


@given(st.sampled_from(KINDS), factors, st.integers(0, 2**32 - 1))
def test_the_network_is_homogeneous_of_its_degree(kind, factor, seed):
    x = np.random.default_rng(seed).normal(size=(6, 3))
    network = TwoLayer(3, 5, 2, activation=kind, balance=0.7, seed=seed)
    scaled = jax.tree.map(lambda weight: factor * weight, network)
    # Neurons may cancel: the rounding is that of the largest output.
    expected = factor**network.degree * np.asarray(network(x))
    np.testing.assert_allclose(scaled(x), expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_the_network_is_the_sum_of_its_neurons():
    x = np.random.default_rng(0).normal(size=(6, 3))
    network = TwoLayer(3, 5, 2, activation="relu")
    neurons = [np.outer(np.maximum(x @ network.first[:, i], 0), network.second[i]) for i in range(5)]
    np.testing.assert_allclose(network(x), np.sum(neurons, axis=0), rtol=1e-12)
    np.testing.assert_allclose(network(x[0]), network(x)[0], rtol=1e-12)


@pytest.mark.parametrize("width", [400, 4000])
def test_the_squared_weight_of_a_coordinate_is_the_squared_scale_at_any_width(width):
    network = TwoLayer(7, width, 3, scale=0.1, seed=1)
    # A mean of `width` squared Gaussians is off by √(2/width); four times that.
    tolerance = 4 * np.sqrt(2 / width)
    np.testing.assert_allclose(np.sum(network.first**2, axis=1), 0.01, rtol=tolerance)
    np.testing.assert_allclose(np.sum(network.second**2, axis=0), 0.01, rtol=tolerance)


def test_scale_and_balance_multiply_the_layers_of_one_draw():
    plain, scaled = TwoLayer(3, 5, 2, seed=4), TwoLayer(3, 5, 2, scale=0.1, balance=1.5, seed=4)
    np.testing.assert_allclose(scaled.first, 0.1 * np.exp(-0.75) * plain.first, rtol=1e-14)
    np.testing.assert_allclose(scaled.second, 0.1 * np.exp(0.75) * plain.second, rtol=1e-14)


def test_a_draw_depends_on_the_seed_alone_and_is_in_float64():
    assert eqx.tree_equal(TwoLayer(3, 5, 2, seed=1), TwoLayer(3, 5, 2, seed=1))
    assert not eqx.tree_equal(TwoLayer(3, 5, 2, seed=1), TwoLayer(3, 5, 2, seed=2))
    assert [leaf.dtype for leaf in jax.tree.leaves(TwoLayer(3, 5, 2))] == [np.float64] * 2


@pytest.mark.parametrize(
    "kind",
    ["", "tanh", "ReLU", "power", "power-0", "power--1", "power-1.5", "power-²", "relu-power-0", "leaky-relu-",
     "leaky-relu-a", "leaky-relu-nan", "leaky-relu-inf", "relu-2"],
)  # fmt: skip
def test_unknown_activations_are_refused(kind):
    with pytest.raises(InputError, match="choose linear, relu, leaky-relu") as caught:
        homogeneous_activation(kind)
    assert (caught.value.argument, caught.value.value) == ("activation", kind)


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        ({"input_dimension": 0}, "input_dimension"),
        ({"width": -1}, "width"),
        ({"output_dimension": 0}, "output_dimension"),
        ({"scale": 0.0}, "scale"),
        ({"scale": float("nan")}, "scale"),
        ({"balance": float("inf")}, "balance"),
        ({"activation": "tanh"}, "activation"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, argument):
    with pytest.raises(InputError) as caught:
        TwoLayer(**{"input_dimension": 3, "width": 4, "output_dimension": 2, **arguments})
    assert caught.value.argument == argument


def test_a_network_that_cannot_fit_is_refused_with_the_bytes_it_would_need():
    with pytest.raises(InputError, match=r"arrays of .* GB") as caught:
        TwoLayer(60, 10**9, 10)
    assert caught.value.argument == "width"
