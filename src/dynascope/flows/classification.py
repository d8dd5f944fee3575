"""Training classifiers at the scale of MNIST and CIFAR: descent with momentum, one compiled program for each epoch."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
import xarray as xr
from jax import Array
from jaxtyping import Float, Int

from dynascope.arguments import require, require_between, require_choice, require_count, require_positive, require_seed
from dynascope.errors import DivergenceError
from dynascope.flows.classification_epochs import LOSSES, ClassificationLoss, Epoch, at_rest, evaluate, train_epoch
from dynascope.flows.recorded import recorded_steps
from dynascope.protocols import Network
from dynascope.record import make_record

__all__ = ["train_classifier"]

_OWN = ("epoch", "time", "loss", "accuracy", "test_loss", "test_accuracy")
_FIRST = {"mode": 1, "layer": 1}  # what is counted from one

Probe = Callable[[Any], Mapping[str, tuple[Sequence[str], Any]]]


def train_classifier(
    network: Network,
    images: Float[np.ndarray, "n ..."],
    labels: Int[np.ndarray, " n"],
    *,
    epochs: int,
    learning_rate: float,
    momentum: float = 0.9,
    weight_decay: float = 0.0,
    rate_factor: float = 1.0,
    rate_period: int | None = None,
    loss: ClassificationLoss = "cross_entropy",
    batch_size: int = 128,
    crop_padding: int = 0,
    flip: bool = False,
    test_images: Float[np.ndarray, "m ..."] | None = None,
    test_labels: Int[np.ndarray, " m"] | None = None,
    record_epochs: Sequence[int] | np.ndarray | None = None,
    probe: Probe | None = None,
    seed: int = 0,
) -> tuple[xr.Dataset, Any]:
    """Train a classifier by stochastic gradient descent with momentum, in float32, on a CPU or a GPU.

    A step is v ← m v + ∇L(θ) + λ θ and θ ← θ − η v, with L the mean over a batch, and η = η₀ γ^⌊epoch/period⌋. Running
    statistics of batch normalisation are no part of θ. The data are shuffled anew for each epoch; what does not fill a
    batch at its end is left out. All images are held in the memory of the device.

    What is recorded is measured in evaluation, on images that are not augmented.

    Args:
        network: An equinox module, a function of a batch of images with outputs (n, c). If it has a method
            `train_step_outputs`, from a batch to (outputs, new network), that is used in training.
        images: Scaled images, shape (n, height, width, channels) or flat.
        labels: Class labels from 0, shape (n,).
        epochs: Number of passes over the data.
        learning_rate: η₀.
        momentum: m, from 0 to below 1.
        weight_decay: λ, the coefficient of ½ λ‖θ‖², for all weights, biases and gains.
        rate_factor: γ.
        rate_period: Epochs after which the rate is multiplied by γ again; None for a constant rate.
        loss: "cross_entropy" with the softmax of the outputs, or "squared", ½‖f(x) − e_y‖².
        batch_size: Images in a step.
        crop_padding: Zeros put around each image before it is cropped to its size at a random place; 0 for no crop.
        flip: Whether to mirror each image, left to right, with probability one half.
        test_images: Further images on which loss and accuracy are measured.
        test_labels: Their labels.
        record_epochs: Epochs after which to record, 0 for before training; None for all.
        probe: Further quantities to record: a function of the network with the result {name: (names of the axes of the
            value, value)}, such as a probe of its features. A value may have another length each time; what it lacks to
            the longest is NaN.
        seed: Seed of the batches and the augmentation.

    Returns:
        The record and the trained network, with weights of float32. The record holds `loss`, `accuracy`, `test_loss`,
        `test_accuracy`, what the probe gives, `epoch`, and `time`, the sum of all rates so far, along `step`.

    Raises:
        InputError: An argument is outside its domain.
        DivergenceError: The loss left the finite numbers.

    References:
        K. He et al., arXiv:1512.03385, section 4.2, for this procedure on CIFAR-10, with m = 0.9, λ = 10⁻⁴, η₀ = 0.1,
        batches of 128, crop_padding = 4 and flip.

    Example:
        >>> from dynascope.networks.mlp import MLP
        >>> draw = np.random.default_rng(0)
        >>> labels = np.arange(64) % 2
        >>> images = draw.normal(size=(64, 5)).astype(np.float32) + 4 * labels[:, None]
        >>> record, network = train_classifier(
        ...     MLP((5, 8, 2)), images, labels, epochs=20, learning_rate=0.05, batch_size=16, record_epochs=[0, 20]
        ... )
        >>> record.step.to_numpy(), float(record.accuracy[-1])
        (array([ 0, 80]), 1.0)
    """
    require_count(epochs=epochs, **({} if rate_period is None else {"rate_period": rate_period}))
    require_positive(learning_rate=learning_rate, rate_factor=rate_factor)
    require_between(0, 1, open_above=True, momentum=momentum)
    require_between(0, math.inf, weight_decay=weight_decay)
    require_seed(seed)
    data = _checked("images", images, "labels", labels)
    held_out = None
    if test_images is not None or test_labels is not None:
        held_out = _checked("test_images", test_images, "test_labels", test_labels)
    settings = _epoch(loss, batch_size, crop_padding, flip, data[0])
    every = range(epochs + 1) if record_epochs is None else record_epochs
    recorded = recorded_steps("record_epochs", every, epochs)
    rates = learning_rate * rate_factor ** (np.arange(epochs) // (rate_period or epochs))
    steps = len(data[0]) // batch_size
    times = steps * np.concatenate([[0.0], np.cumsum(rates)])

    # In an x64 mode of the caller, random numbers, and then all else, would be of float64.
    with jax.enable_x64(False):
        network = jax.tree.map(
            lambda leaf: np.asarray(leaf, np.float32) if eqx.is_inexact_array(leaf) else leaf, network
        )
        _check_outputs(network, data, "labels")
        if held_out is not None:
            _check_outputs(network, held_out, "test_labels")
        data, held_out = jax.device_put((data, held_out))
        constants = np.float32(momentum), np.float32(weight_decay)
        state = at_rest(network, constants)
        found = []
        for epoch in range(epochs + 1):
            if epoch > 0:
                rate, place = np.float32(rates[epoch - 1]), (np.asarray(seed), np.asarray(epoch))
                network, state, mean = train_epoch(network, state, data, rate, constants, place, settings)
                _raise_if_diverged(mean, epoch, times)
            if epoch in recorded:
                found.append(_measured(network, data, held_out, settings, probe))
                _raise_if_diverged(found[-1]["loss"][1], epoch, times)
        network = jax.tree.map(lambda leaf: np.asarray(leaf) if eqx.is_array(leaf) else leaf, network)

    attributes = {
        "flow": "classifier training",
        "convention": f"{LOSSES[loss]}; time = sum of learning rates",
        "network": type(network).__name__,
        "samples": len(data[0]),
        "learning_rate": learning_rate,
        "momentum": momentum,
        "weight_decay": weight_decay,
        "rate_factor": rate_factor,
        "rate_period": rate_period,
        "batch_seed": seed,
        **dataclasses.asdict(settings),
    }
    # The name of a curve.
    attributes["loss_function"] = attributes.pop("loss")
    return _record(found, recorded, steps, times, attributes), network


def _measured(
    network: Network, data: tuple[Array, Array], held_out: tuple[Array, Array] | None, settings: Epoch, probe: Any
) -> dict[str, tuple[tuple[str, ...], np.ndarray]]:
    found: dict[str, tuple[tuple[str, ...], np.ndarray]] = {}
    for prefix, part in (("", data), ("test_", held_out)):
        if part is not None:
            loss, accuracy = evaluate(network, part, settings.loss)
            found |= {f"{prefix}loss": ((), np.asarray(loss)), f"{prefix}accuracy": ((), np.asarray(accuracy))}
    for name, (axes, value) in (probe(network) if probe else {}).items():
        array = np.asarray(value)
        require(
            name not in _OWN and array.ndim == len(axes),
            f"the probe gives {name!r} the axes {tuple(axes)} and a value of shape {array.shape}",
            argument="probe",
            value=name,
            remedy=f"name each axis, and choose none of the names {', '.join(_OWN)}",
        )
        found[name] = (tuple(axes), array)
    return found


def _record(
    found: list[dict[str, tuple[tuple[str, ...], np.ndarray]]],
    recorded: np.ndarray,
    steps: int,
    times: np.ndarray,
    attributes: Mapping[str, Any],
) -> xr.Dataset:
    require(
        all(each.keys() == found[0].keys() for each in found),
        "the probe gives other names later than at first",
        argument="probe",
        remedy="give the same quantities each time",
    )
    longest: dict[str, int] = {}
    for axes, value in (entry for each in found for entry in each.values()):
        for axis, length in zip(axes, value.shape, strict=True):
            longest[axis] = max(length, longest.get(axis, 0))
    variables: dict[str, Any] = {"epoch": (("step",), recorded), "time": (("step",), times[recorded])}
    for name, (axes, _) in found[0].items():
        curve = np.full((len(found), *(longest[axis] for axis in axes)), np.nan)
        for place, each in enumerate(found):
            value = each[name][1]
            curve[(place, *map(slice, value.shape))] = value
        variables[name] = (("step", *axes), curve)
    numbers = {axis: np.arange(length) + _FIRST.get(axis, 0) for axis, length in longest.items()}
    return make_record(variables, {"step": steps * recorded, **numbers}, attributes=attributes)


def _raise_if_diverged(value: Any, epoch: int, times: np.ndarray) -> None:
    if not np.isfinite(value):
        raise DivergenceError(
            f"the loss left the finite numbers by epoch {epoch}, time {times[epoch]:.6g}",
            time=float(times[epoch]),
            remedy="choose a smaller learning rate",
        )


def _checked(images_name: str, images: Any, labels_name: str, labels: Any) -> tuple[np.ndarray, np.ndarray]:
    require(
        images is not None and labels is not None and np.asarray(images).dtype in (np.float32, np.float64),
        f"{images_name} has the type {getattr(images, 'dtype', None)}"
        f" and {labels_name} {getattr(labels, 'dtype', None)}",
        argument=images_name,
        remedy="give both: images of floating-point numbers, as Images.scaled gives them, and whole numbers",
    )
    with np.errstate(over="ignore"):
        x, y = np.asarray(images, np.float32), np.asarray(labels)
    require(
        x.ndim in (2, 4) and len(x) > 0 and y.shape == x.shape[:1] and y.dtype.kind in "iu",
        f"{images_name} has shape {x.shape} and {labels_name} has shape {y.shape} and type {y.dtype}",
        argument=labels_name,
        value=y.shape,
        remedy="give images (n, height, width, channels) or (n, d), and one whole number for each",
    )
    require(
        bool(np.isfinite(x).all()),
        f"{images_name} has values that are not finite in float32",
        argument=images_name,
        remedy="drop or fill them first",
    )
    return x, y.astype(np.int32)


def _check_outputs(network: Network, data: tuple[np.ndarray, np.ndarray], name: str) -> None:
    images, labels = data
    shape = eqx.filter_eval_shape(lambda each, x: each(x), network, images[:2]).shape
    lowest, highest = int(labels.min()), int(labels.max())
    require(
        len(shape) == 2 and 0 <= lowest <= highest < shape[1],
        f"{name} go from {lowest} to {highest}, and the network maps images {images[:2].shape} to outputs {shape}",
        argument=name,
        value=(lowest, highest),
        remedy="give the network one output for each class, and flat images if it takes such",
    )


def _epoch(loss: ClassificationLoss, batch_size: int, crop_padding: int, flip: bool, images: np.ndarray) -> Epoch:
    require_choice("loss", loss, LOSSES)
    require_count(most=len(images), batch_size=batch_size)
    require(
        crop_padding >= 0 and (images.ndim == 4 or not (crop_padding or flip)),
        f"crop_padding is {crop_padding} and flip is {flip} for images of shape {images.shape[1:]}",
        argument="crop_padding",
        value=crop_padding,
        remedy="choose a number from zero, and give images that are not flat to crop or mirror them",
    )
    return Epoch(loss, int(batch_size), int(crop_padding), bool(flip))
