from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.probes.redundancy import redundant_units
from dynascope.results import variables_of

W = np.array([[1.0, 2.0], [1.001, 2.0], [0.0, 0.0], [2.0, -1.0], [1.0, 2.0]])
A = np.array([[0.5], [0.5], [0.0], [1.0], [-0.5]])


def measured(w, a, **options):
    return {name: values for name, (_, values) in variables_of(redundant_units(w, a, **options)).items()}


def test_the_golden_layer_has_three_independent_units():
    # symmetry_sgd 5.5
    found = measured(W, A)
    assert found["vanishing"].tolist() == [False, False, True, False, False]
    assert found["cluster"].tolist() == [0, 0, -1, 3, 4]
    assert found["independent_units"] == 3
    assert (found["independent_fraction"], found["vanishing_fraction"], found["duplicate_fraction"]) == (0.6, 0.2, 0.2)


def test_both_incoming_and_outgoing_weights_must_match():
    # Unit 4 differs from unit 0 in what leads out alone, and can be merged with it though it is not equal.
    assert measured(W, A, compare="incoming directions")["cluster"].tolist() == [0, 0, -1, 3, 0]
    assert measured(W, A, compare="directions")["cluster"].tolist() == [0, 0, -1, 3, 4]


def test_directions_match_whatever_the_balance():
    w, a = np.array([[1.0, 2.0], [100.0, 200.0]]), np.array([[3.0], [0.03]])
    assert measured(w, a)["independent_units"] == 2
    assert measured(w, a, compare="directions")["independent_units"] == 1


def test_chains_of_pairs_are_one_cluster_and_with_complete_linkage_are_not():
    # Each is 0.7 % of its square away from the next, and the ends are four times as far apart.
    angles = np.array([0.0, 0.12, 0.24])
    w = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    a = np.ones((3, 1))
    assert measured(w, a)["cluster"].tolist() == [0, 0, 0]
    assert measured(w, a, linkage="complete")["independent_units"] == 2


def test_units_without_outgoing_weights_can_be_equal():
    assert measured(np.ones((2, 3)), np.zeros((2, 1)))["cluster"].tolist() == [0, 0]


def test_dead_units_are_no_independent_ones():
    found = measured(W, A, active=np.array([3, 4, 0, 0, 7]))
    assert found["cluster"].tolist() == [0, 0, -1, -1, 4]
    assert (found["dead_fraction"], found["independent_units"]) == (0.4, 2)


def test_a_layer_that_is_zero_has_vanished_altogether():
    assert measured(np.zeros((3, 2)), np.zeros((3, 1)))["independent_units"] == 0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), unit=st.floats(-150, 150), linkage=st.sampled_from(["single", "complete"]))
def test_the_order_and_the_unit_do_not_matter_and_copies_add_nothing(seed, unit, linkage):
    random = np.random.default_rng(seed)
    w, a = random.normal(size=(6, 3)), random.normal(size=(6, 2))
    w[3], a[3] = w[0], a[0]
    plain = measured(w, a, linkage=linkage)
    assert plain["independent_units"] <= 5
    order = random.permutation(6)
    moved = measured(10**unit * w[order], 10**unit * a[order], linkage=linkage)
    assert moved["independent_units"] == plain["independent_units"]
    same = plain["cluster"][:, None] == plain["cluster"]
    np.testing.assert_array_equal(moved["cluster"][:, None] == moved["cluster"], same[np.ix_(order, order)])
    doubled = measured(np.concatenate([w, w]), np.concatenate([a, a]), linkage=linkage)
    assert doubled["independent_units"] == plain["independent_units"]


@pytest.mark.parametrize("linkage", ["single", "complete"])
def test_checkpoints_are_measured_one_by_one(linkage):
    random = np.random.default_rng(0)
    w, a = random.normal(size=(3, 5, 2)), random.normal(size=(3, 5, 1))
    w[1, 4], a[1, 4] = w[1, 1], a[1, 1]
    along = variables_of(redundant_units(w, a, linkage=linkage))
    for t in range(3):
        for name, (dimensions, values) in variables_of(redundant_units(w[t], a[t], linkage=linkage)).items():
            if name == "vanishing":  # of the largest norm of its own checkpoint
                assert along[name][0] == ("time", *dimensions)
            np.testing.assert_array_equal(along[name][1][t], values)


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_every_library_gives_the_numbers_of_numpy(library):
    expected = measured(W, A, active=np.array([3, 4, 0, 0, 7]))
    if library == "torch":
        torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
        pytest.importorskip("array_api_compat", reason="array-api-compat comes with the torch extra")
        w, a = (torch.from_numpy(each).requires_grad_() for each in (W, A))
        found = measured(w, a, active=torch.tensor([3, 4, 0, 0, 7]))
        assert measured(w, a, linkage="complete")["independent_units"] == 3
    else:
        with jax.enable_x64(True):
            found = jit(measured)(W, A, active=np.array([3, 4, 0, 0, 7]))
    for name, values in expected.items():
        np.testing.assert_allclose(np.asarray(found[name]), values, err_msg=name)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: redundant_units(W, A[:3]), "outgoing"),
        (lambda: redundant_units(W.astype(int), A), "incoming"),
        (lambda: redundant_units(W, A, vanishing=-1.0), "vanishing"),
        (lambda: redundant_units(W, A, duplicate=-1.0), "duplicate"),
        (lambda: redundant_units(W, A, compare="size"), "compare"),
        (lambda: redundant_units(W, A, linkage="average"), "linkage"),
        (lambda: redundant_units(W, A, active=np.ones(3)), "active"),
        (lambda: jit(lambda w: redundant_units(w, w, linkage="complete"))(W), "linkage"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
