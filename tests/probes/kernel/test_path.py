from __future__ import annotations

import numpy as np

from dynascope.probes.kernel import kernel_distance, relative_change
from dynascope.probes.kernel.path import kernel_path


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
