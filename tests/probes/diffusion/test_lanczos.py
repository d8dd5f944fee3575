from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.probes.diffusion.lanczos import tridiagonal


@jit
def of_matrix(matrix, start):
    return tridiagonal(lambda v: matrix @ v, start, len(matrix))


@pytest.mark.parametrize("values", [[1.0] * 6, [3.0, 1, 1, 1, 1, 1], [5.0, 2, 2, 0, 0, 0], [1e-9, 0, 0, 0, 0, 1.0]])
@pytest.mark.parametrize("start", [np.ones(6), np.eye(6)[0]])
def test_equal_eigenvalues_are_found_as_often_as_they_are(values, start):
    # With fewer different eigenvalues than steps nothing but rounding is left of a product.
    with jax.enable_x64(True):
        basis, matrix = map(np.asarray, of_matrix(np.diag(values), start))
    np.testing.assert_allclose(basis @ basis.T, np.eye(6), atol=1e-14)
    np.testing.assert_allclose(np.linalg.eigvalsh(matrix), np.sort(values), atol=1e-13)


@pytest.mark.slow
@given(seed=st.integers(0, 10**6), rank=st.integers(1, 8), power=st.integers(-150, 150))
@settings(max_examples=20, deadline=None)
def test_the_matrix_is_that_of_the_product_whatever_its_rank_and_the_units_of_the_start(seed, rank, power):
    random = np.random.default_rng(seed)
    half = random.normal(size=(rank, 8))
    whole = half.T @ half
    with jax.enable_x64(True):
        basis, matrix = map(np.asarray, of_matrix(whole, 10.0**power * random.normal(size=8)))
    # Rounding of 8 × 8 products, and of what is dropped below a hundred roundings.
    np.testing.assert_allclose(basis @ whole @ basis.T, matrix, atol=1e-12 * np.linalg.norm(whole))
    np.testing.assert_allclose(basis @ basis.T, np.eye(8), atol=1e-12)
