from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.tasks import AffineMap
from dynascope.tasks.affine import varying


@st.composite
def maps(draw):
    """A map of each form from five columns, and one of each that can follow it."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def some(dimension: int, mixed: bool) -> AffineMap:
        scales = 10 ** rng.uniform(-2, 2, size=dimension)
        matrix = scales[:, None] * np.linalg.qr(rng.normal(size=(dimension, dimension)))[0] if mixed else scales
        return AffineMap(rng.normal(size=dimension), matrix)

    return some(5, draw(st.booleans())), some(5, draw(st.booleans())), rng.normal(size=(7, 5))


@given(maps())
def test_a_map_is_undone_by_its_inverse(given_maps):
    first, _, x = given_maps
    # Scales differ by 1e4, and rounding is carried through a product of matrices.
    np.testing.assert_allclose(first.invert(first.apply(x)), x, atol=1e-10)


@given(maps())
def test_two_maps_one_after_the_other_are_one(given_maps):
    first, second, x = given_maps
    z = second.apply(first.apply(x))
    np.testing.assert_allclose(first.then(second).apply(x), z, rtol=1e-9, atol=1e-9 * np.abs(z).max())


@given(maps())
def test_weights_mean_the_same_on_original_rows(given_maps):
    first, _, x = given_maps
    weights = np.random.default_rng(0).normal(size=(5, 3))
    original, bias = first.weights(weights)
    outputs = first.apply(x) @ weights
    np.testing.assert_allclose(x @ original + bias, outputs, rtol=1e-9, atol=1e-10 * np.abs(outputs).max())


@pytest.mark.parametrize("unit", [1e-140, 1.0, 1e140])
def test_standardising_does_not_depend_on_units(unit):
    x = np.array([[1.0, 5.0, 0.1], [3.0, 5.0, 0.1], [8.0, 5.0, 0.1]])
    z = AffineMap.standardising(unit * x).apply(unit * x)
    np.testing.assert_allclose(z[:, 0], (x[:, 0] - 4) / x[:, 0].std(), rtol=1e-14)
    np.testing.assert_array_equal(z[:, 1:], 0.0)


@pytest.mark.parametrize("fit", [AffineMap.centring, AffineMap.standardising])
def test_a_constant_column_is_zero_in_other_data_too_and_comes_back_as_it_was(fit):
    x = np.array([[1.0, 5.0], [3.0, 5.0]])
    np.testing.assert_array_equal(fit(x).apply([[2.0, 7.0]]), [[0.0, 0.0]])
    np.testing.assert_allclose(fit(x).invert(fit(x).apply(x)), x)
    assert varying(x).tolist() == [True, False]


def test_directions_that_a_map_loses_are_at_the_shift_when_undone():
    to_sum = AffineMap(np.array([1.0, 2.0]), np.array([[1.0], [1.0]]))
    np.testing.assert_allclose(to_sum.invert(to_sum.apply([[3.0, 6.0]])), [[4.0, 5.0]])
    assert (to_sum.input_dimension, to_sum.output_dimension) == (2, 1)


def test_other_numbers_of_columns_are_refused():
    celsius = AffineMap(np.array([32.0]), np.array([5 / 9]))
    for wrong in (celsius.apply, celsius.invert, celsius.weights):
        with pytest.raises(InputError, match="has shape"):
            wrong([1.0, 2.0, 3.0])
