from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.svm import SVC

from dynascope.errors import InputError
from dynascope.theory.margins import class_differences, max_margin, simplex_margin, support_offset

Z = [[1.0, 0.2], [10.0, -1.0]]


def separable(seed, inputs, samples=15, gap=0.1):
    random = np.random.default_rng(seed)
    x, w = random.normal(size=(samples, inputs)), random.normal(size=inputs)
    w /= np.linalg.norm(w)
    y = np.sign(x @ w)
    return (x + gap * y[:, None] * w) * y[:, None]


def quiet(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return max_margin(*arguments)


def test_the_robustness_example_to_its_digits():
    linear, asymmetric = max_margin(Z), max_margin(Z, factors=[1, 2])
    np.testing.assert_allclose(linear.weights, [0.961538461538, 0.192307692308], atol=1e-12)
    assert linear.euclidean_margin == pytest.approx(1.019803902719, abs=1e-12)
    np.testing.assert_allclose(asymmetric.weights, [0.4, 3.0], atol=1e-12)
    assert asymmetric.euclidean_margin == pytest.approx(0.330409300228, abs=1e-12)
    assert (asymmetric.rate, asymmetric.unique, asymmetric.discarded.size) == (1.0, True, 0)


@pytest.mark.parametrize("inputs", [2, 5])
def test_with_one_factor_it_is_the_support_vector_machine(inputs):
    # Labels of both signs, no constant: an SVM on z and −z has none either.
    z = separable(inputs, inputs)
    machine = SVC(kernel="linear", C=1e10, tol=1e-10).fit(np.vstack([z, -z]), np.repeat([1, -1], len(z)))
    np.testing.assert_allclose(max_margin(z).weights, machine.coef_[0], rtol=1e-4, atol=1e-5)


@given(seed=st.integers(0, 10**6), factors=st.lists(st.integers(1, 2), min_size=2, max_size=5))
def test_it_satisfies_the_conditions_of_an_optimum(seed, factors):
    z, counts = separable(seed, len(factors)), np.array(factors)
    found = quiet(z, factors)
    kept = np.ones(len(counts), bool)
    kept[found.discarded] = False
    fewest = counts[kept].min()
    penalised = kept & (counts == fewest)
    margins, pull = z @ found.weights, z.T @ found.multipliers
    assert found.rate == 1 / fewest
    assert margins.min() == pytest.approx(1, abs=1e-8)
    assert (found.multipliers >= 0).all()
    assert np.abs(found.multipliers * (margins - 1)).max() < 1e-7 * (1 + found.multipliers.max())
    size = 1 + np.abs(found.multipliers).sum()
    assert np.abs(pull[kept & (counts > fewest)]).max(initial=0) < 1e-8 * size
    if fewest == 1:
        np.testing.assert_allclose(pull[penalised], found.weights[penalised], atol=1e-8 * size)
    else:
        assert np.abs(pull[penalised]).max() <= 1 + 1e-8
        moved = penalised & (np.abs(found.weights) > 1e-9)
        np.testing.assert_allclose(pull[moved], np.sign(found.weights[moved]), atol=1e-8)
    assert np.all(found.weights[~kept] == 0)


def test_another_solver_finds_no_lower_value():
    z, counts = separable(3, 4), np.array([1, 2, 1, 2])
    found = quiet(z, counts)
    paid = counts == 1
    other = minimize(
        lambda beta: np.sum(beta[paid] ** 2) / 2,
        found.weights + 0.1,
        jac=lambda beta: np.where(paid, beta, 0.0),
        constraints={"type": "ineq", "fun": lambda beta: z @ beta - 1, "jac": lambda beta: z},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.value <= other.fun * (1 + 1e-8)


@given(seed=st.integers(0, 10**6), size=st.floats(-3, 3))
def test_it_scales_with_the_data_and_does_not_mind_more_of_the_same(seed, size):
    z = separable(seed, 3)
    found, scaled = max_margin(z), max_margin(10**size * np.vstack([z[::-1], 3 * z]))
    np.testing.assert_allclose(10**size * scaled.weights, found.weights, rtol=1e-7, atol=1e-9)


def test_a_block_that_is_not_needed_is_discarded_with_a_warning():
    with pytest.warns(UserWarning, match="discarded"):
        found = max_margin([[1.0, 1.0], [-2.0, 1.0]], factors=[1, 2])
    assert found.discarded.tolist() == [0]
    np.testing.assert_allclose(found.weights, [0.0, 1.0], atol=1e-12)
    assert found.rate == 0.5


def test_it_says_where_others_solve_the_problem_too():
    # a = 1 whatever the free weight is, from −2 to 2, of which the support vector (1, 0) says nothing.
    assert not max_margin([[1.0, 0.0], [3.0, 1.0], [3.0, -1.0]], factors=[1, 2]).unique
    assert max_margin([[1.0, 0.5], [1.0, -0.5]], factors=[1, 2]).unique
    assert not max_margin([[1.0, 1.0]], factors=2).unique
    assert max_margin([[1.0, 2.0]], factors=2).unique


@pytest.mark.parametrize("classes", [2, 3, 4, 6])
def test_of_a_simplex_the_classifier_is_the_features_themselves(classes):
    theory = simplex_margin(classes)
    values, vectors = np.linalg.eigh(theory.gram)
    features = vectors * np.sqrt(np.maximum(values, 0))
    found = max_margin(class_differences(features, np.arange(classes), classes))
    assert found.value == pytest.approx(theory.value, abs=1e-12)
    np.testing.assert_allclose(found.weights.reshape(classes, classes), theory.classifier_share * features, atol=1e-10)
    # Moved off the simplex, and back onto the sphere, features cost more.
    moved = features + 0.05 * np.random.default_rng(0).normal(size=features.shape)
    moved /= np.linalg.norm(moved, axis=1, keepdims=True)
    assert max_margin(class_differences(moved, np.arange(classes), classes)).value > theory.value


def test_golden_values_of_collapse():
    assert simplex_margin(3).value == pytest.approx(0.666666666667, abs=1e-12)
    assert simplex_margin(4).value == pytest.approx(1.125, abs=1e-12)


def test_the_offset_puts_every_share_where_the_multipliers_are():
    z = separable(5, 3)
    found, offset = max_margin(z), support_offset(z)
    level = 1e5  # at which no other sample has a share
    shares = np.exp(level - z @ (level * found.weights + offset))
    np.testing.assert_allclose(shares, found.multipliers / found.multipliers.sum(), atol=1e-8)


def test_a_discarded_block_has_no_offset():
    with pytest.warns(UserWarning, match="discarded"), pytest.raises(InputError) as caught:
        support_offset([[1.0, 1.0]], [1, 2])
    assert caught.value.argument == "factors"


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: max_margin([[1.0, 0.0], [-1.0, 0.0]]), "data"),
        (lambda: max_margin([[0.0, 0.0]]), "data"),
        (lambda: max_margin(np.zeros((0, 2))), "data"),
        (lambda: max_margin(Z, factors=[1, 1.5]), "factors"),
        (lambda: max_margin(Z, factors=[0, 1]), "factors"),
        (lambda: max_margin(Z, factors=3), "factors"),
        (lambda: max_margin(Z, factors=[1, 2, 1]), "factors"),
        (lambda: class_differences([[1.0]], [2], 2), "labels"),
        (lambda: class_differences([[1.0]], [0], 1), "classes"),
        (lambda: support_offset([[1.0, 0.0], [1.0, 0.0]]), "data"),
        (lambda: support_offset([[1.0, 0.5]], 2), "data"),
        (lambda: simplex_margin(1), "classes"),
        (lambda: class_differences([[1.0]], [0], 10**6), "classes"),
        (lambda: simplex_margin(10**6), "classes"),
    ],
)
def test_bad_input_is_refused_by_name(call, argument):
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.argument == argument
