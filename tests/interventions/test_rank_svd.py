from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import subspace_angles
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dynascope.errors import InputError
from dynascope.interventions import RankSVD
from dynascope.theory.interventions import autoencoder_loss, critical_autoencoder


@parametrize_with_checks([RankSVD(n_components=1), RankSVD(regularization=1e-6)])
def test_it_is_an_estimator_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    return load_digits().data


@pytest.mark.slow
@pytest.mark.parametrize("components", [1, 3, 10, 40, 61])
def test_on_digits_it_agrees_with_arpack(digits, components):
    found = RankSVD(components).fit(digits)
    other = TruncatedSVD(components, algorithm="arpack", tol=0, random_state=0).fit(digits)
    np.testing.assert_allclose(found.singular_values_, other.singular_values_, rtol=1e-8)
    # All these numbers of components have a gap of at least a percent below them.
    assert subspace_angles(found.components_.T, other.components_.T).max() < 1e-8
    own, their = (each.transform(digits) @ each.components_ for each in (found, other))
    np.testing.assert_allclose(own, their, atol=1e-8 * np.abs(digits).max())


@given(
    seed=st.integers(0, 10**6),
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12)),
    components=st.integers(1, 12),
    share=st.floats(0.01, 0.99),
    oversamples=st.integers(2, 4),
)
def test_its_decoder_is_the_minimum_of_the_autoencoder(seed, shape, components, share, oversamples):
    x = np.random.default_rng(seed).normal(size=shape)
    components = min(components, *shape)
    sigma = np.linalg.svd(x, compute_uv=False)
    # Without a gap, the directions of a minimum are not unique.
    components = int(np.argmin(np.append(sigma[1:], 0)[:components] / sigma[:components])) + 1
    weight = share * sigma[components - 1] ** 2
    found = RankSVD(components, regularization=weight, n_oversamples=oversamples).fit(x)
    np.testing.assert_allclose(found.singular_values_, sigma[:components], rtol=1e-10)
    loss = autoencoder_loss(x, found.decoder_.T, found.decoder_, weight)
    size = sigma[0] ** 2
    assert max(np.abs(loss.encoder_gradient).max(), np.abs(loss.decoder_gradient).max()) < 1e-10 * size
    best = sum(sigma[components:] ** 2) + sum(weight * (2 - weight / sigma[:components] ** 2))
    assert loss.value == pytest.approx(best, abs=1e-10 * size * len(sigma))
    # What the docstring promises: the singular values of the data from those of the decoder.
    strength = np.linalg.svd(found.decoder_, compute_uv=False)
    amplified = sigma[:components] ** 2 / weight
    np.testing.assert_allclose(
        np.sqrt(weight / (1 - strength**2)), sigma[:components], rtol=1e-13 * amplified.max() + 1e-10
    )


@given(share=st.floats(0.01, 0.99))
def test_the_regularization_does_not_change_the_decomposition(share):
    x = np.random.default_rng(0).normal(size=(8, 5))
    plain = RankSVD(3).fit(x)
    other = RankSVD(3, regularization=share * plain.singular_values_[-1] ** 2).fit(x)
    np.testing.assert_array_equal(plain.components_, other.components_)
    np.testing.assert_array_equal(plain.singular_values_, other.singular_values_)


def test_by_default_the_regularization_is_half_of_the_smallest_square():
    found = RankSVD(2).fit(np.diag([3.0, 2.0, 1.0]))
    assert found.regularization_ == pytest.approx(2.0)
    np.testing.assert_allclose(np.abs(found.decoder_), np.eye(2, 3) * np.sqrt([[7 / 9], [1 / 2]]), atol=1e-12)
    expected, _ = critical_autoencoder(np.diag([3.0, 2.0, 1.0]), [0, 1], 2, found.regularization_)
    np.testing.assert_allclose(np.abs(found.decoder_.T), np.abs(expected), atol=1e-12)


def test_with_all_components_the_data_come_back():
    x = np.random.default_rng(0).normal(size=(9, 4))
    found = RankSVD(4).fit(x)
    np.testing.assert_allclose(found.inverse_transform(found.transform(x)), x, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found.transform(x), axis=0), found.singular_values_, rtol=1e-12)


def test_sparse_data_give_the_same_components():
    x = scipy.sparse.random(60, 30, density=0.2, random_state=0, format="csr")
    sparse, dense = RankSVD(3).fit(x), RankSVD(3).fit(x.toarray())
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-9)
    np.testing.assert_allclose(sparse.transform(x), dense.transform(x.toarray()), atol=1e-9)


def test_the_components_are_in_order_at_extreme_scales():
    x = np.random.default_rng(0).normal(size=(9, 4))
    for scale in (1e-100, 1e100):
        found = RankSVD(2).fit(scale * x)
        np.testing.assert_allclose(found.singular_values_ / scale, np.linalg.svd(x, compute_uv=False)[:2], rtol=1e-12)


@pytest.mark.slow
def test_it_takes_part_in_pipelines_and_searches(digits):
    labels = load_digits().target
    steps = make_pipeline(StandardScaler(), RankSVD(), LogisticRegression(max_iter=300))
    search = GridSearchCV(steps, {"ranksvd__n_components": [2, 12]}, cv=2).fit(digits[:300], labels[:300])
    assert search.best_params_ == {"ranksvd__n_components": 12}
    assert clone(search.best_estimator_[1]).get_params()["n_components"] == 12
    assert search.best_estimator_[1].get_feature_names_out()[0] == "ranksvd0"


def test_without_convergence_it_warns():
    x = np.random.default_rng(0).normal(size=(50, 40))
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        RankSVD(3, max_iter=2, n_oversamples=0).fit(x)


@pytest.mark.parametrize(
    ("argument", "parameters"),
    [
        ("regularization", {"regularization": -1.0}),
        ("regularization", {"regularization": 0.0}),
        ("regularization", {"regularization": 4.0}),  # σ₂² itself
        ("regularization", {"regularization": 5.0}),
        ("regularization", {"regularization": np.nan}),
        ("n_components", {"n_components": 4}),
        ("n_components", {"n_components": 3}),  # of data of rank two
        ("n_components", {"n_components": 0}),
        ("n_components", {"n_components": "two"}),
        ("n_oversamples", {"n_oversamples": -1}),
        ("tol", {"tol": 0.0}),
        ("max_iter", {"max_iter": 0}),
    ],
)
def test_bad_input_is_rejected_by_name_when_it_is_fitted(argument, parameters):
    with pytest.raises(InputError) as caught:
        RankSVD(**parameters).fit(np.diag([3.0, 2.0, 0.0]))
    assert caught.value.argument == argument


def test_coordinates_of_another_model_are_rejected():
    with pytest.raises(InputError) as caught:
        RankSVD(2).fit(np.diag([3.0, 2.0, 1.0])).inverse_transform(np.ones((4, 3)))
    assert caught.value.argument == "X"
