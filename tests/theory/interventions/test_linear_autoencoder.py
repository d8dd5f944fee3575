from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.theory.interventions import (
    autoencoder_critical_points,
    autoencoder_hessian_spectrum,
    autoencoder_loss,
    critical_autoencoder,
)

# The ledger's example has samples as columns.
X = np.array([[2, 0, 0, 1], [0, 1.5, 0.5, 0], [0, 0, 1, -0.5]]).T
SIGMA = [2.251045858242766, 1.632276460794280, 1.0091908142789388]
PENALTIES = ("weights", "product")
SETS = [(), (0,), (1,), (0, 1), (0, 2), (1, 2)]


def of_sets(found, sets):
    rows = [next(i for i, each in enumerate(found.learned) if tuple(np.flatnonzero(each)) == s) for s in sets]
    return [(int(found.index[i]), int(found.nullity[i])) for i in rows], found.value[rows]


def random_data(seed, samples, inputs):
    """Data of which the singular values are apart."""
    draw = np.random.default_rng(seed)
    left = np.linalg.qr(draw.normal(size=(samples, inputs)))[0]
    right = np.linalg.qr(draw.normal(size=(inputs, inputs)))[0]
    sigma = 0.5 + np.cumsum(draw.uniform(0.2, 0.6, inputs))[::-1]
    return (left * sigma) @ right.T, sigma, draw


def random_mixing(draw, size, latents, orthonormal):
    if orthonormal:
        rows = np.linalg.qr(draw.normal(size=(latents, latents)))[0][:size]
        return rows, rows.T
    m = draw.normal(size=(size, latents)) + 2 * np.eye(size, latents)
    inverse = np.linalg.pinv(m)
    return m, inverse + (np.eye(latents) - inverse @ m) @ draw.normal(size=(latents, size))


def numerical_hessian(x, a, b, regularization, penalty):
    """Exact differences: along a line the loss is quartic, its gradient cubic, so that two steps give its slope."""

    def gradient(flat):
        loss = autoencoder_loss(x, flat[: a.size].reshape(a.shape), flat[a.size :].reshape(b.shape), *rest)
        return np.concatenate([loss.encoder_gradient.ravel(), loss.decoder_gradient.ravel()])

    rest = regularization, penalty
    at = np.concatenate([a.ravel(), b.ravel()])
    rows = []
    for step in np.eye(at.size):
        near, far = ((gradient(at + h * step) - gradient(at - h * step)) / (2 * h) for h in (0.5, 1.0))
        rows.append((4 * near - far) / 3)
    return np.array(rows)


def test_the_minima_have_their_golden_values():
    plain, product, weights = (
        autoencoder_critical_points(SIGMA, 2, *rest) for rest in ((0.0,), (0.5, "product"), (0.5, "weights"))
    )
    assert plain.value.min() == pytest.approx(1.018466099624987, abs=1e-13)
    assert product.value.min() == pytest.approx(1.894554527424559, abs=1e-13)
    assert weights.value.min() == pytest.approx(2.8752969146134726, abs=1e-13)


def test_indices_nullities_and_values_of_the_golden_example():
    counts, values = of_sets(autoencoder_critical_points(SIGMA, 2, 0.5), SETS)
    assert counts == [(6, 0), (2, 1), (3, 1), (0, 1), (1, 1), (2, 1)]
    golden = [8.75, 4.6334557048, 6.9918412098, 2.8752969146, 4.3695224265, 6.7279079316]
    np.testing.assert_allclose(values, golden, atol=1e-10)
    counts, _ = of_sets(autoencoder_critical_points(SIGMA, 2), SETS)
    assert counts == [(6, 0), (2, 3), (3, 3), (0, 4), (1, 4), (2, 4)]


@pytest.mark.parametrize(
    ("rest", "first", "others"),
    [
        (
            (0.5, "weights"),
            [0.888347944071932, 0.028189475997926, -0.10204489409719832],
            [0.730491923560020, 0.242992274086830, 0.094821762345018],
        ),
        (
            (0.5, "product"),
            [0.897178740816351, 0.029836247904501, -0.102598097420133],
            [0.757141352521942, 0.251779336942636, 0.097856762260851],
        ),
        (
            (0.0, "weights"),
            [0.986039911583467, 0.037516904114437, -0.111165130565314],
            [0.899175560187358, 0.298749651137498, 0.114784528229175],
        ),
    ],
)
def test_the_golden_reconstructions(rest, first, others):
    encoder, decoder = critical_autoencoder(X, [0, 1], 2, *rest)
    product = encoder @ decoder
    np.testing.assert_allclose(product, product.T, atol=1e-14)
    np.testing.assert_allclose(product[np.triu_indices(3)], first + others, atol=1e-13)


