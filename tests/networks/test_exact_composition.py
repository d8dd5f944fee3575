from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.groups import cyclic, dihedral, find_group, symmetric
from dynascope.groups.encodings import encoding_from_fourier
from dynascope.networks.exact_composition import (
    ARCHITECTURES,
    measured_composition,
    random_composition,
    recurrent_composition,
    tree_composition,
    two_layer_composition,
)
from dynascope.tasks.algebra.group_composition import group_composition
from dynascope.theory.groups import construction_width

# An encoding that is nearly singular somewhere amplifies rounding, which starts at 1e-16; this seed gives none.
EXACT = 1e-12


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def encoding_of(group, seed=1):
    x = np.random.default_rng(seed).normal(size=group.order)
    return x - x.mean()


def error(network, task) -> float:
    return float(np.abs(network(task.inputs) - task.targets).max() / np.abs(task.targets).max())


CASES = [
    *((name, k) for name in ("C7", "C8", "D3", "S3", "D4", "Q8", "A4") for k in (2, 3)),
    *((name, 4) for name in ("C2", "C3", "C5", "D3", "C2xC2")),
    ("C3", 5),
]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(("name", "k"), CASES)
def test_every_construction_composes_every_sequence_exactly(name, k, fast):
    group = find_group(name)
    x = encoding_of(group)
    task = group_composition(group, x, sequence_length=k)
    assert error(two_layer_composition(group, x, k, fast_multiplication=fast), task) < EXACT
    assert error(recurrent_composition(group, x, fast_multiplication=fast), task) < EXACT
    assert error(tree_composition(group, x, fast_multiplication=fast), task) < EXACT


@pytest.mark.parametrize("name", ["C3", "D3"])
def test_one_recurrent_network_and_one_tree_serve_long_sequences(name):
    group = find_group(name)
    x = encoding_of(group)
    shown = x[group.table[group.inverse]]
    sequences = np.random.default_rng(0).integers(group.order, size=(40, 23))
    inputs, targets = shown[sequences].reshape(40, -1), shown[group.product(list(sequences.T))]
    # Rounding is passed on from each of 22 steps to the next.
    np.testing.assert_allclose(recurrent_composition(group, x)(inputs), targets, atol=1e-10)
    np.testing.assert_allclose(tree_composition(group, x)(inputs), targets, atol=1e-11)


@pytest.mark.parametrize("name", ["C7", "C8", "D3", "D4", "Q8", "A4", "C2xC2"])
def test_widths_are_those_of_the_theory(name):
    group = find_group(name)
    x = encoding_of(group)
    assert [len(two_layer_composition(group, x, k).neurons) for k in (2, 3)] == [
        construction_width(group, x, k) for k in (2, 3)
    ]
    assert len(recurrent_composition(group, x).mix) == construction_width(group, x, 2)
    assert tree_composition(group, x).left.shape == (group.order, construction_width(group, x, 2))


@pytest.mark.parametrize(
    ("name", "k", "width", "fast_width"),
    [
        # Σ 2^{k−1} D^{k+1} over a sign and a plane; 2 + 14 with Strassen's seven products.
        ("S3", 2, 18, 16),
        ("S3", 3, 68, 68),
        # One complex pair: 2^{k−1} 2^{k+1}, or (k + 1) 2^{k−1}.
        ("C3", 2, 16, 6),
        ("C3", 3, 64, 16),
        ("C3", 4, 256, 40),
        # Three signs, and the quaternions, real of dimension 4 or complex of dimension 2.
        ("Q8", 2, 6 + 128, 6 + 42),
        ("Q8", 3, 12 + 1024, 12 + 256),
        # One sign: 2^{k−1}.
        ("C2", 5, 16, 16),
    ],
)
def test_golden_widths(name, k, width, fast_width):
    group = find_group(name)
    x = encoding_of(group)
    assert len(two_layer_composition(group, x, k).neurons) == width
    assert len(two_layer_composition(group, x, k, fast_multiplication=True).neurons) == fast_width


def test_only_representations_in_the_encoding_take_neurons():
    group = dihedral(3)
    x = encoding_from_fourier(group, {"2d": [2.2, 1.2]}, seed=0)
    network = two_layer_composition(group, x, 2)
    assert len(network.neurons) == 16
    assert error(network, group_composition(group, x)) < EXACT


def test_no_neuron_can_be_left_out():
    group = symmetric(3)
    x = encoding_of(group)
    task = group_composition(group, x)
    network = two_layer_composition(group, x)
    for i in range(len(network.neurons)):
        assert error(network.with_neurons(np.delete(network.neurons, i, axis=0)), task) > 1e-3


