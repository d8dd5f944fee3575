from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynascope as ds
from dynascope.errors import InputError
from dynascope.networks import MLP

torch = pytest.importorskip("torch")

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(20, 5))
Y = np.sign(X[:, :1] * X[:, 1:2])


def module_of(network, activation=torch.nn.Tanh):
    layers = []
    for number, weight in enumerate(network.weights):
        layer = torch.nn.Linear(*weight.shape, bias=bool(network.biases), dtype=torch.float64)
        with torch.no_grad():
            layer.weight.copy_(torch.tensor(np.asarray(weight).T))
            if network.biases:
                layer.bias.copy_(torch.tensor(np.asarray(network.biases[number])))
        layers += [layer, activation()]
    return torch.nn.Sequential(*layers[:-1])


@pytest.mark.parametrize(("activation", "made"), [("tanh", torch.nn.Tanh), ("relu", torch.nn.ReLU)])
@pytest.mark.parametrize("learning_rate", [0.05, [0.05, 0.02, 0.01]])
def test_pytorch_and_jax_give_the_same_answer(activation, made, learning_rate):
    network = MLP((5, 12, 8, 1), activation=activation)
    options: Any = {"learning_rate": learning_rate, "probe": True, "turns": False, "steps": 4000, "output_scale": 0.5}
    one, other = ds.regime((X, Y), network, **options), ds.regime((X, Y), module_of(network, made), **options)
    assert one.label == other.label
    assert other.kernel_distance == pytest.approx(one.kernel_distance, rel=1e-8)
    assert other.ratio == pytest.approx(one.ratio, rel=1e-8)
    # In PyTorch, inputs of all activation functions are known by their modules.
    assert activation == "tanh" or other.hamming_distance == pytest.approx(one.hamming_distance)


def test_the_module_is_unchanged_and_tensors_of_any_shape_are_accepted():
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Dropout(), torch.nn.Linear(16, 2)
    )
    before = {name: each.clone() for name, each in module.state_dict().items()}
    images, labels = torch.randn(24, 1, 4, 4), torch.arange(24) % 2
    found = ds.regime((images, labels), module, learning_rate=0.1, turns=False, steps=300)
    assert found.label in ("lazy", "rich", "undecided", "delayed rich")
    assert found.hamming_distance is not None
    assert 0 <= found.hamming_distance <= 1
    assert module.training
    assert all(torch.equal(before[name], each) for name, each in module.state_dict().items())
    found = ds.regime((images, labels), module, learning_rate=0.1, loss="cross_entropy", steps=300)
    assert found.turns == ()


def test_a_scale_multiplies_the_weights():
    module = module_of(MLP((5, 12, 1), activation="relu", bias=False), torch.nn.ReLU)
    options: Any = {"probe": True, "turns": False}
    one = ds.regime((X, Y), module, scale=2.0, **options)
    other = ds.regime((X, Y), module, output_scale=4.0, **options)
    assert other.kernel_distance == pytest.approx(one.kernel_distance, rel=1e-2)


def test_a_module_without_weights_is_named():
    with pytest.raises(InputError) as error:
        ds.regime((X, Y), torch.nn.Sequential(torch.nn.ReLU()))
    assert error.value.argument == "network"


@pytest.mark.parametrize(
    ("data", "argument"),
    [
        ((X[:, :3], Y), "network"),
        ((np.where(X > 1, np.nan, X), Y), "task"),
        ((X[:0], Y[:0]), "task"),
        ((X, np.array(["a"] * 20)), "task"),
    ],
)
def test_bad_data_are_named(data, argument):
    with pytest.raises(InputError) as error:
        ds.regime(data, torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 1)))
    assert error.value.argument == argument


def test_layers_that_act_differently_in_training_are_named():
    module = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    options: Any = {"learning_rate": 0.05, "turns": False, "steps": 300}
    assert "BatchNorm1d" in str(ds.regime((X, Y), module, **options))
    assert "BatchNorm1d" not in str(ds.regime((X, Y), module.eval(), **options))
