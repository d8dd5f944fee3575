"""Training of image classifiers and of MLPs on arbitrary targets, with momentum and a decaying learning rate."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import numpy as np
import optax

from dynascope.networks import MLP, VGG16, Convolutional, ResNet18
from dynascope.probes.last_layer import LastLayer, last_layer
from dynascope.tasks import CropAndFlip, Labelled, Task
from dynascope.tasks.data.labelled_images import LabelledImages
from dynascope.training.batches import Batches
from dynascope.training.descend import Descent, descend
from dynascope.training.optimizers import decayed, falling
from dynascope.validation import require

__all__ = [
    "REGRESSIONS",
    "ClassifierRun",
    "Trained",
    "train_last_layers",
    "train_on_labels",
    "train_on_targets",
    "train_regression",
]

REGRESSIONS = ("scalar target", "rich", "downscaled target", "last layer only")
_DOWNSCALED = 100.0

_MOMENTUM, _FALLS_IN = 0.9, 0.3  # the learning rate falls to a fifth after every 30 % of training
_FALLS = np.arange(1, 4)


@dataclasses.dataclass(frozen=True)
class ClassifierRun:
    """The architecture and the training of a classifier.

    Attributes:
        network: "mlp", "convolutional", "residual", "vgg" or "vgg-normalised" (with batch normalisation).
        width: Number of features of an MLP (whose first hidden layer is twice as wide) or a convolutional network;
            number of channels in the first stage of the other networks.
        samples: Number of training images.
        learning_rate: Initial learning rate of SGD with momentum 0.9.
        weight_decay: λ in the term ½ λ‖θ‖² of the loss.
        random_labels: Fraction of the training labels drawn at random.
    """

    network: str
    width: int
    samples: int
    learning_rate: float
    weight_decay: float = 0.0
    random_labels: float = 0.0


class Trained(NamedTuple):
    """The last layer of a trained network on the training samples, and the test accuracy.

    Attributes:
        layer: Features and outputs of the last layer.
        targets: Training targets, shape (n, c).
        accuracy: Accuracy on the test images; NaN for a regression.
    """

    layer: LastLayer
    targets: np.ndarray
    accuracy: float


def train_on_labels(
    run: ClassifierRun,
    data: LabelledImages,
    *,
    epochs: int,
    batch_size: int,
    loss: Literal["cross_entropy", "squared"],
    augment: bool,
    seed: int,
) -> Trained:
    """Train one network as a classifier with a decaying learning rate, and compute its features.

    With `augment`, large convolutional networks are trained on randomly cropped and mirrored images.
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
        Labelled(x, labels, names),
        jax.tree.map(lambda leaf: leaf.astype(np.float32) if eqx.is_inexact_array(leaf) else leaf, start),
        Descent(
            decayed(optax.sgd, np.float32(run.weight_decay), momentum=_MOMENTUM),
            learning_rate=falling(np.float32(run.learning_rate), falls.astype(np.int32)),
            epochs=epochs,
            loss=loss,
            batches=Batches(size, augmentation=CropAndFlip() if augment and large else None),
            save=[epochs],
            test=Labelled(test, data.test_labels, names),
        ),
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
    """Train MLPs with all seeds in one program, on arbitrary targets with squared loss and a decaying learning rate.

    Without hidden widths, a single linear layer is trained on the inputs.
    """
    size = min(batch_size, len(inputs))
    falls = np.unique(np.rint(_FALLS_IN * (epochs * (len(inputs) // size)) * _FALLS))
    networks = [MLP((inputs.shape[1], *hidden_widths, targets.shape[1]), seed=seed) for seed in range(seeds)]
    _, ends = descend(
        Task(inputs, targets),
        networks,
        Descent(
            decayed(optax.sgd, np.float64(0), momentum=_MOMENTUM),
            learning_rate=falling(np.float64(learning_rate), falls.astype(np.int32)),
            epochs=epochs,
            batches=size,
            save=[epochs],
        ),
        return_networks=True,
    )
    return [
        _trained(jax.tree.map(lambda leaf, seed=seed: np.asarray(leaf)[seed], ends), inputs, targets, np.nan)
        for seed in range(seeds)
    ]


def train_last_layers(
    inputs: np.ndarray, targets: np.ndarray, hidden_widths: Sequence[int], *, seeds: int, **options: Any
) -> list[Trained]:
    """Train only the last layers of MLPs with the given hidden widths; the options are those of `train_on_targets`."""
    frozen = [MLP((inputs.shape[1], *hidden_widths, 1), seed=seed).features(inputs) for seed in range(seeds)]
    return [
        found for each in frozen for found in train_on_targets(np.asarray(each, float), targets, (), seeds=1, **options)
    ]


def train_regression(kind: str, data: LabelledImages, hidden: Sequence[int], **options: Any) -> list[Trained]:
    """Train MLPs on scalar, one-hot or scaled-down targets, or train only their last layer on one-hot targets.

    Args:
        kind: One of `REGRESSIONS`.
        data: The images.
        hidden: Widths of the hidden layers.
        **options: Options of `train_on_targets`.
    """
    inputs, targets = data.inputs.reshape(len(data.inputs), -1), np.eye(data.classes)[data.labels]
    if kind == "last layer only":
        return train_last_layers(inputs, targets, hidden, **options)
    numbers = data.labels[:, None] / (data.classes - 1)
    scaled = {"rich": targets, "downscaled target": targets / _DOWNSCALED, "scalar target": numbers}
    return train_on_targets(inputs, scaled[kind], hidden, **options)


def _trained(network: Any, inputs: np.ndarray, targets: np.ndarray, accuracy: float) -> Trained:
    return Trained(last_layer(network, inputs), targets, accuracy)


def _network(run: ClassifierRun, data: LabelledImages, seed: int) -> Any:
    shape = height, width, channels = data.inputs.shape[1:]
    if run.network == "mlp":
        widths = (math.prod(shape), 2 * run.width, run.width, data.classes)
        return MLP(widths, scale=2**0.5, seed=seed)
    if run.network == "convolutional":
        require(
            channels == 1,
            f"network is convolutional, which takes images with one channel, but the images have {channels} channels",
            argument="network",
            value=run.network,
            remedy='choose "residual" for images with several channels',
        )
        return Convolutional((height, width), data.classes, width=run.width, scale=2**0.5, seed=seed)
    if run.network == "residual":
        return ResNet18(shape, data.classes, width=run.width, seed=seed)
    return VGG16(shape, data.classes, width=run.width, batch_normalisation=run.network == "vgg-normalised", seed=seed)