@pytest.mark.parametrize("k", [2, 3, 4, 6])
def test_parity_needs_fewer_neurons_than_the_identity_that_holds_for_all_numbers(k):
    # On z = ±1 the neurons (c z₁ + z₂ + … + z_k)^k with k values of c span the product, though 2^{k−1} are polarised.
    group = cyclic(2)
    task = group_composition(group, [1.0, -1.0], sequence_length=k)
    signs = task.inputs[:, ::2]
    powers = (np.linspace(0.5, 1.7, k) * signs[:, :1] + signs[:, 1:].sum(axis=1, keepdims=True)) ** k
    readout = np.linalg.lstsq(powers, task.targets, rcond=None)[0]
    # The powers are far from orthogonal; rounding grows with their condition number.
    assert np.abs(powers @ readout - task.targets).max() < 1e-8
    assert len(two_layer_composition(group, [1.0, -1.0], k).neurons) == 2 ** (k - 1)


def test_larger_encodings_make_larger_outputs():
    group = dihedral(4)
    x = encoding_of(group)
    for factor in (1e-6, 1e6):
        task = group_composition(group, factor * x, sequence_length=3)
        assert error(two_layer_composition(group, factor * x, 3), task) < EXACT
        assert error(tree_composition(group, factor * x), task) < EXACT


@given(st.integers(0, 2**16), st.sampled_from(["C3", "C4", "C5", "D3"]), st.integers(2, 3), st.booleans())
@settings(max_examples=12, deadline=None)
def test_random_encodings_are_composed_as_exactly_as_they_are_conditioned(seed, name, k, fast):
    group = find_group(name)
    x = encoding_of(group, seed)
    task = group_composition(group, x, sequence_length=k)
    first = two_layer_composition(group, x, k, fast_multiplication=fast)
    # Weights large where the encoding is nearly singular multiply the rounding of the inputs, k times over.
    amplified = 1e-15 * (1 + np.abs(first.first).max() * np.abs(x).max()) ** k * len(first.neurons)
    assert error(first, task) < amplified
    assert error(recurrent_composition(group, x, fast_multiplication=fast), task) < 100 * amplified
    assert error(tree_composition(group, x, fast_multiplication=fast), task) < 100 * amplified


def test_an_encoding_that_is_singular_on_a_used_representation_is_refused():
    group = dihedral(3)
    x = encoding_from_fourier(group, {"sign": 1.0, "2d": [2.0, 0.0]})
    for construct in (two_layer_composition, recurrent_composition, tree_composition):
        with pytest.raises(InputError, match="'2d' has singular values from 2 to ") as refusal:
            construct(group, x)
        assert refusal.value.argument == "encoding"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"encoding": [1.0, 0.0, 0.0]}, "encoding"),
        ({"encoding": [0.0, 0.0, 0.0]}, "encoding"),
        ({"encoding": [1.0, -1.0]}, "encoding"),
        ({"encoding": [1.0, -1.0, np.nan]}, "encoding"),
        ({"sequence_length": 1}, "sequence_length"),
        ({"sequence_length": -2}, "sequence_length"),
        ({"sequence_length": 12}, "sequence_length"),
        ({"sequence_length": 4000}, "sequence_length"),
    ],
)
def test_bad_arguments_are_refused_by_name(arguments, named):
    with pytest.raises(InputError) as refusal:
        two_layer_composition(**{"group": cyclic(3), "encoding": [2.0, -1.0, -1.0], "sequence_length": 2} | arguments)
    assert refusal.value.argument == named


def test_the_weights_are_real_and_their_gradients_finite_and_zero_at_the_exact_networks():
    group = symmetric(3)
    x = encoding_of(group)
    task = group_composition(group, x)
    for network in (two_layer_composition(group, x), recurrent_composition(group, x), tree_composition(group, x)):
        leaves = jax.tree.leaves(network)
        assert all(leaf.dtype == np.float64 for leaf in leaves)
        gradient = jit(jax.grad(task.loss))(network)
        assert len(jax.tree.leaves(gradient)) == len(leaves)
        for leaf in jax.tree.leaves(gradient):
            # The loss is zero up to rounding, so its slope is too.
            np.testing.assert_allclose(leaf, 0, atol=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_random_networks_have_the_depth_and_outputs_of_those_that_are_written_down(architecture):
    group, k = cyclic(3), 3
    task = group_composition(group, sequence_length=k)
    built = {"two-layer": two_layer_composition(group, encoding_of(group), k)}
    built |= {"recurrent": recurrent_composition(group, encoding_of(group))}
    built |= {"tree": tree_composition(group, encoding_of(group))}
    network = random_composition(architecture, 3, k, 8, seed=0)
    assert network(task.inputs).shape == task.targets.shape
    measured = measured_composition(task, network)
    assert measured["depth"] == measured_composition(task, built[architecture])["depth"]
    assert measured["width"] == 8
