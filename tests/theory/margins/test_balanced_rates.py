from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from scipy.optimize import linprog

from dynascope.errors import InputError
from dynascope.theory.margins import balanced_rates


def with_biases(depth):
    """One solution of a deep network, weights first and then biases, and its generators, one for each hidden layer."""
    rates = np.zeros(2 * depth)
    rates[depth - 1] = rates[-1] = 1
    fields = np.zeros((depth - 1, 2 * depth))
    for layer in range(depth - 1):
        fields[layer, [layer, depth + layer]], fields[layer, layer + 1] = 1, -1
    return rates, fields


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_factors_of_a_product_share_its_rate_and_later_biases_have_that_of_the_signal(depth):
    rates, fields = with_biases(depth)
    found = balanced_rates(rates, fields, discarded=range(depth, 2 * depth))
    np.testing.assert_allclose(found, [*[1 / depth] * depth, *np.arange(1, depth + 1) / depth], atol=1e-12)


def test_biases_that_are_needed_pull_the_layer_above_to_their_rate():
    # W₁, W₂, W₃, b₁, b₂, b₃: ‖W₂‖² + b₂² = ‖W₃‖² + const, ‖W₁‖² + b₁² = ‖W₂‖² + const.
    np.testing.assert_allclose(balanced_rates(*with_biases(3)), [0.25, 0.25, 0.5, 0.25, 0.5, 1.0], atol=1e-12)


def test_what_is_alone_in_its_charge_does_not_grow():
    np.testing.assert_allclose(balanced_rates([0.3, 1.0, -2.0], [[0, 0, 1]]), [0.3, 1.0, 0.0], atol=1e-12)


@given(seed=st.integers(0, 10**6))
def test_both_sides_of_every_charge_have_one_largest_rate(seed):
    random = np.random.default_rng(seed)
    fields = random.integers(-1, 2, size=(3, 8)).astype(float)
    base = random.uniform(0, 1, 8)
    try:
        found = balanced_rates(base, fields)
    except InputError:
        reject()  # as in x · a / s², where a stays and s vanishes
    assert (found >= 0).all()
    share = np.linalg.lstsq(fields.T, found - base, rcond=None)[0]
    np.testing.assert_allclose(share @ fields, found - base, atol=1e-8)
    for _ in range(20):
        field = random.normal(size=3) @ fields
        moved = np.abs(field) > 1e-9
        if moved.any():
            plus, minus = (found[moved & (sign * field > 0)].max(initial=0.0) for sign in (1, -1))
            assert plus == pytest.approx(minus, abs=1e-7)
    # The largest rate by a programme of its own.
    rows = np.column_stack([fields.T, -np.ones(8)])
    least = linprog([0, 0, 0, 1], A_ub=rows, b_ub=-base, bounds=[(None, None)] * 4).fun
    assert found.max() == pytest.approx(max(least, 0), abs=1e-7)


@given(seed=st.integers(0, 10**6), size=st.floats(-30, 30))
def test_it_depends_on_no_basis_no_order_and_no_unit(seed, size):
    random = np.random.default_rng(seed)
    rates, fields = with_biases(4)
    found = balanced_rates(rates, fields)
    order = random.permutation(len(rates))
    mixed = random.normal(size=(5, 3)) @ fields
    again = balanced_rates(10**size * (rates + random.normal(size=3) @ fields)[order], mixed[:, order])
    np.testing.assert_allclose(again, 10**size * found[order], rtol=1e-7)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: balanced_rates([-1.0, 2.0], [[0.0, 1.0]]), "rates"),
        (lambda: balanced_rates([1.0, 0.0], [[2.0, 1.0]]), "rates"),  # x · a / s², whose 2a² + s² is conserved
        (lambda: balanced_rates([-1.0, 2.0], []), "rates"),
        (lambda: balanced_rates([1.0, 2.0], [[1.0]]), "generators"),
        (lambda: balanced_rates([1.0], [[1.0]], discarded=[1]), "discarded"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
