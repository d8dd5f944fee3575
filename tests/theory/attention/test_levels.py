from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks.linear_attention import LinearAttention, MergedAttention
from dynascope.tasks.in_context import InContextRegression
from dynascope.theory.attention.levels import attention_levels, attention_modes, attention_utility, context_correlation

VARIANCES = np.array([1.0, 0.7, 0.4])


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize(
    ("length", "levels"),
    [
        (20, [1.05, 0.6170995671, 0.325432900433, 0.173051948052]),
        (5, [1.05, 0.741358024691, 0.546913580247, 0.458024691358]),
        (np.inf, [1.05, 0.55, 0.2, 0.0]),
    ],
)
def test_the_levels_are_the_known_ones(length, levels):
    np.testing.assert_allclose(attention_levels(VARIANCES, length), levels, atol=1e-10)  # ten digits are known
    np.testing.assert_array_equal(attention_levels(VARIANCES, length, 2), attention_levels(VARIANCES, length)[:3])


def test_the_levels_are_where_the_flow_rests():
    task = InContextRegression(VARIANCES, 20)
    levels, axes = attention_levels(VARIANCES, 20), np.eye(3)
    gains = 1.05 * VARIANCES + VARIANCES.sum() / 20
    network = LinearAttention(3, 3)
    loss = jit(jax.value_and_grad(lambda rows: task.loss(network.with_neurons(rows))))
    for learned in range(4):
        # Heads of zeros have learned nothing.
        rows = np.column_stack([1 / gains, axes, axes]) * (np.arange(3) < learned)[:, None]
        level, slope = loss(rows)
        np.testing.assert_allclose(level, levels[learned], rtol=1e-12)
        np.testing.assert_allclose(slope, 0.0, atol=1e-12)


def test_the_correlation_is_the_slope_of_the_loss_in_the_matrix():
    draw = np.random.default_rng(0)
    square = draw.normal(size=(3, 3))
    covariance, matrix = square @ square.T, draw.normal(size=(3, 3))
    task = InContextRegression(covariance, 7)
    merged = MergedAttention(3, 1).with_neurons(np.concatenate([[1.0], matrix.ravel()])[None])
    slope = jit(jax.grad(lambda rows: task.loss(merged.with_neurons(rows))))(np.asarray(merged.neurons))
    slope = np.asarray(slope)
    np.testing.assert_allclose(context_correlation(covariance, 7, matrix).ravel(), -slope[0, 1:], rtol=1e-10)


@pytest.mark.parametrize("at", [0.0, 1.0])
def test_the_utility_is_how_fast_a_head_lowers_the_loss(at):
    network, task = LinearAttention(3, 4, seed=3), InContextRegression(VARIANCES, 7)
    slope = np.asarray(jit(jax.grad(lambda c: task.loss(network.weighted(c))))(np.full(4, at)))
    correlation = context_correlation(VARIANCES, 7, at * network.matrix)
    np.testing.assert_allclose(attention_utility(network.neurons, correlation), -slope, rtol=1e-10)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_no_head_of_unit_norm_has_more_than_the_largest_utility(seed):
    rows = np.random.default_rng(seed).normal(size=(50, 7))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    best = np.array([[1, 1, 0, 0, 1, 0, 0]]) / np.sqrt(3)
    correlation = context_correlation(VARIANCES, 5)
    assert attention_utility(rows, correlation).max() <= 1 / (3 * np.sqrt(3))
    np.testing.assert_allclose(attention_utility(best, correlation), 1 / (3 * np.sqrt(3)), rtol=1e-12)


def test_the_modes_are_the_directions_that_carry_data_strongest_first():
    turn, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))
    modes = attention_modes((turn * [0.5, 0.0, 2.0]) @ turn.T, 4)
    np.testing.assert_allclose(modes.variances, [2.0, 0.5], rtol=1e-12)
    np.testing.assert_allclose(modes.gains, [1.25 * 2.0 + 2.5 / 4, 1.25 * 0.5 + 2.5 / 4], rtol=1e-12)
    np.testing.assert_allclose(np.abs(np.sum(modes.axes * turn[:, [2, 0]], axis=0)), 1.0, rtol=1e-12)
    assert np.all(modes.axes.max(axis=0) == np.abs(modes.axes).max(axis=0))


def test_the_levels_depend_on_the_order_in_which_modes_are_learned():
    modes = attention_modes(VARIANCES, 20)
    forth, back = modes.levels([0, 1, 2]), modes.levels([2, 1, 0])
    np.testing.assert_allclose(forth[[0, -1]], back[[0, -1]], rtol=1e-14)
    assert np.all(back[1:-1] > forth[1:-1])


@pytest.mark.parametrize(
    ("wrong", "argument"),
    [
        (lambda: attention_levels(VARIANCES, 0.5), "context_length"),
        (lambda: attention_levels([-1.0, 1.0], 5), "covariance"),
        (lambda: attention_levels(VARIANCES, 5, 0), "heads"),
        (lambda: context_correlation(VARIANCES, 5, np.eye(2)), "matrix"),
        (lambda: attention_utility(np.ones((2, 6)), np.eye(3)), "neurons"),
        (lambda: attention_utility(np.zeros((2, 7)), np.eye(3)), "neurons"),
    ],
)
def test_bad_arguments_are_refused_by_name(wrong, argument):
    with pytest.raises(InputError) as refusal:
        wrong()
    assert refusal.value.argument == argument
