"""Training runs whose features are measured: networks on labelled images, or on any targets."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from dynascope.arguments import require, require_count, require_seed
from dynascope.compilation import filter_jit
from dynascope.flows import descend
from dynascope.flows.steps.decay import decayed, falling
from dynascope.networks import MLP, VGG16, Convolutional, ResNet18
from dynascope.tasks import CropAndFlip, Labelled, Task, digits, read_images

__all__ = ["FeatureRun", "LabelledImages", "Trained", "labelled_images", "train_on_labels", "train_on_targets"]

_DIGITS = (8, 8, 1)
_MOMENTUM, _FALLS_IN = 0.9, 0.3  # the rate falls to a fifth after each three tenths of the training
_FALLS = np.arange(1, 4)
_TOGETHER = 500  # images at a time when features are taken


class LabelledImages(NamedTuple):
    """Images of float32 with labels, for training and for testing.

    Attributes:
        inputs: Shape (n, height, width, channels).
        labels: Shape (n,).
        test_inputs: Shape (m, height, width, channels).
        test_labels: Shape (m,).
        classes: Number of classes.
        name: Name of the data.
        description: What was done to them, one sentence each.
    """

    inputs: np.ndarray
    labels: np.ndarray
    test_inputs: np.ndarray
    test_labels: np.ndarray
    classes: int
    name: str
    description: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class FeatureRun:
    """What is trained as a classifier, and how.

    Attributes:
        network: "mlp", "convolutional", "residual", "vgg" or "vgg-normalised" (with batch normalisation).
        width: Number of features of an MLP, whose first hidden layer is twice as wide, and of a convolutional network;
            channels of the first stage of the others.
        samples: Number of training images.
        learning_rate: Learning rate at the start, of descent with momentum 0.9.
        weight_decay: Coefficient λ of ½ λ‖θ‖².
        random_labels: Fraction of the training labels that are drawn at random.
    """

    network: str
    width: int
    samples: int
    learning_rate: float
    weight_decay: float = 0.0
    random_labels: float = 0.0


class Trained(NamedTuple):
    """What is measured after training, on the training samples unless said otherwise.

    Attributes:
        features: Inputs of the last layer, shape (n, p).
        outputs: Outputs of the network, shape (n, c).
        targets: What they were trained on, shape (n, c).
        accuracy: Accuracy on the test images; NaN where there are no labels.
    """

    features: np.ndarray
    outputs: np.ndarray
    targets: np.ndarray
    accuracy: float


def labelled_images(data: str, samples: int, test_samples: int, seed: int) -> LabelledImages:
    """Handwritten digits, or the user's images; those without a test part are split.

    Args:
        data: "digits", or the path of images that `tasks.read_images` reads.
        samples: Number of training images.
        test_samples: Largest number of test images.
        seed: Seed of the draw.

    Raises:
        InputError: There are not that many images, or none at the path.
    """
    require_count(least=2, samples=samples, test_samples=test_samples)
    require_seed(seed)
    if data == "digits":
        task, test = digits(), None
        pixels, labels = task.inputs.reshape(-1, *_DIGITS), task.targets.argmax(axis=1)
        name, description, classes = task.name, task.description, task.output_dimension
    else:
        images = read_images(data).scaled("standardised")
        pixels, labels, test = images.pixels, images.labels, images.test
        name, description, classes = images.name, images.description, len(images.class_names)
    most = len(pixels) - 2 * (test is None)
    require(
        samples <= most,
        f"samples is {samples} and there are {len(pixels)} images",
        argument="samples",
        value=samples,
        remedy=f"choose at most {most}" + (", so that some are left for testing" if test is None else ""),
    )
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(pixels))
    kept, rest = order[:samples], order[samples:]
    test_pixels, test_labels = pixels, labels
    if test is not None:
        test_pixels, test_labels, rest = test.pixels, test.labels, draw.permutation(len(test.pixels))
    rest = rest[:test_samples]
    sentence = f"{samples} images are trained on and {len(rest)} others are tested on, drawn with the seed {seed}."
    return LabelledImages(
        np.asarray(pixels[kept], np.float32),
        labels[kept],
        np.asarray(test_pixels[rest], np.float32),
        test_labels[rest],
        classes,
        name,
        (*description, sentence),
    )


def train_on_labels(
    run: FeatureRun,
    data: LabelledImages,
    *,
    epochs: int,
    batch_size: int,
    loss: Literal["cross_entropy", "squared"],
    augment: bool,
    seed: int,
) -> Trained:
    """Train one network as a classifier, with a learning rate that falls, and take its features.

    Images are cropped and mirrored at random if `augment` is true and the network is a large convolutional one.
    """
    large = run.network not in ("mlp", "convolutional")
    x, test = (
        each if large else each.reshape(len(each), -1) for each in (data.inputs[: run.samples], data.test_inputs)
    )
    labels, draw = data.labels[: run.samples].copy(), np.random.default_rng([seed, 1])
    random = draw.random(len(labels)) < run.random_labels
    labels[random] = draw.integers(data.classes, size=int(random.sum()))
    size, start = min(batch_size, len(x)), _network(run, data, seed)
    falls = math.ceil(_FALLS_IN * epochs) * (len(x) // size) * _FALLS
    names = tuple(f"class {label}" for label in range(data.classes))
    record, network = descend(
        jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, start),
        Labelled(x, labels, names),
        epochs=epochs,
        learning_rate=falling(np.float32(run.learning_rate), falls.astype(np.int32)),
        optimizer=decayed(optax.sgd, np.float32(run.weight_decay), momentum=_MOMENTUM),
        loss=loss,
        batch_size=size,
        augmentation=CropAndFlip() if augment and large else None,
        test=Labelled(test, data.test_labels, names),
        record_epochs=[epochs],
        seed=seed,
        return_networks=True,
    )
    return _trained(network, x, np.eye(data.classes)[labels], float(record["test_accuracy"][-1]))


def train_on_targets(
    inputs: np.ndarray,
    targets: np.ndarray,
    hidden_widths: Sequence[int],
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seeds: int,
) -> list[Trained]:
    """Train MLPs on any targets by squared loss, all seeds in one program, with a learning rate that falls.

    Without hidden widths only a last layer is trained, on the inputs as features.
    """
    size = min(batch_size, len(inputs))
    falls = np.unique(np.rint(_FALLS_IN * (epochs * (len(inputs) // size)) * _FALLS))
    networks = [MLP((inputs.shape[1], *hidden_widths, targets.shape[1]), seed=seed) for seed in range(seeds)]
    _, ends = descend(
        networks,
        Task(inputs, targets),
        epochs=epochs,
        learning_rate=falling(np.float64(learning_rate), falls.astype(np.int32)),
        optimizer=decayed(optax.sgd, np.float64(0), momentum=_MOMENTUM),
        batch_size=size,
        record_epochs=[epochs],
        return_networks=True,
    )
    return [
        _trained(jax.tree.map(lambda leaf, seed=seed: np.asarray(leaf)[seed], ends), inputs, targets, np.nan)
        for seed in range(seeds)
    ]


def _trained(network: Any, inputs: np.ndarray, targets: np.ndarray, accuracy: float) -> Trained:
    batches = [inputs[i : i + _TOGETHER] for i in range(0, len(inputs), _TOGETHER)]
    with jax.enable_x64(True):
        features = np.concatenate([np.asarray(_features(network, each), np.float64) for each in batches])
    # Outputs from these very features, so that rounding does not take them out of their span.
    outputs = features @ np.asarray(network.classifier, float) + np.asarray(network.classifier_bias, float)
    return Trained(features, outputs, targets, accuracy)


@filter_jit
def _features(network: Any, inputs: Any) -> Any:
    return network.features(inputs)


def _network(run: FeatureRun, data: LabelledImages, seed: int) -> Any:
    shape = height, width, channels = data.inputs.shape[1:]
    if run.network == "mlp":
        widths = (math.prod(shape), 2 * run.width, run.width, data.classes)
        return MLP(widths, scale=2**0.5, seed=seed)
    if run.network == "convolutional":
        require(
            channels == 1,
            f"images have {channels} channels",
            argument="network",
            value=run.network,
            remedy="choose residual for images of several channels",
        )
        return Convolutional((height, width), data.classes, width=run.width, scale=2**0.5, seed=seed)
    if run.network == "residual":
        return ResNet18(shape, data.classes, width=run.width, seed=seed)
    return VGG16(shape, data.classes, width=run.width, batch_normalisation=run.network == "vgg-normalised", seed=seed)
