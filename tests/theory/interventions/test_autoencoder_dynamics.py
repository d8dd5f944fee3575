from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from dynascope.errors import InputError
from dynascope.theory.interventions import (
    autoencoder_critical_points,
    autoencoder_hessian_spectrum,
    autoencoder_imbalance,
    autoencoder_ladder,
    autoencoder_loss,
    autoencoder_rates,
    critical_autoencoder,
    transposition_residual,
)

SIGMA = [2.251045858242766, 1.632276460794280, 1.0091908142789388]


def flow(x, a, b, time, *rest):
    """Weights after gradient flow."""

    def velocity(_, flat):
        loss = autoencoder_loss(x, flat[: a.size].reshape(a.shape), flat[a.size :].reshape(b.shape), *rest)
        return -np.concatenate([loss.encoder_gradient.ravel(), loss.decoder_gradient.ravel()])

    start = np.concatenate([a.ravel(), b.ravel()])
    end = solve_ivp(velocity, (0, time), start, method="DOP853", rtol=1e-12, atol=1e-14).y[:, -1]
    return end[: a.size].reshape(a.shape), end[a.size :].reshape(b.shape)


@pytest.mark.slow
@pytest.mark.parametrize(("penalty", "decay"), [("weights", 0.3), ("product", 0.0)])
@pytest.mark.parametrize(("inputs", "latents"), [(3, 2), (2, 3)])
def test_the_imbalance_of_the_integrated_flow_decays_as_stated(inputs, latents, penalty, decay):
    draw = np.random.default_rng(latents)
    x, a, b = (draw.normal(size=shape) for shape in ((4, inputs), (inputs, latents), (latents, inputs)))
    c, d = flow(x, a, b, 0.7, 0.3, penalty)
    exact = autoencoder_imbalance(a.T @ a - b @ b.T, 0.7, decay)
    np.testing.assert_allclose(c.T @ c - d @ d.T, exact, atol=1e-10)


@given(seed=st.integers(0, 10**6), latents=st.integers(1, 5), first=st.floats(0, 3), second=st.floats(0, 3))
def test_the_imbalance_composes_over_time(seed, latents, first, second):
    start = np.random.default_rng(seed).normal(size=(latents, latents))
    once = autoencoder_imbalance(start, first + second, 0.4)
    twice = autoencoder_imbalance(autoencoder_imbalance(start, first, 0.4), second, 0.4)
    np.testing.assert_allclose(once, twice, rtol=1e-10, atol=0)


@given(seed=st.integers(0, 10**6), inputs=st.integers(1, 5), latents=st.integers(1, 5))
def test_minima_with_decayed_weights_are_transposed_and_others_need_not_be(seed, inputs, latents):
    draw = np.random.default_rng(seed)
    latents = min(latents, inputs)
    x = np.diag(np.arange(inputs, 0.0, -1.0)) @ np.linalg.qr(draw.normal(size=(inputs, inputs)))[0]
    learned, mixing = np.arange(latents), np.linalg.qr(draw.normal(size=(latents, latents)))[0]
    assert transposition_residual(*critical_autoencoder(x, learned, latents, 0.5, encoder_mixing=mixing)) < 1e-10
    assert transposition_residual(*critical_autoencoder(x, learned, latents, encoder_mixing=3 * mixing)) > 0.5


def test_the_slowest_rate_and_the_largest_step_of_the_golden_example():
    found = autoencoder_rates(SIGMA, 2, 0.5)
    assert found.slowest == pytest.approx(1.555141064671588, abs=1e-12)
    assert found.largest_step == pytest.approx(2 / 18.486644825635423, abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(("share", "stays"), [(0.98, True), (1.02, False)])
def test_gradient_descent_is_stable_up_to_the_largest_step(share, stays):
    x = np.diag(SIGMA)
    best = critical_autoencoder(x, [0, 1], 2, 0.5)
    a, b = (each + 1e-6 * np.random.default_rng(0).normal(size=each.shape) for each in best)
    step, least = share * autoencoder_rates(SIGMA, 2, 0.5).largest_step, autoencoder_loss(x, *best, 0.5).value
    before = autoencoder_loss(x, a, b, 0.5).value - least
    for _ in range(400):
        loss = autoencoder_loss(x, a, b, 0.5)
        a, b = a - step * loss.encoder_gradient, b - step * loss.decoder_gradient
    assert (autoencoder_loss(x, a, b, 0.5).value - least < before) == stays


@pytest.mark.slow
def test_the_flow_near_the_minimum_converges_at_the_slowest_rate():
    x = np.diag(SIGMA)
    best = critical_autoencoder(x, [0, 1], 2, 0.5)
    least = autoencoder_loss(x, *best, 0.5).value
    a, b = (each + 1e-3 * np.random.default_rng(0).normal(size=each.shape) for each in best)
    excess = []
    for _ in range(2):
        a, b = flow(x, a, b, 3.0, 0.5)
        excess.append(autoencoder_loss(x, a, b, 0.5).value - least)
    # The excess is quadratic in the distance; the next rate is a third larger.
    assert np.log(excess[0] / excess[1]) / 6 == pytest.approx(autoencoder_rates(SIGMA, 2, 0.5).slowest, rel=0.02)


@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(1, 7),
    latents=st.integers(1, 7),
    penalty=st.sampled_from(("weights", "product")),
    regularization=st.floats(0.0, 6.0),
)
def test_the_ladder_descends_the_critical_values_of_the_strongest_directions(
    seed, inputs, latents, penalty, regularization
):
    sigma = np.cumsum(np.random.default_rng(seed).uniform(0.2, 0.6, inputs))[::-1]
    latents = min(latents, inputs)
    ladder = autoencoder_ladder(sigma, latents, regularization, penalty)
    points = autoencoder_critical_points(sigma, latents, regularization, penalty)
    nested = [row for row, mask in enumerate(points.learned) if not np.diff(mask.astype(int)).clip(0).any()]
    np.testing.assert_allclose(ladder.loss, points.value[nested], rtol=1e-10, atol=1e-10)
    assert (np.diff(ladder.loss) < 0).all()
    assert points.index[nested][-1] == 0
    if penalty == "weights" and regularization > 0:
        fastest = [
            -autoencoder_hessian_spectrum(sigma, range(size), latents, regularization)[0]
            for size in range(len(ladder.escape_rate))
        ]
        np.testing.assert_allclose(ladder.escape_rate, fastest, rtol=1e-10)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("initial", lambda: autoencoder_imbalance([[1.0, 2.0]], 1.0)),
        ("times", lambda: autoencoder_imbalance([[1.0]], -1.0)),
        ("regularization", lambda: autoencoder_imbalance([[1.0]], 1.0, -1.0)),
        ("regularization", lambda: autoencoder_rates(SIGMA, 2, 0.0)),
        ("latents", lambda: autoencoder_rates(SIGMA, 4, 0.5)),
        ("singular_values", lambda: autoencoder_ladder([1.0, 2.0], 1)),
        ("decoder", lambda: transposition_residual(np.ones((3, 2)), np.ones((3, 2)))),
    ],
)
def test_bad_input_is_rejected_by_name(argument, call):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
