from __future__ import annotations

import numpy as np

from dynascope.probes.kernel import kernel_distance, relative_change
from dynascope.probes.kernel.path import kernel_path, kernel_sum_path


def test_each_kernel_of_a_path_is_compared_with_the_first_as_two_kernels_are():
    draw = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
    kernels = draw @ np.swapaxes(draw, -1, -2)
    path = kernel_path(kernels)
    pairs = [[(member[0], later) for later in member] for member in kernels]
    distances, changes = (
        [[measure(*pair) for pair in row] for row in pairs] for measure in (kernel_distance, relative_change)
    )
    # Both are of order one, up to rounding.
    np.testing.assert_allclose(path.distance, distances, atol=1e-14)
    np.testing.assert_allclose(path.change, changes, rtol=1e-14)


def test_sums_of_kernels_move_as_if_they_were_formed():
    draw = np.random.default_rng(1)
    inner, outer = (each @ np.swapaxes(each, -1, -2) for each in (draw.normal(size=(2, 4, n, n)) for n in (3, 2)))
    kernels = np.einsum("...ij,ab->...iajb", inner, np.eye(2)) + np.einsum("ij,...ab->...iajb", np.eye(3), outer)
    expected, found = kernel_path(kernels.reshape(2, 4, 6, 6)), kernel_sum_path(inner, outer)
    np.testing.assert_allclose(found.distance, expected.distance, atol=1e-14)
    np.testing.assert_allclose(found.change, expected.change, rtol=1e-13)


def test_kernels_of_one_number_or_one_direction_do_not_turn():
    sizes = np.array([0.3, 0.7, 1.9])[:, None, None]
    direction = np.array([[0.6, 0.3, -0.2]])
    assert np.all(kernel_path(sizes * direction.T @ direction).distance == 0)
    assert np.all(kernel_sum_path(sizes, 1 / (3 * sizes)).distance == 0)
