from __future__ import annotations

import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks import MLP, Convolutional, Transformer
from dynascope.probes.redundancy import UnitGroup, UnitPart, unit_weights


def test_neurons_have_a_column_a_bias_and_a_row():
    network = MLP((3, 5, 2), seed=1)
    group = UnitGroup(5, [("weights.0", 1), ("biases.0", 0)], [("weights.1", 0)])
    found = unit_weights(network, group)
    np.testing.assert_array_equal(found.incoming, np.vstack([network.weights[0], network.biases[0]]).T)
    np.testing.assert_array_equal(found.outgoing, network.weights[1])


def test_channels_go_on_to_channels_or_to_every_pixel():
    network = Convolutional((8, 8), 10, channels=(2, 3), width=7)
    between = unit_weights(network, UnitGroup(2, [("kernels.0", 3), ("kernel_biases.0", 0)], [("kernels.1", -2)]))
    np.testing.assert_array_equal(between.incoming[1], [*network.kernels[0][..., 1].ravel(), 0.0])
    np.testing.assert_array_equal(between.outgoing[1], network.kernels[1][:, :, 1].ravel())
    last = unit_weights(network, UnitGroup(3, [("kernels.1", 3)], [UnitPart("hidden", 0, interleaved=True)]))
    np.testing.assert_array_equal(last.outgoing[2], network.hidden[2::3].ravel())


def test_heads_have_blocks_of_columns_and_of_rows():
    network = Transformer(5, 2, 5, width=8, heads=2)
    block = network.blocks[0]
    group = UnitGroup(2, [(f"blocks.0.{each}", 1) for each in ("queries", "keys", "values")], [("blocks.0.outputs", 0)])
    found = unit_weights(network, group)
    expected = [each[:, 4:].T.ravel() for each in (block.queries, block.keys, block.values)]
    np.testing.assert_array_equal(found.incoming[1], np.concatenate(expected))
    np.testing.assert_array_equal(found.outgoing[1], block.outputs[4:].ravel())


def test_parameters_of_pytorch_are_found_by_their_names():
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    pytest.importorskip("array_api_compat", reason="array-api-compat comes with the torch extra")
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    group = UnitGroup(4, [("0.weight", 0), ("0.bias", 0)], [("2.weight", 1)])
    found = unit_weights(dict(module.named_parameters()), group)
    assert torch.equal(found.incoming[2, :3], module[0].weight[2])
    assert torch.equal(found.outgoing[2], module[2].weight[:, 2])


def test_it_is_compiled_within_other_functions():
    network = MLP((3, 5, 2))
    group = UnitGroup(5, [("weights.0", 1)], [("weights.1", 0)])
    found = jit(lambda w: unit_weights({"weights.0": w, "weights.1": w.T}, group).incoming)(network.weights[0])
    np.testing.assert_allclose(found, network.weights[0].T, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: UnitGroup(0, [("a", 0)], [("b", 0)]), "units"),
        (lambda: UnitGroup(2, [], [("b", 0)]), "incoming"),
        (lambda: UnitGroup(2, [("a", 0)], []), "outgoing"),
        (lambda: unit_weights(MLP((3, 5, 2)), UnitGroup(5, [("w", 1)], [("weights.1", 0)])), "group"),
        (lambda: unit_weights(MLP((3, 5, 2)), UnitGroup(4, [("weights.0", 1)], [("weights.1", 0)])), "group"),
        (lambda: unit_weights(MLP((3, 5, 2)), UnitGroup(5, [("weights.0", 2)], [("weights.1", 0)])), "group"),
        (lambda: unit_weights({"a": np.ones((2, 2), int)}, UnitGroup(2, [("a", 1)], [("a", 0)])), "parameters"),
    ],
)
def test_a_layer_without_an_axis_of_units_is_refused(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
