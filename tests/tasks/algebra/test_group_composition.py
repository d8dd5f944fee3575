from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.groups import (
    cyclic,
    dihedral,
    find_group,
    fourier_transform,
    real_irreducible_representations,
)
from dynascope.groups.encodings import encoding_from_fourier
from dynascope.networks import TwoLayer
from dynascope.tasks.algebra.group_composition import group_composition

ROUNDING = 1e-12  # sums of a dozen terms of order one


@pytest.mark.parametrize(("group", "k"), [(cyclic(4), 1), (dihedral(3), 2), (find_group("Q8"), 2), (cyclic(3), 4)])
def test_every_sequence_occurs_once_with_its_product(group, k):
    n = group.order
    x = np.random.default_rng(0).normal(size=n)
    task = group_composition(group, x, sequence_length=k)
    for row, elements in enumerate(itertools.product(range(n), repeat=k)):
        shown = [[x[group.table[group.inverse[g], h]] for h in range(n)] for g in (*elements, group.product(elements))]
        np.testing.assert_array_equal(task.inputs[row], np.concatenate(shown[:-1]))
        np.testing.assert_array_equal(task.targets[row], shown[-1])
    assert task.samples == n**k


def test_on_a_cyclic_group_it_is_modular_addition():
    task = group_composition(cyclic(5), np.eye(5)[0])
    a, b = np.divmod(np.arange(25), 5)
    np.testing.assert_array_equal(task.inputs.argmax(axis=1), a)
    np.testing.assert_array_equal(task.inputs[:, 5:].argmax(axis=1), b)
    np.testing.assert_array_equal(task.targets.argmax(axis=1), (a + b) % 5)


def test_the_encoding_is_one_hot_without_its_mean_unless_given():
    task = group_composition(dihedral(3))
    np.testing.assert_allclose(task.targets.sum(axis=1), 0, atol=1e-15)
    np.testing.assert_allclose(task.targets[0], [5 / 6, *[-1 / 6] * 5])


def test_names_tell_the_columns_apart():
    task = group_composition(cyclic(3), sequence_length=2)
    assert task.name == "composition of 2 elements of C3"
    assert task.feature_names == ("x1[0]", "x1[1]", "x1[2]", "x2[0]", "x2[1]", "x2[2]")
    assert task.target_names == ("y[0]", "y[1]", "y[2]")


def test_a_two_layer_network_with_powers_fits_it():
    group, k = dihedral(3), 3
    task = group_composition(group, sequence_length=k)
    network = TwoLayer(k * 6, 10, 6, activation="power-3")
    assert network(task.inputs).shape == task.targets.shape
    assert network.degree == k + 1


@pytest.mark.parametrize(
    ("group", "encoding", "k", "message"),
    [
        (cyclic(3), [1.0, 2.0], 2, "encoding has shape"),
        (cyclic(3), [1.0, np.inf, 2.0], 2, "not finite"),
        (cyclic(3), [1.0, 1.0, 1.0], 2, "constant with value 1.0"),
        (cyclic(1), None, 2, "constant"),
        (cyclic(3), None, 0, "sequence_length is 0"),
        (cyclic(3), None, 1.5, "sequence_length is 1.5"),
        (cyclic(100), None, 4, "shorter sequence"),
    ],
)
def test_bad_input_is_refused(group, encoding, k, message, unchecked_types):
    with pytest.raises(InputError, match=message):
        group_composition(group, encoding, sequence_length=k)


@given(st.sampled_from(["C7", "D4", "Q8", "A4", "C3xQ8"]), st.integers(0, 1000), st.booleans())
def test_an_encoding_has_the_chosen_singular_values(name, seed, turned):
    group = find_group(name)
    draw = np.random.default_rng(seed)
    irreps = real_irreducible_representations(group)[1:]
    wanted = {
        irrep.index: np.full(irrep.dimension, draw.uniform(0.1, 2))
        if irrep.kind == "quaternionic"
        else np.sort(draw.uniform(0.1, 2, size=irrep.dimension))[::-1]
        for irrep in irreps
    }
    x = encoding_from_fourier(group, wanted, seed=seed if turned else None)
    coefficients = fourier_transform(group, x)
    for index, singular in wanted.items():
        np.testing.assert_allclose(np.linalg.svd(coefficients[index], compute_uv=False), singular, atol=ROUNDING)
        if not turned:
            np.testing.assert_allclose(coefficients[index], np.diag(singular), atol=ROUNDING)
    assert x.sum() == pytest.approx(0, abs=ROUNDING)


def test_golden_encoding_of_s3():
    x = encoding_from_fourier(dihedral(3), {"sign": 1.2, "2d": 2.2})
    np.testing.assert_allclose(x, [5 / 3, -8 / 15, -8 / 15, -0.2, -0.2, -0.2], atol=ROUNDING)


def test_names_and_indices_mean_the_same():
    group = find_group("A4")
    one = encoding_from_fourier(group, {"1d": 1.0, "3d": 2.0}, seed=3)
    np.testing.assert_array_equal(one, encoding_from_fourier(group, {1: 1.0, 3: 2.0}, seed=3))


def test_the_seed_turns_the_coefficients():
    encodings = [encoding_from_fourier(dihedral(5), {"2d-1": 1.0}, seed=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(encodings[0], encodings[1])
    assert not np.allclose(encodings[0], encodings[2])


@pytest.mark.parametrize(
    ("group", "amplitudes", "message"),
    [
        (dihedral(3), {}, "amplitudes is empty"),
        (dihedral(3), {"std": 1.0}, "choose from sign, 2d, or an index from 1 to 2"),
        (dihedral(3), {3: 1.0}, "no irrep 3"),
        (dihedral(3), {"trivial": 1.0}, "mean zero"),
        (dihedral(3), {"2d": [1.0, 2.0, 3.0]}, "or 2 non-negative numbers"),
        (dihedral(3), {"2d": -1.0}, "one positive number"),
        (dihedral(3), {"2d": np.nan}, "not finite"),
        (dihedral(3), {"2d": 0.0}, "one positive number"),
        (dihedral(3), {"2d": 1.0, 2: 1.0}, "given twice"),
        (cyclic(5), {"frequency 1": 1.0, "frequency 1*": 1.0}, "given twice"),
        (find_group("Q8"), {"2d": [1.0, 2.0]}, "quaternionic"),
    ],
)
def test_amplitudes_that_make_no_encoding_are_refused(group, amplitudes, message):
    with pytest.raises(InputError, match=message):
        encoding_from_fourier(group, amplitudes)
