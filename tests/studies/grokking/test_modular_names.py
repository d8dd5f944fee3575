from __future__ import annotations

import equinox as eqx
import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.networks import TwoLayer
from dynascope.networks.transformer import Transformer
from dynascope.studies.grokking.modular_names import other_names, renamed_network, renamed_results, renamed_task
from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic

operations = st.sampled_from(["addition", "subtraction", "multiplication", "division"])


@given(operations, st.sampled_from([3, 5, 7, 13, 23, 31]))
def test_by_other_names_every_operation_is_a_sum_or_a_difference(operation, p):
    table, names = ModularArithmetic(operation, p, train_fraction=0.5), other_names(operation, p)
    assert sorted(names) == list(range(p))
    np.testing.assert_array_equal(renamed_results(operation, p, names[table.pairs]), names[table.results])


def test_logarithms_turn_products_into_sums_modulo_one_less():
    names = other_names("multiplication", 7)
    assert names[0] == 6
    assert names[1] == 0
    for a in range(1, 7):
        for b in range(1, 7):
            assert names[a * b % 7] == (names[a] + names[b]) % 6


@eqx.filter_jit
def _outputs(network, inputs):
    return network(inputs)


def outputs(network, inputs):
    return np.asarray(_outputs(network, inputs))


@pytest.mark.parametrize("kind", ["two-layer", "transformer"])
def test_a_renamed_network_answers_renamed_questions_with_renamed_answers(kind):
    p, table = 7, ModularArithmetic("division", 7, train_fraction=0.5)
    network = TwoLayer(2 * p, 9, p, activation="relu") if kind == "two-layer" else Transformer(p, 2, p, width=8)
    names = other_names("division", p)
    task = renamed_task(table, names)
    with jax.enable_x64(True):
        old, new = outputs(network, table.train.inputs), outputs(renamed_network(network, names), task.inputs)
    # The same sums.
    np.testing.assert_allclose(new[:, names], old, rtol=1e-13)
    np.testing.assert_array_equal(task.targets[:, names], table.train.targets)
