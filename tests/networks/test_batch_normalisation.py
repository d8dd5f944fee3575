import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynascope.compilation import jit
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


EPSILONS = (0.0, 1e-5, 0.3)
# Its middle channel is constant; the mean of such values is not exactly their value.
FLAT = np.full((11, 3), 0.1) + np.outer(np.arange(11), [1, 0, 2])


def with_epsilon(epsilon):
    """The layer with another ε, and weights and statistics as they are."""
    other = BatchNormalisation(4, epsilon=epsilon)
    return eqx.tree_at(
        lambda each: (each.gain, each.shift, each.statistics), other, (LAYER.gain, LAYER.shift, STATISTICS)
    )


@functools.partial(jit, static_argnames="training")
def applied(layer, x, training):
    outputs, new = layer.apply(x, training=training)
    assert new.gain is layer.gain
    assert training or new is layer
    return outputs, new


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_training_uses_the_statistics_of_the_batch(epsilon):
    with jax.enable_x64(True):
        outputs, layer = applied(with_epsilon(epsilon), X, training=True)
    mean, variance = X.mean(axis=(0, 1, 2)), X.var(axis=(0, 1, 2))
    np.testing.assert_allclose(outputs, LAYER.gain * (X - mean) / np.sqrt(variance + epsilon) + LAYER.shift, rtol=1e-12)
    unbiased = X.reshape(-1, 4).var(axis=0, ddof=1)
    np.testing.assert_allclose(layer.statistics.mean, 0.9 * STATISTICS.mean + 0.1 * mean, rtol=1e-12)
    np.testing.assert_allclose(layer.statistics.variance, 0.9 * STATISTICS.variance + 0.1 * unbiased, rtol=1e-12)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_evaluation_uses_the_running_statistics_and_keeps_them(epsilon):
    with jax.enable_x64(True):
        outputs, _ = applied(with_epsilon(epsilon), X, training=False)
    expected = LAYER.gain * (X - STATISTICS.mean) / np.sqrt(STATISTICS.variance + epsilon) + LAYER.shift
    np.testing.assert_allclose(outputs, expected, rtol=1e-12)


def test_running_statistics_of_equal_batches_converge_to_those_of_the_batch():
    with jax.enable_x64(True):
        layer = BatchNormalisation(4)
        for _ in range(100):
            layer = applied(layer, X, training=True)[1]
    # What is left of the start is 0.9^100 = 3e-5 of it.
    np.testing.assert_allclose(layer.statistics.mean, X.mean(axis=(0, 1, 2)), atol=1e-4)
    np.testing.assert_allclose(layer.statistics.variance, X.reshape(-1, 4).var(axis=0, ddof=1), atol=1e-3)


def test_no_gradient_reaches_the_running_statistics_in_evaluation():
    slope = jit(jax.grad(lambda layer: jnp.sum(layer.apply(jnp.asarray(X), training=False)[0])))(LAYER)
    assert float(np.abs(slope.gain).min()) > 0
    assert not slope.statistics.mean.any()
    assert not slope.statistics.variance.any()


def test_no_gradient_comes_from_new_running_statistics():
    def total(x):
        statistics = LAYER.apply(x, training=True)[1].statistics
        return jnp.sum(statistics.mean + statistics.variance)

    assert not np.any(jit(jax.grad(total))(X))


def test_weights_and_running_statistics_are_told_apart():
    weights = trained_weights({"one": LAYER, "name": "two", "three": np.ones(2)})
    assert weights["three"] is not None
    assert weights["name"] is None
    assert weights["one"].shift is LAYER.shift
    assert jax.tree.leaves(weights["one"].statistics) == []


def test_a_batch_of_one_value_has_no_variance():
    with pytest.raises(InputError, match="only one value per channel"):
        LAYER.apply(jnp.ones((1, 4)), training=True)
    assert LAYER.apply(jnp.ones((1, 4)), training=False)[0].shape == (1, 4)


@given(st.floats(1e-100, 1e100))
def test_without_epsilon_the_units_of_the_inputs_do_not_matter(unit):
    layer = with_epsilon(0.0)
    with jax.enable_x64(True):
        plain, scaled, by_two = (applied(layer, each, training=True)[0] for each in (X, unit * X, 2.0**40 * X))
    np.testing.assert_allclose(scaled, plain, rtol=1e-11, atol=1e-12)  # differences from the mean cancel
    np.testing.assert_array_equal(by_two, plain)


