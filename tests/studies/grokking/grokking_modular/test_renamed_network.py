from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.compilation import filter_jit
from dynascope.networks import TwoLayer
from dynascope.networks.transformer import Transformer
from dynascope.studies.grokking.grokking_modular.modular_names import other_names, renamed_task
from dynascope.studies.grokking.grokking_modular.renamed_network import renamed_network
from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic


@filter_jit
def _outputs(network, inputs):
    return network(inputs)


def outputs(network, inputs):
    return np.asarray(_outputs(network, inputs))


@pytest.mark.parametrize("kind", ["two-layer", "transformer"])
def test_a_renamed_network_maps_renamed_inputs_to_renamed_outputs(kind):
    p, table = 7, ModularArithmetic("division", 7, train_fraction=0.5)
    network = TwoLayer(2 * p, 9, p, activation="relu") if kind == "two-layer" else Transformer(p, 2, p, width=8)
    names = other_names("division", p)
    task = renamed_task(table, names)
    with jax.enable_x64(True):
        old, new = outputs(network, table.train.inputs), outputs(renamed_network(network, names), task.inputs)
    # The same sums.
    np.testing.assert_allclose(new[:, names], old, rtol=1e-13)
    np.testing.assert_array_equal(task.targets[:, names], table.train.targets)
