from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.interventions import prune as prune_in_either
from dynascope.interventions.pruning_scores import Method

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402  after what it needs was asked for
from torch.nn.utils.prune import custom_from_mask, random_unstructured  # noqa: E402

from dynascope.torch import critical_compression, prune  # noqa: E402

METHODS: tuple[Method, ...] = ("synflow", "snip", "grasp", "magnitude", "random")


class Block(nn.Module):
    """A residual block with a 1 × 1 shortcut."""

    def __init__(self, entering, leaving):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(entering, leaving, 3, padding=1),
            nn.BatchNorm2d(leaving),
            nn.ReLU(),
            nn.Conv2d(leaving, leaving, 3, padding=1),
        )
        self.shortcut = nn.Conv2d(entering, leaving, 1)

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


def residual(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(
        Block(1, 4), nn.MaxPool2d(2), Block(4, 6), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3)
    )


def twins():
    """A network of equinox and a module of PyTorch with the same weights, and biases that are not zero."""
    network = eqx.nn.MLP(6, 4, 12, 2, key=jax.random.key(0))
    module = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 12), nn.ReLU(), nn.Linear(12, 4))
    with torch.no_grad():
        for layer, other in zip(network.layers, list(module)[::2], strict=True):
            other.get_parameter("weight").copy_(torch.tensor(np.asarray(layer.weight)))
            other.get_parameter("bias").copy_(torch.tensor(np.asarray(layer.bias)))
    return network, module


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_both_frameworks_give_the_same_masks(method):
    network, module = twins()
    x, labels = np.random.default_rng(0).normal(size=(20, 6)), np.arange(20) % 4
    options: dict[str, Any] = {"compression": 6.0, "rounds": 5, "allow_collapse": True}
    expected = prune_in_either(network, method, data=(x, labels), **options)
    found = prune(module, method, data=(torch.tensor(x), torch.tensor(labels)), **options)
    for layer, mask in zip(expected.mask.layers, found.mask.values(), strict=True):
        np.testing.assert_array_equal(layer.weight, mask.numpy())
    for column in ("size", "kept", "dead_units", "flow_share"):
        np.testing.assert_allclose(found.layers[column].tolist(), expected.layers[column].tolist(), rtol=1e-9)


@pytest.mark.slow
def test_a_residual_network_is_pruned_trained_and_stays_pruned():
    model = residual()
    before = {name: each.clone() for name, each in model.state_dict().items()}
    pruned = prune_in_either(model, "synflow", compression=5.0, input_shape=(1, 8, 8), protect=["shortcut"])
    assert all(torch.equal(each, before[name]) for name, each in model.state_dict().items())
    assert model.training
    assert not any("shortcut" in name for name in pruned.mask)
    assert sum(int(mask.sum()) for mask in pruned.mask.values()) == sum(pruned.layers["kept"].tolist())
    for name, mask in pruned.mask.items():
        module, _, parameter = name.rpartition(".")
        custom_from_mask(model.get_submodule(module), parameter, mask)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, labels = torch.randn(30, 1, 8, 8), torch.arange(30) % 3
    first = last = None
    for _ in range(20):
        loss = nn.functional.cross_entropy(model(x), labels)
        first, last = first or loss.item(), loss.item()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert last is not None and first is not None and last < first  # noqa: PT018
    weight: Any = model.get_submodule("0.body.0").weight
    assert ((weight != 0) <= (pruned.mask["0.body.0.weight"] != 0)).all()


@pytest.mark.slow
def test_the_maximal_compression_is_reached_by_synflow_only():
    module = nn.Sequential(nn.Linear(20, 30, bias=False), nn.ReLU(), nn.Linear(30, 5, bias=False))
    found = critical_compression(module)
    assert found.layers == found.paths == found.maximal == 375
    assert critical_compression(module, "random").layers < 375


@pytest.mark.slow
@pytest.mark.parametrize(("gain", "reached"), [(1, False), (10, True)])
def test_with_protected_shortcuts_only_heavy_blocks_keep_weights_up_to_the_maximal_compression(gain, reached):
    module = residual()
    with torch.no_grad():
        for name, weight in module.named_parameters():
            if weight.ndim == 1:
                weight.mul_(float("norm" in name or "body.1" in name))
            elif "body" in name:
                weight.mul_(gain)
    options: dict[str, Any] = {"input_shape": (1, 8, 8), "protect": ["shortcut"]}
    found = critical_compression(module, **options)
    assert (found.layers == found.maximal) == reached
    assert found.paths == found.maximal
    pruned = prune(module, compression=found.maximal, allow_collapse=True, **options)
    assert (set(pruned.layers["kept"].tolist()) == {1}) == reached
    assert bool(pruned.collapsed_layers) != reached


@pytest.mark.slow
def test_a_layer_that_is_not_homogeneous_is_named():
    module = nn.Sequential(nn.Linear(5, 8), nn.GELU(), nn.Linear(8, 8), nn.LayerNorm(8), nn.ReLU(), nn.Linear(8, 2))
    with pytest.warns(UserWarning, match="GELU"):
        pruned = prune(module, compression=2.0)
    assert pruned.inhomogeneous == ("1 (GELU)", "3 (LayerNorm)")
    assert prune(residual(), compression=2.0, input_shape=(1, 8, 8)).conservation_defect < 1e-9


def tied():
    first, second = nn.Linear(4, 4), nn.Linear(4, 4)
    second.weight = first.weight
    return nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.Linear(4, 4))


@pytest.mark.slow
def test_weights_before_a_softmax_cannot_be_ranked():
    module = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3), nn.Softmax(1))
    with pytest.warns(UserWarning, match=r"does not depend on 0.weight, 2.weight"):
        prune(module, compression=2.0)
    assert prune(tied(), "magnitude", compression=2.0, protect=["0"], input_shape=(4,)).compression == 2


def test_bad_input_is_rejected_by_name():
    for argument, model, options in (
        ("input_shape", residual(), {}),
        ("input_shape", residual(), {"input_shape": (3, 8, 8)}),
        ("data", residual(), {"method": "snip"}),
        ("protect", residual(), {"protect": ["downsample"]}),
        ("compression", residual(), {"compression": 1e5, "input_shape": (1, 8, 8)}),
        ("network", nn.BatchNorm1d(3), {}),
        ("network", tied(), {}),
        ("network", nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))), {}),
        ("network", nn.Sequential(random_unstructured(nn.Linear(3, 3), "weight", amount=0.5)), {}),
        ("input_shape", nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 2)), {"input_shape": (3,)}),
        ("data", nn.Linear(3, 2), {"method": "snip", "data": (torch.ones(4, 3), torch.arange(4))}),
        ("data", nn.Linear(3, 2), {"method": "snip", "data": (torch.ones(4, 3), torch.ones(3, 2))}),
        ("data", nn.Linear(3, 2), {"method": "snip", "data": (torch.ones(4, 3) / 0, torch.ones(4, 2))}),
    ):
        with pytest.raises(InputError) as error:
            prune(model, **{"compression": 2.0, **options})
        assert error.value.argument == argument
