"""What is promised of tasks and networks holds of those that are there."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from dynascope import networks, tasks
from dynascope.protocols import Average, Dimensioned, Learnable, Network, OneHiddenLayer, SampledNetwork, SumOfNeurons

NETWORKS = {
    "TwoLayer": networks.TwoLayer(3, 4, 2),
    "DiagonalLinear": networks.DiagonalLinear(3),
    "DeepDiagonal": networks.DeepDiagonal(3),
    "DeepLinear": networks.DeepLinear((3, 4, 2)),
    "LinearAttention": networks.LinearAttention(3, 2),
    "MergedAttention": networks.MergedAttention(3, 2),
    "MLP": networks.MLP((3, 4, 2)),
    "Convolutional": networks.Convolutional((8, 8), 2),
    "Recurrent": networks.Recurrent(3, 4, 3),
    "Transformer": networks.Transformer(3, 2, 3, width=4, heads=2),
    "Tree": networks.Tree(3, 4),
    "NeuronSum": networks.NeuronSum(np.ones((2, 3)), lambda weights, x: x @ weights[:, None], degree=1),
}
SUMS_OF_NEURONS = {"TwoLayer", "DiagonalLinear", "LinearAttention", "MergedAttention", "NeuronSum"}
TASKS = {
    "Task": tasks.Task(np.eye(2), np.ones((2, 1))),
    "Labelled": tasks.Labelled(np.eye(2), np.arange(2)),
    "Expectation": tasks.Expectation(lambda network: 0.0),
    "InContextRegression": tasks.InContextRegression([1.0, 0.5], 20),
    "MultiIndex": tasks.MultiIndex([[1.0, 0.0, 1.0]], [[0.0, 1.0]]),
    "ModularAddition": tasks.ModularAddition(np.eye(5)[0] - 0.2),
    "SparseParity": tasks.SparseParity(),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_is_one_and_some_are_sums_of_neurons(name):
    network = NETWORKS[name]
    assert isinstance(network, Network)
    assert isinstance(network, SumOfNeurons) == (name in SUMS_OF_NEURONS)
    assert isinstance(network, OneHiddenLayer) == (name == "TwoLayer")
    assert isinstance(network, SampledNetwork) == (name == "Transformer")


@pytest.mark.parametrize("name", TASKS)
def test_every_task_can_be_learned(name):
    assert isinstance(TASKS[name], Learnable)
    assert isinstance(TASKS[name], Average)
    assert isinstance(TASKS[name], Dimensioned) == (name in {"Task", "Labelled"})


def test_what_lacks_a_part_is_none():
    @dataclasses.dataclass
    class Nameless:
        def loss(self, network):
            return 0.0

    assert isinstance(Nameless(), Average)
    assert not isinstance(Nameless(), Learnable)
    assert not isinstance(np.eye(2), Network)
