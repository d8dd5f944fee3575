import equinox as eqx
import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks.batch_normalisation import BatchNormalisation, RunningStatistics, trained_weights
from dynascope.networks.residual import ResNet18

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(3, 8, 9, 2))
# Compiles in a third of the time.


def shaken(network):
    """The network with random gains, shifts, biases and running statistics, all of them positive."""
    return jax.tree.map(lambda leaf: DRAW.uniform(0.5, 1.5, size=leaf.shape) if leaf.ndim == 1 else leaf, network)


NETWORK = shaken(ResNet18((8, 9, 2), 3, width=2, seed=1))


def convolved(layer, x, training):
    """A convolution with its normalisation, written with NumPy."""
    side, stride = layer.kernel.shape[0], layer.stride
    around = (side - 1) // 2
    padded = np.pad(x, ((0, 0), (around, around), (around, around), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (side, side), axis=(1, 2))[:, ::stride, ::stride]
    z = np.einsum("nhwcij,ijco->nhwo", windows, layer.kernel)
    norm = layer.normalisation
    mean, variance = norm.statistics.mean, norm.statistics.variance
    if training:
        mean, variance = z.mean(axis=(0, 1, 2)), z.var(axis=(0, 1, 2))
    return norm.gain * (z - mean) / np.sqrt(variance + 1e-5) + norm.shift


def by_hand(network, x, training):
    h = np.maximum(convolved(network.stem, x, training), 0)
    for block in network.blocks:
        z = convolved(block.second, np.maximum(convolved(block.first, h, training), 0), training)
        h = np.maximum(z + (h if block.shortcut is None else convolved(block.shortcut, h, training)), 0)
    features = h.mean(axis=(1, 2))
    return features, features @ network.classifier + network.classifier_bias


@pytest.fixture(scope="module")
def trained():
    """Outputs in training, the network after it, and the gradient of Σ (outputs)²."""

    def total(network):
        outputs, new = network.train_step_outputs(X)
        return (outputs**2).sum(), (outputs, new)

    with jax.enable_x64(True):
        (_, (outputs, new)), gradient = jit(jax.value_and_grad(total, has_aux=True))(NETWORK)
        return np.asarray(outputs), *jax.device_get((new, gradient))


@pytest.fixture(scope="module")
def evaluated():
    with jax.enable_x64(True):
        both = jit(lambda network, x: (network.features(x), network(x)))
        return [jax.device_get(both(NETWORK, x)) for x in (X.reshape(3, -1), X[[1, 0, 0]].reshape(3, -1))]


@pytest.mark.slow
def test_evaluation_is_convolutions_with_shortcuts(evaluated):
    for got, expected in zip(evaluated[0], by_hand(NETWORK, X, training=False), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_a_sample_in_evaluation_does_not_depend_on_its_batch(evaluated):
    np.testing.assert_allclose(evaluated[1][1][0], evaluated[0][1][1], rtol=1e-12)


@pytest.mark.slow
def test_training_uses_the_statistics_of_the_batch(trained):
    np.testing.assert_allclose(trained[0], by_hand(NETWORK, X, training=True)[1], rtol=1e-9)


@pytest.mark.slow
def test_training_moves_every_running_statistic_and_no_weight(trained):
    assert eqx.tree_equal(trained_weights(NETWORK), trained_weights(trained[1]))
    before, after = (
        [part for part in jax.tree.leaves(network, is_leaf=is_statistics) if is_statistics(part)]
        for network in (NETWORK, trained[1])
    )
    assert len(before) == 1 + 2 * 8 + 3
    for old, new in zip(before, after, strict=True):
        assert np.all(old.mean != new.mean)
        assert np.all(old.variance != new.variance)


def is_statistics(part):
    return isinstance(part, RunningStatistics)


@pytest.mark.slow
def test_the_gradient_reaches_every_weight_and_is_the_slope(trained):
    weights, gradient = trained_weights(NETWORK), trained_weights(trained[2])
    assert all(np.abs(leaf).max() > 0 for leaf in jax.tree.leaves(gradient))
    direction = jax.tree.map(lambda leaf: DRAW.normal(size=leaf.shape), weights)
    step = 1e-6

    def moved(sign):
        there = jax.tree.map(lambda leaf, way: leaf + sign * step * way, weights, direction)
        return (by_hand(eqx.combine(there, NETWORK), X, training=True)[1] ** 2).sum()

    slope = sum(jax.tree.leaves(jax.tree.map(lambda a, b: float((a * b).sum()), gradient, direction)))
    # Differences of step h are exact to h² and rounding over h.
    assert (moved(1) - moved(-1)) / (2 * step) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize(
    ("image_shape", "classes", "count"),
    [((32, 32, 3), 10, 11_173_962), ((32, 32, 3), 100, 11_220_132), ((28, 28), 10, 11_172_810)],
)
def test_the_full_size_has_the_known_number_of_weights(image_shape, classes, count, monkeypatch):
    class Blank(np.random.Generator):
        """Draws of any shape that take no memory."""

        def normal(self, loc=0.0, scale=1.0, size=None):
            return np.broadcast_to(np.zeros(()), size)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Blank(np.random.PCG64(seed)))
    weights = trained_weights(ResNet18(image_shape, classes))
    assert sum(leaf.size for leaf in jax.tree.leaves(weights)) == count


def test_a_seed_gives_the_same_weights_again():
    first, again, other = (ResNet18((8, 8), 2, width=1, seed=seed) for seed in (1, 1, 2))
    assert eqx.tree_equal(first, again)
    assert not np.array_equal(first.stem.kernel, other.stem.kernel)


def test_epsilon_reaches_every_normalisation():
    network = ResNet18((8, 8), 2, width=1, epsilon=0.0)
    found = [
        part.epsilon
        for part in jax.tree.leaves(network, is_leaf=lambda part: isinstance(part, BatchNormalisation))
        if isinstance(part, BatchNormalisation)
    ]
    assert found == [0.0] * (1 + 2 * 8 + 3)


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"image_shape": (8,)}, "image_shape"),
        ({"outputs": 0}, "outputs"),
        ({"width": 0}, "width"),
        ({"epsilon": -1.0}, "epsilon"),
    ],
)
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        ResNet18(**{"image_shape": (8, 8), "outputs": 2, "width": 1, **fields})
    assert error.value.argument == argument


def test_a_network_that_cannot_fit_is_refused_with_the_bytes_it_would_need():
    for name, large in {"width": {"width": 10**6}, "outputs": {"outputs": 10**12}}.items():
        with pytest.raises(InputError, match=r"arrays of .* GB") as caught:
            ResNet18(**{"image_shape": (8, 8), "outputs": 2, "width": 2, **large})
        assert caught.value.argument == name
