"""Labelled images with an optional test part, and their scaling."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
from jaxtyping import Float32, Int, UInt8

from dynascope.tasks.labelled import Labelled
from dynascope.tasks.task import Task
from dynascope.validation import checked, require, require_labels
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["Images"]

_BRIGHTEST = 255


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """Images with class labels and optional test images.

    Attributes:
        pixels: Array (n, height, width, channels) of uint8 for unscaled images, of float32 for scaled images.
        labels: Array (n,) of class labels from 0 to the number of classes − 1.
        class_names: One name per class.
        name: Short name, used in file names and titles.
        description: Sentences about the data and its preprocessing.
        test: Test images with the same classes, or None.

    Raises:
        InputError: If there are no images or fewer than two classes, if the labels do not match the images or the class
            names, or if the test images have a different shape or different classes.

    Example:
        >>> draw = np.random.default_rng(0)
        >>> images = Images(draw.integers(256, size=(6, 4, 5, 1), dtype=np.uint8), np.arange(6) % 2, ("cat", "dog"))
        >>> task = images.task()
        >>> task.inputs.shape, task.image_shape, task.target_names
        ((6, 20), (4, 5), ('cat', 'dog'))
    """

    pixels: UInt8[np.ndarray, "n height width channels"] | Float32[np.ndarray, "n height width channels"]
    labels: Int[np.ndarray, " n"]
    class_names: tuple[str, ...]
    name: str = "images"
    description: tuple[str, ...] = ()
    test: Images | None = None

    def __post_init__(self):
        object.__setattr__(self, "pixels", np.asarray(self.pixels))
        object.__setattr__(self, "labels", np.asarray(self.labels))
        shape, classes = self.pixels.shape, len(self.class_names)
        problem = f"pixels has shape {shape} and type {self.pixels.dtype}"
        remedy = "pass an array of shape (samples, height, width, channels) and type uint8 or float32"
        valid = len(shape) == 4 and min(shape) > 0 and self.pixels.dtype in (np.uint8, np.float32)
        require(valid, problem, argument="pixels", value=shape, remedy=remedy)
        problem = f"there is only one class among {shape[0]} images"
        require(classes >= 2, problem, argument="class_names", value=classes, remedy="give at least two classes")
        require_labels("labels", self.labels, shape[0], classes=classes)
        if self.test is not None:
            other = self.test.pixels.shape
            problem = "training and test images have different classes"
            if other[1:] != shape[1:]:
                problem = f"training images have shape {shape[1:]}, but test images have shape {other[1:]}"
            remedy = "resize all images to one size, and give both parts the same classes"
            same = (other[1:], self.test.class_names) == (shape[1:], self.class_names)
            require(same, problem, argument="test", value=other[1:], remedy=remedy)

    @property
    def samples(self) -> int:
        """Number of images n, excluding the test images."""
        return len(self.pixels)

    @checked
    def scaled(self, scaling: Literal["unit", "standardised"] = "unit") -> Images:
        """Convert the images to float32 and scale them; test images are scaled in the same way.

        Args:
            scaling: "unit" divides by 255, so that pixels are in [0, 1]; "standardised" gives every channel mean zero
                and variance one over the pixels of all training images.

        Raises:
            InputError: If the images are already scaled, if the scaling is unknown, or if a channel is constant.

        Example:
            >>> draw = np.random.default_rng(0)
            >>> images = Images(draw.integers(256, size=(6, 4, 5, 1), dtype=np.uint8), np.arange(6) % 2, ("a", "b"))
            >>> scaled = images.scaled("standardised").pixels
            >>> abs(round(float(scaled.mean()), 5)), round(float(scaled.std()), 5)
            (0.0, 1.0)
        """
        problem, remedy = "the images are already scaled", "scale images of type uint8"
        require(self.pixels.dtype == np.uint8, problem, argument="scaling", value=scaling, remedy=remedy)
        mean, deviation = np.zeros(1), np.full(1, float(_BRIGHTEST))
        sentence = f"Pixels are scaled by 1/{_BRIGHTEST}."
        if scaling == "standardised":
            mean, deviation = _channel_statistics(self.pixels)
            sentence = "Every channel has mean zero and variance one over the training images."
        return self._scaled(mean, deviation, sentence)

    @checked
    def subset(self, samples: PositiveInt, *, seed: Seed = 0) -> Images:
        """Draw a random subset of the training images, in random order, and keep all test images.

        Raises:
            InputError: If there are fewer images than `samples`.
        """
        problem, remedy = f"samples is {samples}, but there are {self.samples} images", f"choose at most {self.samples}"
        require(samples <= self.samples, problem, argument="samples", value=samples, remedy=remedy)
        rows = np.random.default_rng(seed).permutation(self.samples)[:samples]
        sentence = f"{samples} of {self.samples} images were drawn at random with seed {seed}."
        return dataclasses.replace(
            self, pixels=self.pixels[rows], labels=self.labels[rows], description=(*self.description, sentence)
        )

    def task(self) -> Task:
        """Make a regression task from the flattened training images, with one-hot targets.

        Unscaled images are scaled to [0, 1]. The channels of a pixel are adjacent inputs. `image_shape` is set only for
        images with one channel.
        """
        images = self if self.pixels.dtype == np.float32 else dataclasses.replace(self, test=None).scaled()
        n, height, width, channels = images.pixels.shape
        return Task(
            images.pixels.reshape(n, -1),
            images.labels[:, None] == np.arange(len(self.class_names)),
            name=self.name,
            description=(*images.description, f"The {len(self.class_names)} classes are one-hot encoded."),
            image_shape=(height, width) if channels == 1 else None,
            target_names=self.class_names,
        )

    def labelled(self) -> Labelled:
        """Make a classification data set from the training images, without copying the pixels.

        Raises:
            InputError: If the pixels are not scaled or not finite, or if there is only one image.

        Example:
            >>> draw = np.random.default_rng(0)
            >>> images = Images(draw.integers(256, size=(6, 4, 5, 1), dtype=np.uint8), np.arange(6) % 2, ("a", "b"))
            >>> data = images.scaled().labelled()
            >>> data.inputs.shape, str(data.inputs.dtype), data.class_names
            ((6, 4, 5, 1), 'float32', ('a', 'b'))
        """
        kind = self.pixels.dtype
        problem, remedy = f"pixels has values of type {kind}", "call scaled() first"
        require(kind == np.float32, problem, argument="pixels", value=str(kind), remedy=remedy)
        return Labelled(self.pixels, self.labels, self.class_names, self.name, self.description)

    def _scaled(self, mean: np.ndarray, deviation: np.ndarray, sentence: str) -> Images:
        # In place, to save memory.
        pixels = self.pixels.astype(np.float32)
        pixels -= mean.astype(np.float32)
        pixels /= deviation.astype(np.float32)
        test = None if self.test is None else self.test._scaled(mean, deviation, sentence)
        return dataclasses.replace(self, pixels=pixels, description=(*self.description, sentence), test=test)


def _channel_statistics(pixels: UInt8[np.ndarray, "n height width channels"]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every channel, from exact integer sums without a copy of the pixels."""
    count = pixels[..., 0].size
    sums = pixels.sum(axis=(0, 1, 2), dtype=np.uint64).tolist()
    squares = np.einsum("nhwc,nhwc->c", pixels, pixels, dtype=np.uint64).tolist()
    variances = [(count * square - total**2) / count**2 for total, square in zip(sums, squares, strict=True)]
    constant = [channel for channel, variance in enumerate(variances) if variance == 0]
    problem = f"channel {constant[0] + 1 if constant else 0} of the images is constant"
    remedy = 'scale with "unit" instead'
    require(not constant, problem, argument="scaling", value="standardised", remedy=remedy)
    return np.array(sums) / count, np.sqrt(variances)
