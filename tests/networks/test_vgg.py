import equinox as eqx
import jax
import numpy as np
import pytest

from dynascope.compilation import jit
from dynascope.errors import InputError
from dynascope.networks.batch_normalisation import RunningStatistics, trained_weights
from dynascope.networks.vgg import VGG16

DRAW = np.random.default_rng(0)
X = DRAW.normal(size=(3, 8, 9, 2))
# Compiles in a third of the time.


def shaken(network):
    """The network with random gains, shifts, biases and running statistics, all of them positive."""
    return jax.tree.map(lambda leaf: DRAW.uniform(0.5, 1.5, size=leaf.shape) if leaf.ndim == 1 else leaf, network)


NETWORK = shaken(VGG16((8, 9, 2), 3, width=2, hidden_widths=(5,), seed=1))
STAGES = (2, 2, 3, 3, 3)


def convolved(layer, x, training):
    """A convolution with its normalisation, written with NumPy."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    z = np.einsum("nhwcij,ijco->nhwo", windows, layer.kernel) + layer.bias
    norm = layer.normalisation
    if norm is None:
        return z
    mean, variance = norm.statistics.mean, norm.statistics.variance
    if training:
        mean, variance = z.mean(axis=(0, 1, 2)), z.var(axis=(0, 1, 2))
    return norm.gain * (z - mean) / np.sqrt(variance + 1e-5) + norm.shift


def pooled(x):
    rows, columns = (min(2, side) for side in x.shape[1:3])
    height, width = x.shape[1] // rows, x.shape[2] // columns
    x = x[:, : height * rows, : width * columns]
    return x.reshape(len(x), height, rows, width, columns, -1).max(axis=(2, 4))


def by_hand(network, x, training):
    layers = iter(network.convolutions)
    for count in STAGES:
        for _ in range(count):
            x = np.maximum(convolved(next(layers), x, training), 0)
        x = pooled(x)
    features = x.mean(axis=(1, 2))
    for weights, bias in zip(network.hidden, network.hidden_biases, strict=True):
        features = np.maximum(features @ weights + bias, 0)
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
def test_evaluation_is_convolutions_and_pooling(evaluated):
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
    assert len(before) == 13
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


@pytest.mark.slow
def test_without_normalisation_training_and_evaluation_agree():
    network = VGG16((8, 8), 3, width=1, batch_normalisation=False, seed=2)
    x = np.abs(X[:, :, :8, 0])
    both = jit(lambda network: (network(x.reshape(3, -1)), *network.train_step_outputs(x[..., None])))
    with jax.enable_x64(True):
        outputs, in_training, same = jax.device_get(both(network))
    np.testing.assert_allclose(outputs, by_hand(network, x[..., None], training=True)[1], rtol=1e-10)
    np.testing.assert_array_equal(outputs, in_training)
    assert eqx.tree_equal(same, network)


# The numbers of the variants for small images: ten classes with a linear layer alone, with batch normalisation and
# without, and a hundred classes with the hidden dense layers of the original.
@pytest.mark.parametrize(
    ("classes", "fields", "count"),
    [
        (10, {}, 14_728_266),
        (10, {"batch_normalisation": False}, 14_719_818),
        (100, {"hidden_widths": (4096, 4096)}, 34_015_396),
    ],
)
def test_the_full_size_has_the_known_number_of_weights(classes, fields, count, monkeypatch):
    class Blank(np.random.Generator):
        """Draws of any shape that take no memory."""

        def normal(self, loc=0.0, scale=1.0, size=None):
            return np.broadcast_to(np.zeros(()), size)

    monkeypatch.setattr(np.random, "default_rng", lambda seed: Blank(np.random.PCG64(seed)))
    weights = trained_weights(VGG16((32, 32, 3), classes, **fields))
    assert sum(leaf.size for leaf in jax.tree.leaves(weights)) == count


def test_a_seed_gives_the_same_weights_again():
    first, again, other = (VGG16((8, 8), 2, width=1, seed=seed) for seed in (1, 1, 2))
    assert eqx.tree_equal(first, again)
    assert not np.array_equal(first.classifier, other.classifier)


def test_epsilon_reaches_every_normalisation():
    network = VGG16((8, 8), 2, width=1, epsilon=0.0)
    assert [each.normalisation.epsilon for each in network.convolutions] == [0.0] * 13


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"image_shape": (8,)}, "image_shape"),
        ({"outputs": 0}, "outputs"),
        ({"width": 0}, "width"),
        ({"hidden_widths": (4, 0)}, "hidden_widths"),
        ({"epsilon": np.inf}, "epsilon"),
        ({"epsilon": -1.0, "batch_normalisation": False}, "epsilon"),
    ],
)
def test_bad_input_is_named(fields, argument):
    with pytest.raises(InputError) as error:
        VGG16(**{"image_shape": (8, 8), "outputs": 2, "width": 1, **fields})
    assert error.value.argument == argument


def test_a_network_that_cannot_fit_is_refused_with_the_bytes_it_would_need():
    for name, large in {
        "width": {"width": 10**6},
        "hidden_widths": {"hidden_widths": (10**9,)},
        "outputs": {"outputs": 10**12},
    }.items():
        with pytest.raises(InputError, match=r"arrays of .* GB") as caught:
            VGG16(**{"image_shape": (8, 8), "outputs": 2, "width": 2, **large})
        assert caught.value.argument == name