def test_the_decoder_has_its_golden_singular_values():
    _, decoder = critical_autoencoder(X, [0, 1], 2, 0.5)
    np.testing.assert_allclose(
        np.linalg.svd(decoder, compute_uv=False), [0.9493820734462439, 0.901296459882031], atol=1e-14
    )


def test_the_golden_spectrum_of_the_hessian():
    golden = [0, 1.555141064671588, 2, 2, 2, 2.305940438284901, 6.428183770921229, 8.657305777852402]
    golden += [10.01182114624228, 10.664415079591594, 18.268829823647646, 18.486644825635423]
    np.testing.assert_allclose(autoencoder_hessian_spectrum(SIGMA, [0, 1], 2, 0.5), golden, atol=1e-12)


@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(1, 6),
    more=st.integers(0, 3),
    latents=st.integers(1, 6),
    penalty=st.sampled_from(PENALTIES),
    regularization=st.floats(0.01, 2.0),
)
def test_every_listed_point_is_critical_and_has_its_value(seed, inputs, more, latents, penalty, regularization):
    x, sigma, draw = random_data(seed, inputs + more, inputs)
    latents = min(latents, inputs)
    found = autoencoder_critical_points(sigma, latents, regularization, penalty)
    assert found.index[np.argmin(found.value)] == 0
    row = int(draw.integers(len(found.value)))
    learned = np.flatnonzero(found.learned[row])
    m, n = random_mixing(draw, len(learned), latents, penalty == "weights")
    rest = (regularization, penalty)
    a, b = critical_autoencoder(x, learned, latents, *rest, encoder_mixing=m, decoder_mixing=n)
    loss = autoencoder_loss(x, a, b, *rest)
    size = sigma[0] ** 2 * (1 + np.linalg.norm(a) + np.linalg.norm(b)) ** 3
    assert abs(loss.value - found.value[row]) < 1e-10 * size
    assert max(np.abs(loss.encoder_gradient).max(), np.abs(loss.decoder_gradient).max()) < 1e-10 * size


@pytest.mark.slow
@pytest.mark.parametrize(("penalty", "regularization"), [("weights", 0.0), ("weights", 1.3), ("product", 1.3)])
@pytest.mark.parametrize(("inputs", "latents"), [(4, 2), (3, 3), (5, 3)])
def test_a_numerical_hessian_has_the_stated_index_and_nullity(inputs, latents, penalty, regularization):
    x, sigma, draw = random_data(inputs, inputs + 2, inputs)
    assert sigma[-1] ** 2 < 1.3 < sigma[-2] ** 2  # one direction cannot be learned
    found = autoencoder_critical_points(sigma, latents, regularization, penalty)
    for mask, index, nullity in zip(found.learned, found.index, found.nullity, strict=True):
        learned, tied = np.flatnonzero(mask), penalty == "weights" and regularization > 0
        m, n = random_mixing(draw, len(learned), latents, tied)
        rest = (regularization, penalty)
        a, b = critical_autoencoder(x, learned, latents, *rest, encoder_mixing=m, decoder_mixing=n)
        spectrum = np.linalg.eigvalsh(numerical_hessian(x, a, b, *rest))
        zero = 1e-9 * np.abs(spectrum).max()
        assert (int(np.sum(spectrum < -zero)), int(np.sum(np.abs(spectrum) <= zero))) == (index, nullity)
        if tied:
            exact = autoencoder_hessian_spectrum(sigma, learned, latents, regularization)
            np.testing.assert_allclose(spectrum, exact, atol=1e-10 * np.abs(spectrum).max())


