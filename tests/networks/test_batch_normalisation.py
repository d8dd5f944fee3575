import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.errors import InputError
from dynascope.networks.batch_normalisation import BatchNormalisation, RunningStatistics, trained_weights

DRAW = np.random.default_rng(0)
X = DRAW.normal(1.5, 2.0, size=(5, 3, 2, 4))
STATISTICS = RunningStatistics(DRAW.normal(size=4), DRAW.uniform(1, 2, size=4))
LAYER = eqx.tree_at(
    lambda each: (each.gain, each.shift, each.statistics),
    BatchNormalisation(4),
    (DRAW.normal(size=4), DRAW.normal(size=4), STATISTICS),
)


def test_training_uses_the_statistics_of_the_batch():
    with jax.enable_x64(True):
        outputs, layer = LAYER.apply(jnp.asarray(X), training=True)
    mean, variance = X.mean(axis=(0, 1, 2)), X.var(axis=(0, 1, 2))
    np.testing.assert_allclose(outputs, LAYER.gain * (X - mean) / np.sqrt(variance + 1e-5) + LAYER.shift, rtol=1e-12)
    unbiased = X.reshape(-1, 4).var(axis=0, ddof=1)
    np.testing.assert_allclose(layer.statistics.mean, 0.9 * STATISTICS.mean + 0.1 * mean, rtol=1e-12)
    np.testing.assert_allclose(layer.statistics.variance, 0.9 * STATISTICS.variance + 0.1 * unbiased, rtol=1e-12)
    assert layer.gain is LAYER.gain


def test_evaluation_uses_the_running_statistics_and_keeps_them():
    with jax.enable_x64(True):
        outputs, layer = LAYER.apply(jnp.asarray(X), training=False)
    assert layer is LAYER
    expected = LAYER.gain * (X - STATISTICS.mean) / np.sqrt(STATISTICS.variance + 1e-5) + LAYER.shift
    np.testing.assert_allclose(outputs, expected, rtol=1e-12)


def test_running_statistics_of_equal_batches_converge_to_those_of_the_batch():
    with jax.enable_x64(True):
        layer = BatchNormalisation(4)
        for _ in range(100):
            layer = layer.apply(jnp.asarray(X), training=True)[1]
    # What is left of the start is 0.9^100 = 3e-5 of it.
    np.testing.assert_allclose(layer.statistics.mean, X.mean(axis=(0, 1, 2)), atol=1e-4)
    np.testing.assert_allclose(layer.statistics.variance, X.reshape(-1, 4).var(axis=0, ddof=1), atol=1e-3)


def test_no_gradient_reaches_the_running_statistics_in_evaluation():
    slope = jax.jit(jax.grad(lambda layer: jnp.sum(layer.apply(jnp.asarray(X), training=False)[0])))(LAYER)
    assert float(np.abs(slope.gain).min()) > 0
    assert not slope.statistics.mean.any()
    assert not slope.statistics.variance.any()


def test_no_gradient_comes_from_new_running_statistics():
    def total(x):
        statistics = LAYER.apply(x, training=True)[1].statistics
        return jnp.sum(statistics.mean + statistics.variance)

    assert not np.any(jax.jit(jax.grad(total))(X))


def test_weights_and_running_statistics_are_told_apart():
    weights = trained_weights({"one": LAYER, "name": "two", "three": np.ones(2)})
    assert weights["three"] is not None
    assert weights["name"] is None
    assert weights["one"].shift is LAYER.shift
    assert jax.tree.leaves(weights["one"].statistics) == []


def test_a_batch_of_one_value_has_no_variance():
    with pytest.raises(InputError, match="one value for each channel"):
        LAYER.apply(jnp.ones((1, 4)), training=True)
    assert LAYER.apply(jnp.ones((1, 4)), training=False)[0].shape == (1, 4)
