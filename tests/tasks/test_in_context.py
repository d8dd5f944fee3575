from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.networks.linear_attention import LinearAttention
from dynascope.tasks.in_context import InContextRegression

COVARIANCE = np.array([[1.0, 0.3, 0.0], [0.3, 0.7, -0.2], [0.0, -0.2, 0.4]])


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def prompts(samples, length, seed):
    """Rows of the examples (x_n, y_n), then the query (x, 0), with a regression vector each; and the targets."""
    draw = np.random.default_rng(seed)
    x = draw.multivariate_normal(np.zeros(3), COVARIANCE, size=(samples, length + 1))
    labels = np.einsum("snd,sd->sn", x, draw.normal(size=(samples, 3)))
    tokens = np.concatenate([x, labels[..., None]], axis=2)
    tokens[:, -1, -1] = 0.0
    return tokens.reshape(samples, -1), labels[:, -1:]


def closed_form(covariance, length, matrix):
    moment = (1 + 1 / length) * covariance @ covariance + np.trace(covariance) / length * covariance
    quadratic = np.trace(moment @ matrix @ covariance @ matrix.T)
    return (np.trace(covariance) - 2 * np.trace(covariance @ covariance @ matrix) + quadratic) / 2


@pytest.mark.parametrize("length", [1, 5, 20, np.inf])
def test_the_loss_is_the_formula_of_the_second_moments(length):
    network = LinearAttention(3, 4, seed=0)
    loss = InContextRegression(COVARIANCE, length).loss(network)
    # The task sums squares, the formula adds and subtracts traces: they differ by rounding.
    np.testing.assert_allclose(loss, closed_form(COVARIANCE, length, network.matrix), rtol=1e-12)


@pytest.mark.slow
def test_the_loss_is_the_mean_over_sampled_prompts():
    network = LinearAttention(3, 4, seed=1, scale=0.7)
    inputs, targets = prompts(100_000, 5, seed=2)
    errors = np.sum((np.asarray(network(inputs)) - targets) ** 2, axis=1) / 2
    expected = float(InContextRegression(COVARIANCE, 5).loss(network))
    # Four standard errors of the mean, which are about one percent of it here.
    assert abs(errors.mean() - expected) < 4 * errors.std() / np.sqrt(len(errors))
    assert errors.std() / np.sqrt(len(errors)) < 0.02 * expected


def test_the_loss_is_the_mean_over_sampled_contexts_with_the_rest_in_closed_form():
    network = LinearAttention(3, 4, seed=1, scale=0.7)
    x = prompts(50_000, 5, seed=3)[0].reshape(50_000, 6, 4)[:, :-1, :-1]
    seen = np.einsum("sni,snj->sij", x, x) / 5
    # For a given context the expectation over β and the query is ½ ‖Σ̂ P Σ^½ − Σ^½‖².
    root = np.linalg.cholesky(COVARIANCE)
    losses = np.sum((seen @ network.matrix @ root - root) ** 2, axis=(1, 2)) / 2
    expected = float(InContextRegression(COVARIANCE, 5).loss(network))
    assert abs(losses.mean() - expected) < 4 * losses.std() / np.sqrt(len(losses))


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 1000), length=st.floats(1, 100), factor=st.floats(0.1, 10))
def test_the_loss_is_rotation_invariant_and_scales_with_the_covariance(seed, length, factor):
    draw = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    network = LinearAttention(3, 4, seed=seed)
    loss = float(InContextRegression(COVARIANCE, length).loss(network))
    rows = np.column_stack([network.v, network.k @ turn.T, network.q @ turn.T])
    turned = InContextRegression(turn @ COVARIANCE @ turn.T, length).loss(network.with_neurons(rows))
    np.testing.assert_allclose(turned, loss, rtol=1e-9)
    # In other units of x the matrix that makes the same predictions is divided by the factor.
    scaled = InContextRegression(factor * COVARIANCE, length).loss(network.weighted(np.full(4, 1 / factor)))
    np.testing.assert_allclose(scaled, factor * loss, rtol=1e-9)


def test_with_infinite_context_the_inverse_covariance_has_no_loss():
    inverse = np.linalg.inv(COVARIANCE)
    network = LinearAttention(3, 3).with_neurons(np.column_stack([np.ones(3), np.eye(3), inverse]))
    loss = float(InContextRegression(COVARIANCE, np.inf).loss(network))
    assert 0 <= loss < 1e-28  # a sum of squares of rounding errors


def test_it_says_what_a_record_needs_to_know():
    task = InContextRegression(COVARIANCE, np.inf)
    assert task.attributes()["task"] == task.name
    assert task.feature_names == ("x1", "x2", "x3")
    assert "infinitely many" in task.description[0]


BAD = [
    ({"covariance": np.zeros((2, 2))}, "covariance"),
    ({"covariance": [[1.0, 0.5], [0.0, 1.0]]}, "covariance"),
    ({"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "covariance"),
    ({"covariance": [-1.0, 1.0]}, "covariance"),
    ({"covariance": np.ones((2, 3))}, "covariance"),
    ({"covariance": [1.0, np.nan]}, "covariance"),
    ({"covariance": []}, "covariance"),
    ({"context_length": 0}, "context_length"),
    ({"context_length": -3}, "context_length"),
    ({"context_length": np.nan}, "context_length"),
]


@pytest.mark.parametrize(("bad", "argument"), BAD)
def test_bad_arguments_are_refused_by_name(bad, argument):
    good = {"covariance": [1.0, 0.5], "context_length": 4}
    with pytest.raises(InputError) as refusal:
        InContextRegression(**(good | bad))
    assert refusal.value.argument == argument


def test_a_network_of_another_size_is_refused():
    with pytest.raises(InputError, match="input dimension 3"):
        InContextRegression(COVARIANCE, 5).loss(LinearAttention(2, 2))