@given(
    seed=st.integers(0, 10**6),
    inputs=st.integers(1, 6),
    latents=st.integers(1, 6),
    regularization=st.floats(0.01, 8.0),
)
def test_the_counts_of_the_closed_spectrum_are_the_index_and_the_nullity(seed, inputs, latents, regularization):
    _, sigma, _ = random_data(seed, inputs, inputs)
    latents = min(latents, inputs)
    found = autoencoder_critical_points(sigma, latents, regularization)
    for mask, index, nullity in zip(found.learned, found.index, found.nullity, strict=True):
        spectrum = autoencoder_hessian_spectrum(sigma, np.flatnonzero(mask), latents, regularization)
        assert spectrum.size == 2 * inputs * latents
        assert (np.sum(spectrum < 0), np.sum(spectrum == 0)) == (index, nullity)


@pytest.mark.parametrize(("penalty", "regularization"), [("weights", 0.0), ("weights", 0.3), ("product", 0.3)])
def test_equal_singular_values_warn_and_enlarge_the_nullity(penalty, regularization):
    sigma, x = np.array([2.0, 1.5, 1.5, 1.0]), np.diag([2.0, 1.5, 1.5, 1.0])
    with pytest.warns(UserWarning, match="equal"):
        found = autoencoder_critical_points(sigma, 2, regularization, penalty)
    for mask, index, nullity in zip(found.learned, found.index, found.nullity, strict=True):
        a, b = critical_autoencoder(x, np.flatnonzero(mask), 2, regularization, penalty)
        spectrum = np.linalg.eigvalsh(numerical_hessian(x, a, b, regularization, penalty))
        assert (int(np.sum(spectrum < -1e-9)), int(np.sum(np.abs(spectrum) <= 1e-9))) == (index, nullity)


def test_every_set_of_learnable_directions_is_listed_once():
    found = autoencoder_critical_points([3.0, 2.0, 1.0, 0.5], 3, 0.5)
    sets = [s for size in range(4) for s in itertools.combinations(range(3), size)]
    assert [tuple(np.flatnonzero(row)) for row in found.learned] == sets


def test_with_a_regularization_beyond_the_spectrum_the_origin_is_the_only_critical_point():
    found = autoencoder_critical_points([2.0, 1.0], 2, 5.0)
    assert (found.value.tolist(), found.index.tolist(), found.nullity.tolist()) == ([5.0], [0], [0])


def critical(**changes):
    given = {"learned": [0], "latents": 2, "regularization": 0.5, "penalty": "weights"} | changes
    return critical_autoencoder(X, **given)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("regularization", lambda: autoencoder_critical_points(SIGMA, 2, -0.1)),
        ("regularization", lambda: autoencoder_critical_points([2.0, 1.0], 2, 1.0)),
        ("regularization", lambda: autoencoder_hessian_spectrum(SIGMA, [0], 2, 0.0)),
        ("latents", lambda: autoencoder_critical_points(SIGMA, 4, 0.5)),
        ("latents", lambda: critical(latents=4)),
        ("singular_values", lambda: autoencoder_critical_points([1.0, 2.0], 1, 0.5)),
        ("singular_values", lambda: autoencoder_critical_points([1.0, 0.0], 1, 0.5)),
        ("penalty", lambda: autoencoder_critical_points(SIGMA, 2, 0.5, "both")),
        ("learned", lambda: critical(learned=[3])),
        ("learned", lambda: critical(learned=[0, 0])),
        ("learned", lambda: critical(learned=[0, 1, 2])),
        ("learned", lambda: critical(learned=[2], regularization=2.0)),
        ("encoder_mixing", lambda: critical(encoder_mixing=[[1.0, 1.0]])),
        ("encoder_mixing", lambda: critical(encoder_mixing=[[1.0]])),
        ("encoder_mixing", lambda: critical(encoder_mixing=[[0.0, 0.0]], penalty="product")),
        ("decoder_mixing", lambda: critical(encoder_mixing=[[1.0, 0.0]], decoder_mixing=[[1.0], [1.0]])),
        ("data", lambda: critical_autoencoder([[1.0, 1.0], [1.0, 1.0]], [0], 1)),
        ("encoder", lambda: autoencoder_loss(X, np.ones((2, 1)), np.ones((1, 3)))),
        ("decoder", lambda: autoencoder_loss(X, np.ones((3, 1)), np.ones((2, 3)))),
    ],
)
def test_bad_input_is_rejected_by_name(argument, call):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
