from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.symmetry import (
    LawCount,
    attention_laws,
    homogeneous_laws,
    normalization_laws,
    softmax_laws,
    two_layer_linear_laws,
)


def rank(rows):
    rows = np.asarray(rows)
    values = np.linalg.svd(rows / np.linalg.norm(rows, axis=1, keepdims=True), compute_uv=False)
    return int(np.sum(values > 1e-9 * values[0]))


def count_laws(fields, weights):
    """Laws by the ranks of the fields, which are linear in the weights, and of their Lie brackets, at the weights."""
    level = basis = np.array(fields)
    found = first = rank(basis @ weights)
    while True:
        brackets = np.einsum("aij,bjk->abik", basis, level) - np.einsum("bij,ajk->abik", level, basis)
        level = independent(np.concatenate([level, brackets.reshape(-1, *basis.shape[1:])]))
        grown = rank(level @ weights)
        if grown == found:
            return LawCount(len(weights) - first, len(weights) - found)
        found = grown


def independent(matrices):
    flat = matrices.reshape(len(matrices), -1)
    _, values, rows = np.linalg.svd(flat, full_matrices=False)
    return rows[values > 1e-9 * values[0]].reshape(-1, *matrices.shape[1:])


def of_linear_networks(n, m, r):
    """The gradients of the entries of U Vᵀ, each a matrix that multiplies the weights."""
    fields = []
    for i in range(n):
        for j in range(m):
            matrix = np.zeros(((n + m) * r,) * 2)
            rows, columns = i * r + np.arange(r), (n + j) * r + np.arange(r)
            matrix[rows, columns] = matrix[columns, rows] = 1
            fields.append(matrix)
    return fields


@pytest.mark.parametrize(
    ("sizes", "bound", "exact"),
    [
        ((1, 1, 1), 1, 1),
        ((1, 1, 2), 3, 3),
        ((2, 2, 2), 4, 3),
        ((2, 1, 2), 4, 3),
        ((3, 2, 2), 4, 3),
        ((1, 1, 3), 5, 5),
        ((2, 1, 4), 10, 9),
    ],
)
def test_linear_networks_have_the_published_numbers(sizes, bound, exact):
    assert two_layer_linear_laws(*sizes) == LawCount(bound, exact)


def drawn_sizes():
    random = np.random.default_rng(0)
    return {tuple(map(int, random.integers(1, (4, 4, 5)))) for _ in range(40)}


@pytest.mark.parametrize("sizes", sorted(drawn_sizes())[:20])
def test_the_closed_form_is_the_number_by_ranks_of_brackets(sizes):
    weights = np.random.default_rng(1).normal(size=(sizes[0] + sizes[1]) * sizes[2])
    assert two_layer_linear_laws(*sizes) == count_laws(of_linear_networks(*sizes), weights)


@given(n=st.integers(1, 50), m=st.integers(1, 50), r=st.integers(1, 50))
def test_there_are_as_many_laws_either_way_round_and_no_more_than_the_bound(n, m, r):
    found = two_layer_linear_laws(n, m, r)
    assert found == two_layer_linear_laws(m, n, r)
    assert r * (r + 1) / 2 >= found.exact >= min(r, n + m)
    assert found.exact <= found.bound <= (n + m) * r


def test_networks_of_parts_have_the_published_numbers():
    assert homogeneous_laws([2]) == 2  # ReLU 2-2-1 with a hidden bias
    assert 2 * two_layer_linear_laws(2, 2, 2).exact == 6  # linear 2-2-2-2, two pairs of layers
    assert attention_laws(2, 2) == 6  # one head of width two
    assert attention_laws(2, 2, key_bias=True) - attention_laws(2, 2) == 2
    assert softmax_laws(2) == 3  # softmax 2 → 3 with a bias
    assert normalization_laws("batch", 1, 3) == 2
    assert normalization_laws("layer", 2, 5) == 2 + 5
    assert normalization_laws("layer", 2, 5, bias=False) == 1 + 5
    assert normalization_laws("rms", 2, 5, gain=True) == 1 + 2


def test_heads_that_share_keys_share_laws():
    assert attention_laws(8, 4, heads=6, key_value_heads=2) == 2 * (10 + 10)
    assert attention_laws(8, 4, heads=6, value_width=3) == 6 * (10 + 6)
    # One scale of each pair of coordinates, and keys whose bias is turned.
    assert attention_laws(8, 4, heads=6, rotary=True, key_bias=True) == 6 * (2 + 10)
    # A head wider than the stream on both sides has fewer, as a linear network.
    assert attention_laws(1, 4) == 2 * two_layer_linear_laws(1, 1, 4).exact


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: two_layer_linear_laws(0, 1, 1), "outputs"),
        (lambda: two_layer_linear_laws(1, 1.5, 1), "inputs"),
        (lambda: two_layer_linear_laws(1, 1, -1), "width"),
        (lambda: homogeneous_laws([]), "widths"),
        (lambda: homogeneous_laws([3, 0]), "widths"),
        (lambda: softmax_laws(0), "fan_in"),
        (lambda: normalization_laws("group", 1, 1), "kind"),
        (lambda: normalization_laws("batch", 0, 1), "channels"),
        (lambda: attention_laws(8, 4, heads=6, key_value_heads=4), "key_value_heads"),
        (lambda: attention_laws(8, 3, rotary=True), "head_width"),
        (lambda: attention_laws(8, 4, value_width=0), "value_width"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
