from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.groups import (
    alternating,
    cyclic,
    dihedral,
    find_group,
    symmetric,
)


@pytest.mark.parametrize(
    ("name", "order", "classes"),
    [
        ("C12", 12, 12),
        ("D4", 8, 5),
        ("D5", 10, 4),
        ("Q8", 8, 5),
        ("S3", 6, 3),
        ("S4", 24, 5),
        ("S5", 120, 7),
        ("A4", 12, 4),
        ("A5", 60, 5),
        ("O", 24, 5),
        ("Oh", 48, 10),
        ("C5xC5", 25, 25),
        ("C2xC2xC2", 8, 8),
    ],
)
def test_orders_and_numbers_of_conjugacy_classes(name, order, classes):
    group = find_group(name)
    # Burnside: the pairs that commute are as many as elements times classes.
    commuting = int(np.sum(group.table == group.table.T))
    assert (group.name, group.order, commuting) == (name, order, order * classes)


def test_dihedral_elements_are_rotations_then_reflections():
    n = 5
    group = dihedral(n)
    angle = 2 * np.pi * np.arange(n) / n
    rotations = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]).transpose(2, 0, 1)
    matrices = np.concatenate([rotations, rotations @ np.diag([1.0, -1.0])])
    products = np.einsum("gij,hjk->ghik", matrices, matrices)
    # Products of two matrices of entries below one are exact to a few units of rounding.
    np.testing.assert_allclose(products, matrices[group.table], atol=1e-14)


def test_quaternions_multiply_as_hamilton_says():
    group = find_group("Q8")
    one, minus, i, j, k = 0, 1, 2, 4, 6
    assert [group.table[each, each] for each in (i, j, k)] == [minus] * 3
    assert (group.table[i, j], group.table[j, k], group.table[k, i]) == (k, i, j)
    assert (group.table[j, i], group.table[minus, i], group.table[minus, minus]) == (k + 1, i + 1, one)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_permutations_compose_from_the_right(n):
    permutations = list(itertools.permutations(range(n)))
    group = symmetric(n)
    for g, h in itertools.product(range(group.order), repeat=2):
        composed = tuple(permutations[g][permutations[h][i]] for i in range(n))
        assert permutations[group.table[g, h]] == composed


def test_alternating_groups_are_the_even_permutations():
    even = [each for each in itertools.permutations(range(4)) if np.linalg.det(np.eye(4)[list(each)]) > 0]
    group = alternating(4)
    g, h = 5, 7
    assert even[group.table[g, h]] == tuple(even[g][even[h][i]] for i in range(4))


@given(st.integers(1, 6), st.integers(1, 6))
def test_a_direct_product_multiplies_each_factor(m, n):
    group = find_group(f"C{m}xD{n}")
    first, second = np.divmod(np.arange(group.order), 2 * n)
    expected = cyclic(m).table[np.ix_(first, first)] * 2 * n + dihedral(n).table[np.ix_(second, second)]
    np.testing.assert_array_equal(group.table, expected)


def test_the_octahedral_rotations_are_half_of_the_symmetries_of_the_cube():
    full, rotations = find_group("Oh"), find_group("O")
    np.testing.assert_array_equal(full.table[::2, ::2] // 2, rotations.table)
    # The inversion, element 1, commutes with everything.
    np.testing.assert_array_equal(full.table[1], full.table[:, 1])


@pytest.mark.parametrize("name", ["", "C", "C0", "X5", "C5x", "C5xC", "Q16", "c5", "D-3", "C5 x C5", "C٣"])
def test_an_unknown_name_is_refused(name):
    with pytest.raises(InputError, match="there is no group"):
        find_group(name)


@pytest.mark.parametrize("name", ["C1001", "D501", "S7", "A7", "S6xC2"])
def test_a_group_that_is_too_large_is_refused(name):
    with pytest.raises(InputError, match="an integer"):
        find_group(name)


@pytest.mark.parametrize("constructor", [cyclic, dihedral, symmetric, alternating])
@pytest.mark.parametrize("n", [0, -2, 2.5, "3"])
def test_a_size_that_is_not_a_positive_whole_number_is_refused(constructor, n, unchecked_types):
    with pytest.raises(InputError, match="an integer"):
        constructor(n)
