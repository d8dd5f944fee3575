from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.interventions import autoencoder_ladder, autoencoder_loss, autoencoder_path


def flow(x, a, b, times, *rest):
    """The loss, and the product of the layers, along gradient flow."""

    def layers(flat):
        return flat[: a.size].reshape(a.shape), flat[a.size :].reshape(b.shape)

    def velocity(_, flat):
        loss = autoencoder_loss(x, *layers(flat), *rest)
        return -np.concatenate([loss.encoder_gradient.ravel(), loss.decoder_gradient.ravel()])

    start = np.concatenate([a.ravel(), b.ravel()])
    path = solve_ivp(velocity, (0, times[-1]), start, method="DOP853", rtol=1e-12, atol=1e-18, t_eval=times).y.T
    both = [layers(flat) for flat in path]
    return np.array([autoencoder_loss(x, *each, *rest).value for each in both]), np.array([c @ d for c, d in both])


@pytest.mark.slow
@pytest.mark.parametrize(("penalty", "regularization"), [("weights", 0.0), ("weights", 1.3), ("product", 1.3)])
def test_with_aligned_transposed_layers_the_path_is_exact(penalty, regularization):
    sigma, c, times = np.array([2.0, 1.5, 1.0, 0.5]), np.array([0.3, 0.01, 1.4]), np.linspace(0, 1.5, 7)
    found = autoencoder_path(times, sigma, c, regularization, penalty)
    a = np.eye(4, 3) * c
    loss, product = flow(np.diag(sigma), a, a.T, times, regularization, penalty)
    np.testing.assert_allclose(found.loss, loss, rtol=1e-10)
    np.testing.assert_allclose(found.strength, np.diagonal(product, axis1=1, axis2=2)[:, :3], atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["weights", "product"])
def test_small_random_layers_follow_the_path_of_their_orthogonalised_rows(penalty):
    sigma, draw, errors = np.array([2.5, 1.6, 1.0]), np.random.default_rng(1), []
    a, b = draw.normal(size=(3, 2)), draw.normal(size=(2, 3))
    for scale in (1e-3, 1e-6):
        c = np.abs(np.linalg.qr(scale * (a + b.T)[:2].T / 2)[1].diagonal())
        times = np.linspace(0, 2 * np.log(1 / scale) / (4 * (sigma[1] ** 2 - 0.4)), 300)
        loss, _ = flow(np.diag(sigma), scale * a, scale * b, times, 0.4, penalty)
        errors.append(np.abs(autoencoder_path(times, sigma, c, 0.4, penalty).loss - loss).max() / loss[0])
    assert errors[1] < 0.05 * errors[0] < 0.05 * 0.02


@given(
    seed=st.integers(0, 10**6),
    penalty=st.sampled_from(("weights", "product")),
    regularization=st.floats(0.0, 3.0),
    latents=st.integers(1, 4),
)
def test_the_path_ends_at_the_bottom_of_the_ladder(seed, penalty, regularization, latents):
    draw = np.random.default_rng(seed)
    sigma, c = np.cumsum(draw.uniform(0.3, 0.6, 4))[::-1], draw.uniform(0.01, 2, latents)
    gaps = np.abs(sigma**2 - regularization)
    path = autoencoder_path([0.0, 30 / gaps.min()], sigma, c, regularization, penalty)
    np.testing.assert_allclose(path.strength[0], c**2, rtol=1e-10)
    bottom = autoencoder_ladder(sigma, latents, regularization, penalty).loss[-1]
    assert path.loss[1] == pytest.approx(bottom, rel=1e-10)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("times", lambda: autoencoder_path([-1.0], [2.0], [0.1])),
        ("initial", lambda: autoencoder_path([1.0], [2.0], [0.0])),
        ("initial", lambda: autoencoder_path([1.0], [2.0], [])),
        ("initial", lambda: autoencoder_path([1.0], [2.0], [0.1, 0.1])),
        ("regularization", lambda: autoencoder_path([1.0], [2.0], [0.1], 4.0)),
    ],
)
def test_bad_input_is_rejected_by_name(argument, call):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
