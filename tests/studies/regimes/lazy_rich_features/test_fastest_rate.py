from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.networks import MLP
from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.studies.regimes.lazy_rich_features.fastest_rate import fastest_rate


@pytest.mark.slow
def test_the_fastest_rate_is_the_largest_eigenvalue_of_the_kernel_over_samples():
    inputs, network = np.random.default_rng(0).normal(size=(8, 3)), MLP((3, 6, 2), activation="tanh", seed=1)
    with jax.enable_x64(True):
        arrays = jax.tree.map(jax.device_put, network)
        kernel = neural_tangent_kernel(lambda each, x: each(x), arrays, jax.device_put(inputs)).values
    expected = np.linalg.eigvalsh(np.asarray(kernel).reshape(16, 16))[-1] / len(inputs)
    # Power iteration converges as the ratio of the first two eigenvalues.
    assert fastest_rate(network, inputs) == pytest.approx(expected, rel=0.02)
