import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import MLP


def test_it_is_dense_layers_with_the_activation_between_them():
    network = MLP((3, 5, 4, 2), activation="tanh", seed=1)
    draw = np.random.default_rng(0)
    biases = tuple(draw.normal(size=b.shape) for b in network.biases)
    network = eqx.tree_at(lambda n: n.biases, network, biases)
    x = draw.normal(size=(6, 3))
    h = np.tanh(x @ network.weights[0] + biases[0])
    h = np.tanh(h @ network.weights[1] + biases[1])
    with jax.enable_x64(True):
        np.testing.assert_allclose(network.features(x), h, rtol=1e-12)
        np.testing.assert_allclose(network(x), h @ network.weights[2] + biases[2], rtol=1e-12)
        assert [z.shape for z in network.preactivations(x)] == [(6, 5), (6, 4), (6, 2)]
        np.testing.assert_allclose(network.preactivations(x)[-1], network(x), rtol=1e-12)


@pytest.mark.parametrize("activation", ["relu", "tanh", "erf", "gelu", "linear"])
@pytest.mark.parametrize("bias", [True, False])
def test_both_parametrisations_start_from_the_same_function(activation, bias):
    standard, ntk = (
        MLP((3, 5, 4, 2), activation=activation, bias=bias, parametrisation=each, scale=1.3, seed=2)
        for each in ("standard", "ntk")
    )
    x = np.random.default_rng(0).normal(size=(6, 3))
    with jax.enable_x64(True):
        np.testing.assert_allclose(standard(x), ntk(x), rtol=1e-12)
        outputs = ntk.features(x) @ ntk.classifier + ntk.classifier_bias
        np.testing.assert_allclose(outputs, ntk(x), rtol=1e-12)


@pytest.mark.slow
def test_weights_in_the_ntk_parametrisation_move_the_function_by_their_input_width():
    standard, ntk = (MLP((4, 2), bias=False, parametrisation=each) for each in ("standard", "ntk"))
    with jax.enable_x64(True):
        slope = jit(jax.grad(lambda network: jnp.sum(network(np.ones((1, 4))))))
        slopes = [slope(each) for each in (standard, ntk)]
        np.testing.assert_allclose(slopes[1].weights[0], slopes[0].weights[0] / 2, rtol=1e-12)


def test_weights_have_the_variance_that_is_promised():
    network = MLP((400, 300, 200), scale=2.0)
    for weights, rows in zip(network.weights, (400, 300), strict=True):
        # The sample deviation of k Gaussians is known to 1/√(2k): 0.2 % here, five of them allowed.
        assert np.std(weights) == pytest.approx(2 / rows**0.5, rel=0.015)


def test_a_seed_gives_the_same_weights_again():
    first, again, other = (MLP((3, 4, 2), seed=seed) for seed in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(first.weights, again.weights, strict=True))
    assert not np.array_equal(first.weights[0], other.weights[0])


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"widths": (3,)}, "widths"),
        ({"widths": (3, 0, 2)}, "widths"),
        ({"activation": "step"}, "activation"),
        ({"parametrisation": "mup"}, "parametrisation"),
        ({"scale": 0.0}, "scale"),
    ],
)
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        MLP(**{"widths": (3, 4, 2), **fields})
    assert error.value.argument == argument
