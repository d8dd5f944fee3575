import jax
import numpy as np
import pytest

from dynascope.flows.blocks import each_member, equal_parts, working_memory
from dynascope.flows.objective import Objective, Samples
from dynascope.networks import TwoLayer


def test_working_memory_counts_every_intermediate_result():
    network, inputs = TwoLayer(2, 100, 2), np.eye(2)[[0, 1, 1]]
    objective = Objective(network, Samples(inputs, inputs))
    with jax.enable_x64(True):
        memory = working_memory(objective.loss, network)
    # At least the hidden layer, its gradient and those of both layers of weights; not a hundred times as much.
    least = 8 * (2 * 3 * 100 + 2 * 100 + 100 * 2)
    assert least <= memory <= 10 * least


def test_the_last_part_is_filled_up_with_copies_of_the_last_member():
    assert equal_parts(5, 2).tolist() == [[0, 1, 2], [3, 4, 4]]
    assert equal_parts(4, 4).tolist() == [[0], [1], [2], [3]]


@pytest.mark.parametrize("needed", [0, 2**19, 2**30])
def test_results_do_not_depend_on_the_blocks(needed):
    values = np.arange(5.0)
    found = each_member(lambda value: value**2, values, many=True, needed=needed)
    np.testing.assert_array_equal(found, values**2)
