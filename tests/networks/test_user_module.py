from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from drawn_modules import drawn

from dynascope import GradientFlow, predict
from dynascope.alternating import alternating_flow
from dynascope.errors import InputError
from dynascope.flows import gradient_flow
from dynascope.networks import MLP, BiasedTwoLayer, DeepLinear, DiagonalLinear, TwoLayer, at_unit_scale, user_network
from dynascope.tasks import Task

POINTS = np.random.default_rng(0).normal(size=(7, 3))


def mlp(activation=jax.nn.relu, depth=1, **options):
    return drawn(eqx.nn.MLP, 3, 2, 6, depth, activation, **{"use_bias": False, "use_final_bias": False, **options})


def equinox(*layers):
    return eqx.nn.Sequential(
        [eqx.nn.Lambda(layer) if callable(layer) and not isinstance(layer, eqx.Module) else layer for layer in layers]
    )


def linear(inputs, outputs):
    return drawn(eqx.nn.Linear, inputs, outputs, use_bias=False)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (mlp(), "relu"),
        (mlp(lambda z: z), "linear"),
        (mlp(lambda z: 3 * z), "linear"),
        (mlp(jax.nn.leaky_relu), "leaky-relu-0.01"),
        (mlp(lambda z: z**2), "quadratic"),
        (mlp(jnp.abs), "leaky-relu--1"),
        (equinox(linear(3, 6), jax.nn.relu, jnp.square, linear(6, 2)), "relu-power-2"),
        (equinox(linear(3, 6), linear(6, 2)), "linear"),
    ],
)
def test_a_network_of_equinox_computes_the_same(module, name):
    network = user_network(module)
    assert network.activation.name == name
    assert network.first.dtype == np.float64
    np.testing.assert_allclose(network(POINTS), jax.vmap(module)(jnp.asarray(POINTS)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (mlp(use_bias=True, use_final_bias=True), BiasedTwoLayer),
        (mlp(use_bias=True), BiasedTwoLayer),
        (mlp(jnp.square, use_final_bias=True), BiasedTwoLayer),
        (mlp(lambda z: 3 * z, use_bias=True, use_final_bias=True), MLP),
        (mlp(lambda z: z, depth=2, use_final_bias=True), MLP),
        (drawn(eqx.nn.Linear, 3, 2), MLP),
    ],
)
def test_a_network_of_equinox_with_biases_computes_the_same(module, kind):
    network = user_network(module)
    assert isinstance(network, kind)
    expected = jax.vmap(module)(jnp.asarray(POINTS))
    np.testing.assert_allclose(network(POINTS), expected, rtol=1e-5, atol=1e-6)
    unit, scale = at_unit_scale(network)
    restored = jax.tree.map(lambda leaf: scale * leaf if eqx.is_array(leaf) else leaf, unit)
    np.testing.assert_allclose(restored(POINTS), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (mlp(jnp.square, use_bias=True), "the hidden neurons have biases, but the activation quadratic has degree 2"),
        (mlp(depth=2), "the network has 3 linear layers"),
        (equinox(linear(3, 6), jax.nn.relu), "the network has 1 linear layer:"),
        (mlp(jnp.tanh), "tanh is not homogeneous"),
        (mlp(jax.nn.relu6), "relu6 is not homogeneous"),
        (mlp(lambda z: 0 * z), "is not homogeneous"),
        (mlp(final_activation=jax.nn.relu), "before its first or after its last"),
        (equinox(linear(3, 6), eqx.nn.Dropout(), linear(6, 2)), "does not cover networks with Dropout"),
        (equinox(linear(3, 6), eqx.nn.PReLU(), linear(6, 2)), "does not cover networks with PReLU"),
    ],
)
def test_what_is_in_the_way_is_named(module, said):
    with pytest.raises(InputError, match=said) as caught:
        user_network(module)
    assert caught.value.argument == "network"


def test_others_are_not_ours_to_read():
    assert user_network(TwoLayer(3, 4, 2)) is None
    assert user_network(lambda x: x) is None
    with pytest.raises(InputError, match="MLP has no default scale"):
        at_unit_scale(MLP((3, 4, 2)))


@pytest.mark.parametrize(
    "module", [linear(3, 2), mlp(depth=0), mlp(lambda z: z, depth=2), equinox(*(linear(3, 3) for _ in range(4)))]
)
def test_linear_layers_alone_are_read_whatever_their_number(module):
    network = user_network(module)
    assert isinstance(network, DeepLinear)
    np.testing.assert_allclose(network(POINTS), jax.vmap(module)(jnp.asarray(POINTS)), rtol=1e-5, atol=1e-6)


