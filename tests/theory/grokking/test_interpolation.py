from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from dynascope.errors import InputError
from dynascope.theory.grokking import interpolant_path

INPUTS = np.array([[1.0, 2.0, 3.0], [0.0, 1.0, -1.0]])
TARGETS = np.array([2.0, 0.5])

quick = settings(max_examples=12, deadline=None)


def drawn(seed: int, samples: int = 6, inputs: int = 11) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.normal(size=(samples, inputs)), draw.normal(size=samples)


@pytest.mark.parametrize(
    ("product", "golden"),
    [
        (0.1, [0.114778311119, 0.677044337776, 0.177044337776]),
        (1e-4, [0.00268116158, 0.699463767684, 0.199463767684]),
    ],
)
def test_the_golden_numbers_come_out(product, golden):
    # Given to twelve decimals.
    np.testing.assert_allclose(interpolant_path(INPUTS, TARGETS, [product]).coefficients[0], golden, atol=1e-12)


def test_a_large_product_gives_the_least_euclidean_norm():
    x, y = drawn(0)
    # The next order is a relative w²/24b².
    np.testing.assert_allclose(interpolant_path(x, y, [1e6]).coefficients[0], np.linalg.pinv(x) @ y, rtol=1e-9)


def test_a_small_product_gives_the_least_absolute_norm():
    x, y = drawn(1)
    least = linprog(np.ones(22), A_eq=np.hstack([x, -x]), b_eq=y).fun
    norms = np.abs(interpolant_path(x, y, [1e-4, 1e-12, 1e-35]).coefficients).sum(axis=1)
    assert np.all(np.diff(norms) < 0)
    # It is approached as 1/ln(1/b) where coefficients of zero are undecided, faster elsewhere.
    assert norms[-1] == pytest.approx(least, rel=1e-3)


@quick
@given(st.integers(0, 10**6), st.floats(-12, 3))
def test_it_interpolates_and_no_other_interpolant_has_a_lower_objective(seed, decade):
    x, y = drawn(seed)
    b = 10.0**decade
    path = interpolant_path(x, y, [b])
    w, mu = path.coefficients[0], path.multipliers[0]
    # Rounding, in units of the largest terms.
    np.testing.assert_allclose(x @ w, y, atol=1e-11 * np.abs(y).max())
    np.testing.assert_allclose(2 * b * np.sinh(mu @ x), w, rtol=1e-8, atol=1e-11)
    # The objective is convex, so that its gradient across the interpolants decides.
    across = np.linalg.svd(x)[2][6:]
    gradient = np.arcsinh(w / (2 * b))
    assert np.abs(across @ gradient).max() < 1e-8 * max(1.0, np.abs(gradient).max())


@quick
@given(st.integers(0, 10**6), st.floats(-3, 3))
def test_scaling_the_targets_scales_the_path(seed, decade):
    x, y = drawn(seed)
    products, factor = np.array([1.0, 0.01, 1e-6]), 10.0**decade
    one, other = interpolant_path(x, y, products), interpolant_path(x, factor * y, factor * products)
    np.testing.assert_allclose(other.coefficients, factor * one.coefficients, rtol=1e-8, atol=1e-10 * factor)


def test_a_point_does_not_depend_on_the_others_nor_on_their_order():
    x, y = drawn(2)
    products = np.array([1e-6, 10.0, 1e-2, 10.0])
    together = interpolant_path(x, y, products)
    np.testing.assert_array_equal(together.products, products)
    alone = np.array([interpolant_path(x, y, [b]).coefficients[0] for b in products])
    # Each is solved to 1e-13 of the targets.
    np.testing.assert_allclose(together.coefficients, alone, atol=1e-11)


def test_dependent_samples_change_nothing():
    x, y = drawn(3)
    twice = interpolant_path(np.vstack([x, x[:2]]), np.append(y, y[:2]), [0.1, 1e-6])
    np.testing.assert_allclose(twice.coefficients, interpolant_path(x, y, [0.1, 1e-6]).coefficients, atol=1e-11)


def test_samples_that_determine_the_function_leave_no_choice():
    x, _ = drawn(4, samples=20, inputs=5)
    truth = np.array([1.0, -2.0, 0.0, 0.5, 0.0])
    path = interpolant_path(x, x @ truth, [10.0, 1e-8])
    np.testing.assert_allclose(path.coefficients, [truth, truth], atol=1e-12)


def test_targets_of_zero_are_fitted_by_nothing():
    x, y = drawn(5)
    np.testing.assert_array_equal(interpolant_path(x, 0 * y, [1.0, 1e-9]).coefficients, np.zeros((2, 11)))


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("targets", {"inputs": np.ones((3, 2)), "targets": [1.0, 1.0, 2.0]}),
        ("targets", {"targets": [1.0]}),
        ("targets", {"targets": [1.0, np.nan]}),
        ("inputs", {"inputs": np.zeros((2, 3))}),
        ("inputs", {"inputs": [1.0, 2.0]}),
        ("products", {"products": [0.1, 0.0]}),
        ("products", {"products": [-1.0]}),
        ("products", {"products": [1e-60]}),
        ("products", {"products": []}),
        ("products", {"products": [np.inf]}),
    ],
)
def test_bad_input_is_refused_by_name(argument, change):
    with pytest.raises(InputError) as refusal:
        interpolant_path(**{"inputs": INPUTS, "targets": TARGETS, "products": [0.1]} | change)
    assert refusal.value.argument == argument
