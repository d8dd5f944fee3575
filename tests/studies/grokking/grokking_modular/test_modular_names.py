from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dynascope.studies.grokking.grokking_modular.modular_names import other_names, renamed_results
from dynascope.tasks.algebra.modular_arithmetic import ModularArithmetic

operations = st.sampled_from(["addition", "subtraction", "multiplication", "division"])


@given(operations, st.sampled_from([3, 5, 7, 13, 23, 31]))
def test_renaming_turns_every_operation_into_a_sum_or_a_difference(operation, p):
    table, names = ModularArithmetic(operation, p, train_fraction=0.5), other_names(operation, p)
    assert sorted(names) == list(range(p))
    np.testing.assert_array_equal(renamed_results(operation, p, names[table.pairs]), names[table.results])


def test_logarithms_turn_products_into_sums_modulo_p_minus_one():
    names = other_names("multiplication", 7)
    assert names[0] == 6
    assert names[1] == 0
    for a in range(1, 7):
        for b in range(1, 7):
            assert names[a * b % 7] == (names[a] + names[b]) % 6
