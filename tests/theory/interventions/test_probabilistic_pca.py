from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import sqrtm
from sklearn.decomposition import PCA

from dynascope.errors import InputError
from dynascope.theory.interventions import critical_autoencoder, probabilistic_pca


def random_data(seed, samples, inputs):
    x = np.random.default_rng(seed).normal(size=(samples, inputs)) * np.arange(1, inputs + 1)
    return x - x.mean(axis=0)


@given(seed=st.integers(0, 10**6), inputs=st.integers(2, 5), latents=st.integers(1, 5), share=st.floats(0.1, 0.9))
def test_the_autoencoder_gives_the_loadings_and_the_reconstruction(seed, inputs, latents, share):
    latents = min(latents, inputs)
    x = random_data(seed, inputs + 6, inputs)
    sigma = np.linalg.svd(x, compute_uv=False)
    noise = share * sigma[latents - 1] ** 2 / len(x)
    found = probabilistic_pca(x, latents, noise)
    a, b = critical_autoencoder(x, np.arange(latents), latents, found.regularization)
    root, size = np.real(sqrtm(x.T @ x / len(x))), sigma[0] ** 2 / len(x)
    loadings = root @ b.T
    np.testing.assert_allclose(found.loadings @ found.loadings.T, loadings @ loadings.T, atol=1e-10 * size)
    np.testing.assert_allclose(found.reconstruction, a @ b, atol=1e-10)
    w = found.loadings
    posterior = w @ np.linalg.solve(w.T @ w + noise * np.eye(latents), w.T)
    np.testing.assert_allclose(found.reconstruction, posterior, atol=1e-10)


@given(seed=st.integers(0, 10**6))
def test_the_default_noise_has_the_maximum_likelihood(seed):
    x = random_data(seed, 12, 5)
    found = probabilistic_pca(x, 2)
    machine = PCA(2, svd_solver="full").fit(x)
    # scikit-learn divides by n − 1.
    covariance = machine.get_covariance() * 11 / 12
    own = found.loadings @ found.loadings.T + found.regularization / 12 * np.eye(5)
    np.testing.assert_allclose(own, covariance, atol=1e-10 * np.abs(covariance).max())


def test_directions_below_the_noise_are_switched_off():
    found = probabilistic_pca(np.diag([3.0, 1.0]), 2, noise_variance=1.0)
    assert found.regularization == 2.0
    assert np.linalg.matrix_rank(found.loadings) == np.linalg.matrix_rank(found.reconstruction) == 1


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("argument", "data", "rest"),
    [
        ("latents", np.eye(2), (3,)),
        ("noise_variance", np.eye(2), (2,)),
        ("noise_variance", np.eye(2), (1, -1.0)),
        ("data", [[1.0, np.nan]], (1,)),
    ],
)
def test_bad_input_is_rejected_by_name(argument, data, rest):
    with pytest.raises(InputError) as caught:
        probabilistic_pca(data, *rest)
    assert caught.value.argument == argument
