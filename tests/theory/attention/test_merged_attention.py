from __future__ import annotations

import jax
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.flows import GradientFlow, gradient_flow
from dynascope.networks.linear_attention import MergedAttention
from dynascope.results.steps_seen import crossing_times
from dynascope.tasks.in_context import InContextRegression
from dynascope.theory.attention.levels import attention_levels
from dynascope.theory.attention.merged_attention import merged_attention_staircase

VARIANCES = np.array([1.0, 0.7, 0.4])


@pytest.fixture(autouse=True, scope="module")
def _float64():
    with jax.enable_x64(True):
        yield


def observed_times(network, task, levels, *, scale, duration, **options):
    times = np.linspace(0.0, duration, 20_000)
    run = gradient_flow(task, network, GradientFlow(duration=duration, save=times, **options), scale=scale)
    return crossing_times(times, run["loss"].to_numpy(), (levels[1:] + levels[:-1]) / 2)


@pytest.mark.slow
def test_merged_attention_has_one_drop_at_the_predicted_time():
    network, task = MergedAttention(3, 4, seed=0), InContextRegression(VARIANCES, 20)
    errors = []
    for scale in (1e-2, 1e-4):
        steps = merged_attention_staircase(VARIANCES, 20, scale=scale, neurons=network.neurons)
        found = observed_times(network, task, steps.levels, scale=scale, duration=1.5 * steps.times[0])
        errors.append(abs(found[0] - steps.times[0]))
    np.testing.assert_allclose(steps.accelerated_times, [1 / np.linalg.norm(VARIANCES**2)], rtol=1e-14)
    np.testing.assert_allclose(steps.levels, attention_levels(VARIANCES, 20)[[0, -1]], rtol=1e-14)
    # The heads that do not grow matter at order scale in t; the curve is sampled every 7e-4.
    assert errors[0] < 0.02
    assert errors[1] < 1e-3


def test_merged_attention_of_one_mode_follows_its_logistic_equation():
    # With w = Q, P = w², P' = 2 λ² P (1 − γ P): half the drop is at γP = 1 − √½, reached from γ α².
    scale, variance, length = 1e-5, 0.6, 10.0
    gain = 1.2 * variance
    x, start = 1 - np.sqrt(0.5), gain * scale**2
    exact = np.log(x / (1 - x) / start * (1 - start)) / (2 * variance**2)
    steps = merged_attention_staircase([variance], length, scale=scale)
    np.testing.assert_allclose(steps.times, [exact], rtol=1e-8)


@pytest.mark.parametrize("size", [1e-74, 1e-30, 1e30, 1e74])
def test_covariances_of_any_size_have_the_same_drop_from_the_same_start(size):
    one = merged_attention_staircase(VARIANCES, 20, scale=1e-5)
    # What the heads become is smaller by a root of the size, and so is the same start nearer to it.
    other = merged_attention_staircase(size * VARIANCES, 20, scale=1e-5)
    rate = np.linalg.norm(VARIANCES**2)
    np.testing.assert_allclose(other.times * size * size, one.times - np.log(size) / (2 * rate), rtol=1e-8)
    np.testing.assert_allclose(other.levels / size, one.levels, rtol=1e-12)


GOOD = {"covariance": [1.0, 0.5], "context_length": 10, "scale": 1e-3}


@pytest.mark.parametrize(
    ("bad", "argument"),
    [
        ({"context_length": 0.5}, "context_length"),
        ({"covariance": [1.0, -0.5]}, "covariance"),
        ({"covariance": [0.0, 0.0]}, "covariance"),
        ({"covariance": [1e80, 1e80]}, "covariance"),
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
        merged_attention_staircase(**(GOOD | bad))
    assert refusal.value.argument == argument
