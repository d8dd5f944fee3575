from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.groups import (
    cyclic,
    dihedral,
    find_group,
    group_from_table,
    irreducible_representations,
    real_irreducible_representations,
)

NAMES = ["C1", "C2", "C7", "C8", "D3", "D4", "D5", "Q8", "S4", "A4", "A5", "Oh", "C5xC5", "C3xQ8", "S5"]
# Eigenvectors of a well separated spectrum, and one Newton step to unitary matrices.
ROUNDING = 1e-12


@pytest.mark.parametrize("name", NAMES)
def test_every_irrep_is_unitary_and_multiplies_as_the_group(name):
    group = find_group(name)
    for irrep in irreducible_representations(group):
        matrices = irrep.matrices
        products = np.einsum("gij,hjk->ghik", matrices, matrices)
        np.testing.assert_allclose(products, matrices[group.table], atol=ROUNDING)
        adjoint = matrices.conj().swapaxes(1, 2)
        np.testing.assert_allclose(adjoint, matrices[group.inverse], atol=ROUNDING)


@pytest.mark.parametrize("name", NAMES)
def test_characters_are_orthogonal_and_squared_dimensions_sum_to_the_order(name):
    group = find_group(name)
    irreps = irreducible_representations(group)
    characters = np.array([irrep.character for irrep in irreps])
    np.testing.assert_allclose(characters @ characters.conj().T / group.order, np.eye(len(irreps)), atol=ROUNDING)
    assert sum(irrep.dimension**2 for irrep in irreps) == group.order
    real = real_irreducible_representations(group)
    assert sum(irrep.members * irrep.dimension**2 for irrep in real) == group.order


@pytest.mark.parametrize("name", NAMES)
def test_the_kind_is_that_of_the_frobenius_schur_indicator(name):
    group = find_group(name)
    indicators = {"real": 1, "complex": 0, "quaternionic": -1}
    for irrep in irreducible_representations(group):
        squares = np.diag(group.table)
        assert np.isclose(np.mean(irrep.character[squares]), indicators[irrep.kind], atol=ROUNDING)
        if irrep.kind == "real":
            assert not irrep.matrices.imag.any()


@pytest.mark.parametrize("name", NAMES)
def test_conjugates_point_at_each_other(name):
    irreps = irreducible_representations(find_group(name))
    for i, irrep in enumerate(irreps):
        partner = irreps[irrep.conjugate]
        assert (irrep.index, partner.conjugate) == (i, i)
        assert (partner is irrep) == (irrep.kind != "complex")
        np.testing.assert_allclose(partner.character, irrep.character.conj(), atol=ROUNDING)


def test_the_irreps_of_a_cyclic_group_are_the_frequencies_in_order():
    irreps = irreducible_representations(cyclic(8))
    assert [irrep.name for irrep in irreps[1:]] == [
        "frequency 1",
        "frequency 1*",
        "frequency 2",
        "frequency 2*",
        "frequency 3",
        "frequency 3*",
        "frequency 4",
    ]
    for irrep, frequency in zip(irreps, (0, 1, -1, 2, -2, 3, -3, 4), strict=True):
        expected = np.exp(-2j * np.pi * frequency * np.arange(8) / 8)
        np.testing.assert_allclose(irrep.matrices[:, 0, 0], expected, atol=ROUNDING)


def test_the_irreps_of_a_dihedral_group_are_the_rotations_of_its_polygon():
    group = dihedral(5)
    angle = 2 * np.pi * np.arange(5) / 5
    characters = [irrep.character for irrep in irreducible_representations(group)]
    expected = [
        np.ones(10),
        np.repeat([1, -1], 5),
        np.append(2 * np.cos(angle), np.zeros(5)),
        np.append(2 * np.cos(2 * angle), np.zeros(5)),
    ]
    np.testing.assert_allclose(characters, expected, atol=ROUNDING)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("S4", ["trivial", "sign", "2d", "3d-1", "3d-2"]),
        ("A4", ["trivial", "1d", "1d*", "3d"]),
        ("A5", ["trivial", "3d-1", "3d-2", "4d", "5d"]),
        ("Q8", ["trivial", "1d-1", "1d-2", "1d-3", "2d"]),
    ],
)
def test_names_tell_the_irreps_apart(name, names):
    assert [irrep.name for irrep in irreducible_representations(find_group(name))] == names


def test_the_first_of_two_standard_irreps_of_s4_is_the_one_of_permutation_matrices():
    # Element 1 is a transposition, of trace 2 among the permutation matrices: 1 without the trivial part.
    assert np.isclose(irreducible_representations(find_group("S4"))[3].character[1], 1)


@given(st.sampled_from(["C6", "D4", "Q8", "A4", "S4"]), st.randoms(use_true_random=False))
def test_renumbering_the_elements_permutes_the_characters(name, random):
    group = find_group(name)
    order = [0, *random.sample(range(1, group.order), group.order - 1)]
    renumbered = group_from_table(np.argsort(order)[group.table[np.ix_(order, order)]])
    before = np.array([irrep.character[order] for irrep in irreducible_representations(group)])
    after = np.array([irrep.character for irrep in irreducible_representations(renumbered)])
    # Each new character is one of the old ones: their overlaps make a permutation matrix.
    overlaps = np.abs(before @ after.conj().T) / group.order
    np.testing.assert_allclose(np.sort(overlaps, axis=1)[:, -1], 1, atol=ROUNDING)
    np.testing.assert_allclose(overlaps.sum(axis=0), 1, atol=ROUNDING * len(before))


@given(st.sampled_from(["C3", "D3", "Q8"]), st.sampled_from(["C2", "C4", "D4"]))
def test_the_characters_of_a_direct_product_are_the_products(first_name, second_name):
    first, second = find_group(first_name), find_group(second_name)
    both = find_group(f"{first_name}x{second_name}")
    characters = np.array([irrep.character for irrep in irreducible_representations(both)])
    products = np.array(
        [
            np.outer(a.character, b.character).ravel()
            for a in irreducible_representations(first)
            for b in irreducible_representations(second)
        ]
    )
    overlaps = np.abs(characters @ products.conj().T) / (first.order * second.order)
    np.testing.assert_allclose(np.sort(overlaps, axis=1)[:, -1], 1, atol=ROUNDING)


def test_irreps_are_computed_once():
    assert irreducible_representations(cyclic(9)) is irreducible_representations(cyclic(9))
