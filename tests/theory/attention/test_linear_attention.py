from __future__ import annotations

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dynascope.errors import InputError
from dynascope.flows import GradientFlow, gradient_flow
from dynascope.networks.linear_attention import LinearAttention
from dynascope.results.steps_seen import crossing_times
from dynascope.tasks.in_context import InContextRegression
from dynascope.theory.attention.levels import attention_levels
from dynascope.theory.attention.linear_attention import linear_attention_staircase

VARIANCES = np.array([1.0, 0.7, 0.4])
HEADS = np.array([[np.sin(2.3 * i + 1.1 * i * j + 0.7 * j) for j in range(1, 8)] for i in range(1, 5)])


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def observed_times(network, task, levels, *, scale, duration, **options):
    times = np.linspace(0.0, duration, 20_000)
    run = gradient_flow(task, network, GradientFlow(duration=duration, save=times, **options), scale=scale)
    return crossing_times(times, run["loss"].to_numpy(), (levels[1:] + levels[:-1]) / 2)


def test_the_jumps_are_at_the_known_times():
    steps = linear_attention_staircase(VARIANCES, 20, scale=0.01, neurons=HEADS)
    np.testing.assert_allclose(steps.accelerated_times, [2.105095936, 4.552577272, 8.259929549], rtol=1e-9)
    assert steps.degree == 3
    np.testing.assert_allclose(np.abs(steps.features["input_feature"][1]), np.eye(3), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "jumps"),
    # By an independent integration with event detection, as scale · t.
    [(0.01, [2.091951, 4.526324, 8.455641]), (0.003, [2.101151, 4.547488, 8.288859])],
)
def test_gradient_flow_jumps_at_the_known_times(scale, jumps):
    network, task = LinearAttention(3, 4).with_neurons(HEADS), InContextRegression(VARIANCES, 20)
    steps = linear_attention_staircase(VARIANCES, 20, scale=scale, neurons=HEADS)
    found = observed_times(network, task, steps.levels, scale=scale, duration=9.5 / scale)
    # The curve is sampled every 5e-4/scale.
    np.testing.assert_allclose(scale * found, jumps, atol=2e-4)
    # The first time leaves out terms of order scale² in t, the later ones more, which falls as scale^1.5.
    np.testing.assert_allclose(steps.times[0], found[0], rtol=1e-4)
    np.testing.assert_allclose(steps.times[1:], found[1:], rtol=30 * scale**1.5)


@pytest.mark.slow
def test_the_correction_at_finite_scale_is_right_where_modes_are_far_apart():
    variances, scale = [1.0, 0.1, 0.0], 3e-3
    network, task = LinearAttention(3, 4, seed=2), InContextRegression(variances, 50)
    steps = linear_attention_staircase(variances, 50, scale=scale, neurons=network.neurons)
    found = observed_times(network, task, steps.levels, scale=scale, duration=1.2 * steps.times[-1])
    limit = steps.accelerated_times / scale
    # The corrections are a few units of t; a tenth of them is left by sampling and by the next order.
    assert np.all(np.abs(found - steps.times) < 0.2 * np.abs(found - limit) + steps.times[-1] / 20_000)


@pytest.mark.slow
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 10_000), factor=st.floats(0.1, 10))
def test_times_and_levels_do_not_depend_on_the_axes_and_scale_with_the_units(seed, factor):
    draw = np.random.default_rng(seed)
    turn, _ = np.linalg.qr(draw.normal(size=(3, 3)))
    rows = np.random.default_rng(seed).normal(size=(4, 7))
    plain = linear_attention_staircase(VARIANCES, 10, scale=1e-3, neurons=rows)
    turned = np.column_stack([rows[:, 0], rows[:, 1:4] @ turn.T, rows[:, 4:] @ turn.T])
    covariance = factor * (turn * VARIANCES) @ turn.T
    other = linear_attention_staircase(covariance, 10, scale=1e-3, neurons=turned)
    np.testing.assert_allclose(factor**2 * other.accelerated_times, plain.accelerated_times, rtol=1e-7)
    np.testing.assert_allclose(other.levels, factor * plain.levels, rtol=1e-10)
    overlaps = np.sum(other.features["input_feature"][1] * turn.T, axis=1)
    np.testing.assert_allclose(np.abs(overlaps), 1.0, rtol=1e-10)


def test_fewer_heads_than_modes_stop_early_and_say_so():
    steps = linear_attention_staircase(VARIANCES, 20, scale=1e-3, neurons=HEADS[:2])
    np.testing.assert_array_equal(steps.levels, attention_levels(VARIANCES, 20, 2))
    assert any("only 2 of 3 modes" in warning for warning in steps.warnings)


