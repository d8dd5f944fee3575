from __future__ import annotations

import dataclasses
import re

import jax.numpy as jnp
import numpy as np
import pytest
from symmetry.zoo import NETWORKS, normed, structure_of

from dynascope.errors import InputError
from dynascope.symmetry import cross_check, discover, find_symmetries


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_the_program_and_the_gradients_show_the_same_charges(name):
    apply, params, inputs, charges = NETWORKS[name]
    found = cross_check(structure_of(name), discover(apply, params, inputs, levels=0), params)
    assert found.agrees, str(found)
    assert found.together == charges


def test_a_disagreement_is_told():
    apply, params, inputs, _ = NETWORKS["one head"]
    numerical, structural = discover(apply, params, inputs, levels=0), structure_of("one head")
    fewer = dataclasses.replace(structural, symmetries=structural.symmetries[:1])
    found = cross_check(fewer, numerical, params)
    assert not found.agrees
    assert re.findall(r"\d+", str(found)) == ["6", "0", "3"]


def test_a_symmetry_of_another_basis_is_found_by_gradients_alone():
    # The program turns two units into each other by a matrix, which units alone do not show.
    turned = np.array([[0.6, 0.8], [-0.8, 0.6]])

    def apply(p, x):
        z = x @ p["W"] @ turned
        return z * (z > 0) @ p["a"]

    params = {"W": np.array([[1.0, 0.5], [0.3, -1.0]]), "a": np.array([[0.7], [-0.4]])}
    found = cross_check(
        find_symmetries(apply, params, np.ones((12, 2))), discover(apply, params, np.ones((12, 2)), levels=0), params
    )
    assert (found.structural, found.numerical, found.agrees) == (1, 2, False)


def test_weights_that_read_what_sums_to_zero_are_shifted_by_gradients_alone():
    def apply(p, x):
        z = x @ p["W"]
        return (z - z.mean(1, keepdims=True)) @ p["a"]

    random = np.random.default_rng(0)
    given = apply, {"W": random.normal(size=(2, 3)), "a": random.normal(size=(3, 1))}, np.ones((8, 2))
    found = cross_check(find_symmetries(*given), discover(*given, levels=0), given[1])
    assert not found.agrees
    assert found.together == found.numerical > found.structural


@pytest.mark.slow
def test_both_passes_see_that_a_norm_with_a_small_epsilon_has_no_scale():
    def apply(p, x):
        z = x @ p["W"]
        return z / jnp.sqrt(jnp.mean(z**2, -1, keepdims=True) + 1e-8) @ p["A"]

    random = np.random.default_rng(0)
    given = apply, {"W": random.normal(size=(2, 3)), "A": random.normal(size=(3, 2))}, np.ones((12, 2))
    structural, numerical = find_symmetries(*given), discover(*given)
    assert [each.reason for each in structural.broken] == ["ε of a norm"]
    assert numerical.laws == 0
    assert cross_check(structural, numerical, given[1]).agrees


def test_positions_undo_what_the_table_is_shifted_by_where_each_is_also_shifted_alone():
    def apply(p, x):
        return (normed(p["table"][x] + p["positions"], 0.0, -1) * p["gain"]) @ p["head"]

    random = np.random.default_rng(0)
    params = {"table": (3, 3), "positions": (2, 3), "gain": (3,), "head": (3, 2)}
    given = (
        apply,
        {name: random.normal(size=shape) for name, shape in params.items()},
        np.array([[0, 1], [2, 0], [1, 1]]),
    )
    structural = find_symmetries(*given)
    found = cross_check(structural, discover(*given, levels=0), given[1])
    assert found.agrees, str(found)
    # Shifts of 3 + 2 rows, one scale, 3 of the gain, and 3 shifts of columns that a shift of all rows is a sum of.
    assert found.together == structural.size == 5 + 1 + 3 + 3 - 1
    assert len(structural.names) == 5 + 1 + 3 + 3


def test_other_parameters_are_refused():
    apply, params, inputs, _ = NETWORKS["ReLU"]
    with pytest.raises(InputError, match="params contains 3 numbers"):
        cross_check(structure_of("ReLU"), discover(apply, params, inputs, levels=0), {"w": np.ones(3)})
