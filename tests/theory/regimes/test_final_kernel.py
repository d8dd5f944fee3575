from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear_training import FIRST, SECOND, trained

from dynascope.errors import InputError
from dynascope.theory.regimes import kernel_regression_map

X, Y = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]), np.array([1.0, 2.0])


@pytest.mark.parametrize(
    ("scale", "final", "initial"), [(0.1, 0.0496, 0.612), (0.01, 0.005718, 0.720), (0.001, 0.0005805, 0.730)]
)
def test_golden_distances_from_regression_with_the_final_and_the_initial_kernel(scale, final, initial):
    w, a, maps = trained(scale, [0.0, 200.0], X.T @ X / 2, b=X.T @ Y / 2)
    matrices = [a[place] @ a[place] * np.eye(3) + w[place].T @ w[place] for place in (1, 0)]
    found = [np.linalg.norm(maps[1] - kernel_regression_map(X, Y, m, initial_map=maps[0])) for m in matrices]
    # Stored with three or four digits.
    np.testing.assert_allclose(found, [final, initial], rtol=2e-3)


def test_the_fixed_kernel_flow_converges_to_the_map():
    matrix = SECOND @ SECOND * np.eye(3) + FIRST.T @ FIRST
    start = np.array([0.3, -0.1, 0.2])
    values, vectors = np.linalg.eig(matrix @ X.T @ X / 2)
    # β(t) = β∞ + exp(−M Σ t) (β₀ − β∞), and the null space of X M stays at the initial map.
    expected = kernel_regression_map(X, Y, matrix, initial_map=start)
    decay = (vectors * np.exp(-values * 1e3)) @ np.linalg.inv(vectors)
    least = np.linalg.pinv(X) @ Y
    np.testing.assert_allclose((least + decay @ (start - least)).real, expected, rtol=1e-9)


@given(seed=st.integers(0, 1000))
def test_the_map_fits_the_samples_and_a_multiple_of_the_kernel_gives_the_same(seed):
    rng = np.random.default_rng(seed)
    x, y, factor = rng.normal(size=(2, 4)), rng.normal(size=2), rng.normal(size=(4, 6))
    found = kernel_regression_map(x, y, factor @ factor.T)
    np.testing.assert_allclose(x @ found, y, atol=1e-8)
    np.testing.assert_allclose(kernel_regression_map(x, y, 3 * factor @ factor.T), found, atol=1e-8)


@pytest.mark.usefixtures("unchecked_types")
def test_bad_input_is_refused_by_name():
    with pytest.raises(InputError) as caught:
        kernel_regression_map(X, Y, np.eye(2))
    assert caught.value.argument == "preconditioner"
