import jax
import jax.numpy as jnp
import numpy as np
import pytest

from dynascope.flows.classification_epochs import Epoch, augmented, evaluate
from dynascope.networks.mlp import MLP

DRAW = np.random.default_rng(0)


@pytest.mark.slow
def test_crops_are_windows_of_the_framed_image_at_every_place():
    image = DRAW.uniform(1, 2, size=(4, 5, 2)).astype(np.float32)
    images = jnp.asarray(np.broadcast_to(image, (300, 4, 5, 2)))
    found = np.asarray(augmented(images, jax.random.key(0), Epoch("squared", 1, 1, False)))
    framed = np.pad(image, ((1, 1), (1, 1), (0, 0)))
    windows = [framed[i : i + 4, j : j + 5] for i in range(3) for j in range(3)]
    counts = [int((found == window).all(axis=(1, 2, 3)).sum()) for window in windows]
    assert sum(counts) == 300
    # Each count is binomial with mean 33 and deviation 5.4; the seed is fixed.
    assert min(counts) > 10


def test_half_of_the_images_are_mirrored():
    images = jnp.asarray(DRAW.uniform(size=(400, 2, 3, 1)), jnp.float32)
    found = augmented(images, jax.random.key(1), Epoch("squared", 1, 0, True))
    same = np.asarray((found == images).all(axis=(1, 2, 3)))
    mirrored = np.asarray((found == images[:, :, ::-1]).all(axis=(1, 2, 3)))
    assert np.all(same ^ mirrored)
    assert 150 < same.sum() < 250  # five deviations of ten


def test_without_augmentation_images_stay_as_they_are():
    images = jnp.ones((2, 3))
    assert augmented(images, jax.random.key(0), Epoch("squared", 1, 0, False)) is images


def test_evaluation_covers_every_image_once():
    # More than one block, and not a whole number of them.
    x, y = DRAW.normal(size=(1203, 3)).astype(np.float32), DRAW.integers(4, size=1203).astype(np.int32)
    network = MLP((3, 4), seed=1)
    outputs = x @ network.weights[0]
    for loss, expected in (
        ("squared", 0.5 * np.sum((outputs - np.eye(4)[y]) ** 2, axis=1)),
        ("cross_entropy", np.log(np.exp(outputs).sum(axis=1)) - outputs[np.arange(1203), y]),
    ):
        value, accuracy = evaluate(network, (jnp.asarray(x), jnp.asarray(y)), loss)
        np.testing.assert_allclose(value, expected.mean(), rtol=1e-5)  # float32
        np.testing.assert_allclose(accuracy, (outputs.argmax(axis=1) == y).mean(), rtol=1e-6)