def test_equal_eigenvalues_give_equal_drops_in_orthogonal_directions_and_say_so():
    steps = linear_attention_staircase(0.5 * np.eye(3), 20, scale=1e-3, neurons=HEADS)
    np.testing.assert_allclose(np.diff(steps.levels), np.diff(steps.levels)[0], rtol=1e-12)
    directions = steps.features["input_feature"][1]
    np.testing.assert_allclose(directions @ directions.T, np.eye(3), atol=1e-12)
    assert any("eigenvalues are equal" in warning for warning in steps.warnings)


@pytest.mark.slow
def test_what_is_learned_of_equal_eigenvalues_is_what_was_predicted():
    variances, scale = np.array([0.8, 0.8]), 1e-3
    network, task = LinearAttention(2, 4, seed=1), InContextRegression(variances, 20)
    steps = linear_attention_staircase(variances, 20, scale=scale, neurons=network.neurons)
    between = steps.times.mean()
    _, trained = gradient_flow(task, network, GradientFlow(duration=between, save=2), scale=scale, return_networks=True)
    left, strengths, _ = np.linalg.svd(np.asarray(trained.matrix))
    assert strengths[1] < 0.02 * strengths[0]  # the second head is not yet active
    # At this scale the direction is that of the limit up to terms of order scale.
    assert abs(left[:, 0] @ steps.features["input_feature"][1][0]) > 1 - 1e-3


def test_directions_without_variance_are_not_learned():
    steps = linear_attention_staircase([1.0, 0.5, 0.0], 20, scale=1e-3)
    assert len(steps.times) == 2
    np.testing.assert_array_equal(steps.features["input_feature"][1][:, 2], 0.0)


@pytest.mark.slow
def test_modes_too_close_for_the_scale_are_called_slow():
    rows = LinearAttention(3, 8, seed=0).neurons
    close = linear_attention_staircase([1.0, 0.98, 0.3], 20, scale=1e-2, neurons=rows)
    apart = linear_attention_staircase([1.0, 0.5, 0.2], 20, scale=1e-4, neurons=rows)
    assert "mixture" in close.slow[1]
    assert not any(apart.slow)


def test_without_heads_the_times_are_those_of_aligned_ones():
    steps = linear_attention_staircase(VARIANCES, 20, scale=1e-3, heads=2)
    np.testing.assert_allclose(steps.accelerated_times, 1 / VARIANCES[:2] ** 2)
    assert all(steps.slow)
    assert any("lower bound" in warning for warning in steps.warnings)


@pytest.mark.slow
def test_the_normalised_flow_has_its_jumps_at_logarithmic_times():
    network, task = LinearAttention(2, 4, seed=0), InContextRegression(VARIANCES[:2], 20)
    steps = linear_attention_staircase(VARIANCES[:2], 20, scale=1e-5, heads=4, normalised=True)
    assert steps.normalised
    np.testing.assert_allclose(steps.times, np.sqrt(3) / VARIANCES[:2] ** 2 * np.log(1e5))
    near, far = (
        observed_times(network, task, steps.levels, scale=scale, duration=100.0, normalised=True)
        for scale in (1e-5, 1e-7)
    )
    # Corrections to the slope are powers of the scale; on other heads they were below 2e-3.
    np.testing.assert_allclose((far - near) / np.log(100), steps.accelerated_times, rtol=5e-3)


GOOD = {"covariance": [1.0, 0.5], "context_length": 10, "scale": 1e-3}


@pytest.mark.parametrize(
    ("bad", "argument"),
    [
        ({"context_length": 0.5}, "context_length"),
        ({"covariance": [1.0, -0.5]}, "covariance"),
        ({"covariance": [0.0, 0.0]}, "covariance"),
        ({"scale": 1.0}, "scale"),
        ({"scale": 0.0}, "scale"),
        ({"scale": np.nan}, "scale"),
        ({"neurons": np.ones((3, 4))}, "neurons"),
        ({"neurons": np.zeros((3, 5))}, "neurons"),
        ({"neurons": np.full((3, 5), np.nan)}, "neurons"),
    ],
)
def test_bad_arguments_are_refused_by_name(bad, argument):
    with pytest.raises(InputError) as refusal:
        linear_attention_staircase(**(GOOD | bad))
    assert refusal.value.argument == argument


def test_heads_without_drift_and_contradicting_counts_are_refused():
    resting = np.array([[0.0, 1.0, 0.0, 0.0, 1.0]])
    with pytest.raises(InputError, match="no head grows"):
        linear_attention_staircase(**GOOD, neurons=resting)
    with pytest.raises(InputError, match="both neurons and heads"):
        linear_attention_staircase(**GOOD, neurons=np.ones((2, 5)), heads=2)
    with pytest.raises(InputError, match="heads is 0"):
        linear_attention_staircase(**GOOD, heads=0)