@pytest.mark.parametrize("epsilon", EPSILONS[1:])  # PyTorch refuses zero
def test_pytorch_gives_the_same_outputs_and_statistics(epsilon):
    torch = pytest.importorskip("torch", reason="PyTorch is an optional extra")
    theirs = torch.nn.BatchNorm2d(4, eps=epsilon, dtype=torch.float64)
    ours = BatchNormalisation(4, epsilon=epsilon)
    channels_first = torch.from_numpy(np.moveaxis(X, -1, 1).copy())
    for training in (True, True, False):
        theirs.train(training)
        expected = theirs(channels_first).detach().numpy()
        with jax.enable_x64(True):
            outputs, ours = applied(ours, X, training=training)
        np.testing.assert_allclose(outputs, np.moveaxis(expected, 1, -1), rtol=1e-11, atol=1e-13)
        np.testing.assert_allclose(ours.statistics.mean, theirs.running_mean.numpy(), rtol=1e-12)
        np.testing.assert_allclose(ours.statistics.variance, theirs.running_var.numpy(), rtol=1e-12)


@pytest.mark.parametrize("wide", [False, True])
def test_without_epsilon_a_constant_channel_is_refused_where_it_is_known(wide):
    layer = BatchNormalisation(3, epsilon=0)
    still = eqx.tree_at(lambda each: each.statistics.variance, layer, np.array([1.0, 0.0, 1.0]))
    with jax.enable_x64(wide):
        for known, training in ((layer, True), (still, False)):
            with pytest.raises(InputError, match="variance of a channel is zero") as error:
                known.apply(jnp.asarray(FLAT), training=training)
            assert error.value.argument == "epsilon"
        # The statistics are those of arrays of NumPy, in double precision, at the start.
        assert np.isfinite(layer.apply(jnp.asarray(FLAT), training=False)[0]).all()
        assert np.isfinite(BatchNormalisation(3).apply(jnp.asarray(FLAT), training=True)[0]).all()


def test_without_epsilon_a_constant_channel_is_nan_where_it_is_traced():
    layer = BatchNormalisation(3, epsilon=0)
    still = eqx.tree_at(lambda each: each.statistics.variance, layer, np.array([1.0, 0.0, 1.0]))
    outputs, new = jit(lambda layer, x: layer.apply(x, training=True))(layer, FLAT)
    np.testing.assert_array_equal(np.isnan(outputs), [[False, True, False]] * len(FLAT))
    assert np.asarray(new.statistics.variance)[1] == np.float32(0.9)
    outputs = jit(lambda layer, x: layer.apply(x, training=False)[0])(still, FLAT)
    np.testing.assert_array_equal(np.isnan(outputs), [[False, True, False]] * len(FLAT))


def test_a_variance_that_the_precision_cannot_hold_is_refused_too():
    with pytest.raises(InputError, match="epsilon is 1e-300"):
        BatchNormalisation(3, epsilon=1e-300).apply(jnp.asarray(np.ones_like(FLAT)), training=True)
    small = 1e-30 * np.outer(np.arange(11), [1, 3, 2])
    with pytest.raises(InputError, match=r"epsilon is 0\.0"):
        BatchNormalisation(3, epsilon=0).apply(jnp.asarray(small, jnp.float32), training=True)


def test_the_gradient_without_epsilon_is_that_of_the_formula():
    gain = LAYER.gain

    def total(x):
        return jnp.sum(with_epsilon(0.0).apply(x, training=True)[0] ** 3)

    def by_hand(x):
        z = (x - x.mean(axis=(0, 1, 2))) / x.std(axis=(0, 1, 2))
        return ((gain * z + LAYER.shift) ** 3).sum()

    way, step = DRAW.normal(size=X.shape), 1e-6
    with jax.enable_x64(True):
        slope = float((jit(jax.grad(total))(X) * way).sum())
    # Differences of step h are exact to h² and rounding over h.
    assert (by_hand(X + step * way) - by_hand(X - step * way)) / (2 * step) == pytest.approx(slope, rel=1e-6)


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("epsilon", [-1e-5, np.inf, np.nan, "small", None])
def test_a_bad_epsilon_is_named(epsilon):
    with pytest.raises(InputError, match="choose a finite number of at least 0") as error:
        BatchNormalisation(2, epsilon=epsilon)
    assert error.value.argument == "epsilon"
    with pytest.raises(InputError, match="channels"):
        BatchNormalisation(0)
