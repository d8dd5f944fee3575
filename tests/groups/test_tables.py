from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.groups import Group, cyclic, dihedral, find_group, group_from_table

NAMES = ["C1", "C7", "D1", "D3", "D4", "Q8", "S3", "A4", "S4", "C2xD3", "O"]
# A Latin square with an identity, of which the product is not associative.
LOOP = [[0, 1, 2, 3, 4], [1, 0, 3, 4, 2], [2, 4, 0, 1, 3], [3, 2, 4, 0, 1], [4, 3, 1, 2, 0]]


@pytest.mark.parametrize("name", NAMES)
def test_products_associate_and_inverses_invert(name):
    group = find_group(name)
    elements = range(group.order)
    for g, h, k in itertools.product(elements, repeat=3):
        assert group.table[group.table[g, h], k] == group.table[g, group.table[h, k]]
    assert not group.table[elements, group.inverse].any()
    assert not group.table[group.inverse, elements].any()


@pytest.mark.parametrize("name", NAMES)
def test_the_products_of_the_generators_are_all_elements(name):
    group = find_group(name)
    reached = {0}
    while True:
        grown = reached | {int(group.table[g, h]) for g in reached for h in group.generators}
        if grown == reached:
            break
        reached = grown
    assert len(reached) == group.order


def test_a_product_of_arrays_is_taken_elementwise_and_in_order():
    group = dihedral(3)
    g, h, k = np.array([1, 3]), np.array([3, 1]), np.array([2, 2])
    assert group.product([g, h, k]).tolist() == [group.table[group.table[1, 3], 2], group.table[group.table[3, 1], 2]]


def test_groups_with_the_same_name_and_table_are_equal():
    assert cyclic(4) == cyclic(4)
    assert hash(cyclic(4)) == hash(cyclic(4))
    assert cyclic(4) != group_from_table(cyclic(4).table, "other")


@given(st.sampled_from(NAMES), st.randoms(use_true_random=False))
def test_renumbering_the_elements_leaves_a_group(name, random):
    group = find_group(name)
    order = [0, *random.sample(range(1, group.order), group.order - 1)]
    place = np.argsort(order)
    renumbered = group_from_table(place[group.table[np.ix_(order, order)]])
    assert renumbered.commutative == group.commutative


@given(st.sampled_from(["C5", "D3", "Q8", "A4"]), st.data())
def test_a_single_wrong_entry_is_found(name, data):
    table = find_group(name).table.copy()
    n = len(table)
    row, column = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, n - 1))
    table[row, column] = (table[row, column] + data.draw(st.integers(1, n - 1))) % n
    with pytest.raises(InputError, match="of the table"):
        group_from_table(table)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1, 0], [0, 1]], "entry 0 of row 0 of the table is not 0"),
        ([[0, 1, 2], [2, 0, 1], [1, 2, 0]], "entry 1 of column 0 of the table is not 1"),
        ([[0, 1], [1, 1]], "row 1 of the table does not contain every element exactly once"),
        (LOOP, r"\(g·h\)·k is not g·\(h·k\) for g = \d, h = \d, k = \d"),
        ([[0, 1], [1, 2]], "integers from 0"),
        ([[0, 1], [1, -1]], "integers from 0"),
        ([[0.0, 1.0], [1.0, 0.0]], "float64"),
        ([[0, 1]], r"shape \(1, 2\)"),
        ([], "give a square"),
        ([[0, 1], [1]], "give a square"),
        (3, "give a square"),
    ],
)
def test_a_table_that_is_not_of_a_group_is_refused_with_the_place(table, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        group_from_table(table)


def test_the_triple_that_is_named_does_not_associate():
    with pytest.raises(InputError) as caught:
        group_from_table(LOOP)
    g, h, k = caught.value.value
    assert LOOP[LOOP[g][h]][k] != LOOP[g][LOOP[h][k]]


def test_a_table_cannot_be_changed_afterwards():
    given_table = np.array([[0, 1], [1, 0]])
    group = Group("pair", given_table)
    given_table[1, 1] = 1
    assert group.table[1, 1] == 0
    with pytest.raises(ValueError, match="read-only"):
        group.table[0, 0] = 1


def test_a_group_too_large_for_its_representations_is_refused():
    n = 1001
    with pytest.raises(InputError, match="1001 elements"):
        group_from_table(np.add.outer(np.arange(n), np.arange(n)) % n)