def test_the_scale_is_the_factor_on_weights_as_they_are_drawn():
    for network, inputs in (
        (TwoLayer(30, 500, 20, activation="relu", scale=1e-3), 30),
        (DiagonalLinear(5, scale=1e-3), 5),
        (DeepLinear((30, 400, 300, 20), scale=1e-3), 30),
    ):
        unit, scale = at_unit_scale(network)
        assert scale == pytest.approx(1e-3, rel=0.05)  # 25 000 Gaussian weights
        assert type(unit) is type(network)
        points = np.eye(inputs)
        np.testing.assert_allclose(unit(points) * scale**network.degree, network(points), rtol=1e-12)


def test_a_linear_model_may_start_from_zero():
    network = eqx.tree_at(lambda net: net.weights, DeepLinear((3, 2)), (np.zeros((3, 2)),))
    assert at_unit_scale(network) == (network, 1.0)


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is an optional extra")


def sequential(torch, *functions, bias=False):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 6, bias=bias), *functions, torch.nn.Linear(6, 2, bias=False))


@pytest.mark.slow
def test_a_sequential_computes_the_same_and_keeps_its_weights(torch):
    for function, name in (
        (torch.nn.ReLU(inplace=True), "relu"),
        (torch.nn.Identity(), "linear"),
        (torch.nn.LeakyReLU(0.2), "leaky-relu-0.2"),
    ):
        module = sequential(torch, function, bias=name == "relu")
        network = user_network(torch.nn.Sequential(torch.nn.Flatten(), module))
        assert network.activation.name == name
        expected = module(torch.tensor(POINTS, dtype=torch.float32)).detach().numpy()
        np.testing.assert_allclose(network(POINTS), expected, rtol=1e-4, atol=1e-6)
        (network.inner if name == "relu" else network).first[:] = 0
        assert float(module[0].weight.detach().abs().sum()) > 0


@pytest.mark.slow
def test_what_is_in_the_way_in_pytorch_is_named(torch):
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.body = torch.nn.Sequential(torch.nn.Linear(3, 2))

    frozen = sequential(torch, torch.nn.ReLU())
    frozen[0].weight.requires_grad_(False)
    for module, said in (
        (sequential(torch, torch.nn.BatchNorm1d(6)), "does not cover networks with BatchNorm1d"),
        (sequential(torch, torch.nn.Dropout()), "does not cover networks with Dropout"),
        (sequential(torch, torch.nn.GELU()), "GELU is not homogeneous"),
        (sequential(torch, torch.nn.ReLU(), torch.nn.Linear(6, 6, bias=False)), "3 linear layers"),
        (frozen, "are not trainable"),
        (Net(), "whose custom code cannot be analysed: give its part 'body'"),
        (torch.nn.LSTM(3, 2), "does not cover networks with LSTM"),
    ):
        with pytest.raises(InputError, match=said):
            user_network(module)


@pytest.mark.slow
def test_a_network_that_is_wrapped_is_found(torch):
    module = sequential(torch, torch.nn.ReLU())
    found = user_network(torch.nn.DataParallel(module))
    np.testing.assert_array_equal(found.first, user_network(module).first)


def test_the_prediction_of_a_module_is_that_of_its_weights():
    draw = np.random.default_rng(1)
    task = Task(draw.normal(size=(20, 3)), draw.normal(size=(20, 2)))
    module = jax.tree.map(lambda leaf: 1e-4 * leaf if eqx.is_array(leaf) else leaf, mlp(lambda z: z))
    network, scale = at_unit_scale(user_network(module))
    found = predict(task, module, curve=False).record
    assert found.attrs["scale"] == scale
    np.testing.assert_array_equal(found["jump_time"], predict(task, network, scale=scale, curve=False)["jump_time"])
    large = jax.tree.map(lambda leaf: 1e5 * leaf if eqx.is_array(leaf) else leaf, module)
    with pytest.raises(InputError, match=r"the weights have scale .* predict before training"):
        predict(task, large)
    with pytest.raises(InputError, match=r"the network has input and output dimensions \(3, 2\)"):
        predict(Task(draw.normal(size=(20, 4)), draw.normal(size=(20, 2))), module)


def test_flows_take_the_modules_of_users_as_they_are():
    inputs = np.random.default_rng(0).normal(size=(20, 3))
    task = Task(inputs, np.maximum(inputs[:, :1], 0))
    perceptron = eqx.nn.MLP(3, 1, 8, 1, key=jax.random.key(0))
    read, method = user_network(perceptron), GradientFlow(duration=1.0, save=3)
    assert read is not None
    np.testing.assert_array_equal(
        gradient_flow(task, perceptron, method)["loss"], gradient_flow(task, read, method)["loss"]
    )
    network, size = at_unit_scale(read)
    xr.testing.assert_identical(
        alternating_flow(task, perceptron, scale=1e-4, jumps=1),
        alternating_flow(task, network, scale=1e-4 * size, jumps=1),
    )
