from __future__ import annotations

import jax
import numpy as np
import pytest
from symmetry.zoo import NETWORKS, structure_of

from dynascope.errors import InputError
from dynascope.symmetry import discover_blocks

# Those whose units stand in one order, in no stack of layers, and whose inputs meet every pattern.
REORDERED = ("group norm", "tied embedding", "embedding", "recurrent", "experts", "transformer", "stacked", "counted")
ALIGNED = [name for name in NETWORKS if name not in REORDERED]


@pytest.mark.parametrize("name", ALIGNED)
def test_blocks_have_as_many_charges_as_the_program(name):
    found = discover_blocks(*NETWORKS[name][:3])
    assert found.charges == structure_of(name).size == NETWORKS[name].charges
    assert not any(found.unclear.values())


def network(p, x):
    hidden = jax.nn.relu(jax.nn.relu(x @ p["W"] + p["b"]) @ p["V"] + p["c"])
    return jax.nn.log_softmax(hidden @ p["A"] + p["a"])


SHAPES = {"W": (784, 100), "b": (100,), "V": (100, 170), "c": (170,), "A": (170, 10), "a": (10,)}


def test_a_network_of_a_hundred_thousand_parameters_is_read_within_the_memory_that_was_told():
    random = np.random.default_rng(0)
    params = {name: random.normal(size=shape) / shape[0] ** 0.5 for name, shape in SHAPES.items()}
    assert sum(each.size for each in params.values()) > 97_000
    found = discover_blocks(network, params, random.normal(size=(64, 784)))
    # A rescaling for each neuron; each row of the last weights and the last bias may be shifted.
    assert found.charges == (100 + 170) + (170 + 1)
    assert (found.units[100].sum(), found.units[170].sum(), found.translations) == (100, 170, 171)
    assert not any(found.pairs.values())
    assert found.memory < 1e8
    with pytest.raises(InputError, match="memory"):
        discover_blocks(network, params, np.ones((2, 784)), memory=found.memory - 1)
