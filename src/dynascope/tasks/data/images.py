"""Labelled images that the user provides: MNIST, CIFAR, or folders of images."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32, Int, UInt8

from dynascope.tasks.data.channel_statistics import channel_statistics
from dynascope.tasks.data.cifar_files import find_cifar, read_cifar, read_cifar_names
from dynascope.tasks.data.idx_files import find_idx, is_idx, read_idx
from dynascope.tasks.data.image_folders import find_parts, read_image_folders
from dynascope.tasks.labelled import Labelled
from dynascope.tasks.task import Task
from dynascope.validation import checked, require, require_labels
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["Images", "read_images"]

_BRIGHTEST = 255


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """Images with class labels, and the test images that came with them.

    Attributes:
        pixels: Array (n, height, width, channels), of bytes as read, of float32 once scaled.
        labels: Array (n,) of class labels from 0 to the number of classes − 1.
        class_names: One name for each class.
        name: Short name, used in file names and titles.
        description: What was done on the way in, one sentence each.
        test: The test images, with the same classes, or None.

    Raises:
        InputError: No images, fewer than two classes, labels without a name or an image, or test images of another
            shape.

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
        shape = self.pixels.shape
        require(
            len(shape) == 4 and min(shape) > 0 and self.pixels.dtype in (np.uint8, np.float32),
            f"pixels has shape {shape} and type {self.pixels.dtype}",
            argument="pixels",
            value=shape,
            remedy="pass an array (samples, height, width, channels) of uint8 or float32",
        )
        require(
            len(self.class_names) >= 2,
            f"there is one class only among {shape[0]} images",
            argument="class_names",
            value=len(self.class_names),
            remedy="give at least two",
        )
        require_labels("labels", self.labels, shape[0], classes=len(self.class_names))
        require(
            self.test is None or (self.test.pixels.shape[1:], self.test.class_names) == (shape[1:], self.class_names),
            f"training images have shape {shape[1:]} and test images have "
            f"{'no' if self.test is None else self.test.pixels.shape[1:]}, or their classes differ",
            argument="test",
            value=None if self.test is None else self.test.pixels.shape[1:],
            remedy="bring all images to one size, and give both parts the same classes",
        )

    @property
    def samples(self) -> int:
        """Number of images n, without the test images."""
        return len(self.pixels)

    @checked
    def scaled(self, scaling: Literal["unit", "standardised"] = "unit") -> Images:
        """Images of float32, and test images scaled in the same way.

        Args:
            scaling: "unit" divides by 255, so that pixels lie in [0, 1]; "standardised" gives every channel the mean
                zero and the variance one over the pixels of all training images.

        Raises:
            InputError: The images are scaled already, the scaling is not known, or a channel is constant.

        Example:
            >>> draw = np.random.default_rng(0)
            >>> images = Images(draw.integers(256, size=(6, 4, 5, 1), dtype=np.uint8), np.arange(6) % 2, ("a", "b"))
            >>> scaled = images.scaled("standardised").pixels
            >>> abs(round(float(scaled.mean()), 5)), round(float(scaled.std()), 5)
            (0.0, 1.0)
        """
        require(
            self.pixels.dtype == np.uint8,
            "the images are scaled already",
            argument="scaling",
            value=scaling,
            remedy="scale images of bytes",
        )
        mean, deviation = np.zeros(1), np.full(1, float(_BRIGHTEST))
        sentence = f"Pixels are scaled by 1/{_BRIGHTEST}."
        if scaling == "standardised":
            mean, deviation = channel_statistics(self.pixels)
            sentence = "Every channel has mean zero and variance one over the training images."
        return self._scaled(mean, deviation, sentence)

    @checked
    def subset(self, samples: PositiveInt, *, seed: Seed = 0) -> Images:
        """Randomly chosen training images in random order, with all test images.

        Raises:
            InputError: There are not that many.
        """
        require(
            samples <= self.samples,
            f"samples is {samples} and there are {self.samples} images",
            argument="samples",
            value=samples,
            remedy=f"choose at most {self.samples}",
        )
        rows = np.random.default_rng(seed).permutation(self.samples)[:samples]
        sentence = f"{samples} of {self.samples} images were drawn with the seed {seed}."
        return dataclasses.replace(
            self, pixels=self.pixels[rows], labels=self.labels[rows], description=(*self.description, sentence)
        )

    def task(self) -> Task:
        """The task of these images without the test images: flat images, scaled to [0, 1] unless scaled already.

        The targets are one-hot. An input is a pixel, its channels side by side; only images of one channel keep their
        shape.
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
        """These images without the test images, as what a classifier learns; their pixels are not copied.

        Raises:
            InputError: The pixels are bytes, or not finite, or there is one image only.

        Example:
            >>> draw = np.random.default_rng(0)
            >>> images = Images(draw.integers(256, size=(6, 4, 5, 1), dtype=np.uint8), np.arange(6) % 2, ("a", "b"))
            >>> data = images.scaled().labelled()
            >>> data.inputs.shape, str(data.inputs.dtype), data.class_names
            ((6, 4, 5, 1), 'float32', ('a', 'b'))
        """
        require(
            self.pixels.dtype == np.float32,
            f"pixels has values of type {self.pixels.dtype}",
            argument="pixels",
            value=str(self.pixels.dtype),
            remedy="call scaled() first",
        )
        return Labelled(self.pixels, self.labels, self.class_names, self.name, self.description)

    def _scaled(self, mean: np.ndarray, deviation: np.ndarray, sentence: str) -> Images:
        # In place, since images may fill a good part of the memory.
        pixels = self.pixels.astype(np.float32)
        pixels -= mean.astype(np.float32)
        pixels /= deviation.astype(np.float32)
        test = None if self.test is None else self.test._scaled(mean, deviation, sentence)
        return dataclasses.replace(self, pixels=pixels, description=(*self.description, sentence), test=test)


def read_images(path: str | PathLike[str], *, coarse_labels: bool = False) -> Images:
    r"""Read labelled images from files; nothing is ever unpickled.

    Three layouts are read, which the names of the files tell apart:

    * IDX, the format of MNIST: a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and, for the test part,
      t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte, each also with .gz; or one such file of images, with its labels
      beside it;
    * the binary version of CIFAR-10 (data_batch_1.bin, …, test_batch.bin) or CIFAR-100 (train.bin, test.bin): the
      folder, or one of these files;
    * one folder of PNG, JPEG, BMP, PGM or PPM images for each class, or the folders train and test with such folders in
      them. Images of eight bits a channel and of one size; transparency is dropped.

    Args:
        path: The folder or file.
        coarse_labels: Whether to read the 20 coarse labels of CIFAR-100 instead of the 100 fine ones.

    Returns:
        The training images, with the test images as `test` if there are any; named after the folder.

    Raises:
        InputError: There are no images, a file is damaged, truncated or not what its name says, images have different
            sizes, or there is one class only.

    References:
        Y. LeCun, C. Cortes and C. Burges, The MNIST database, for IDX; A. Krizhevsky, Learning multiple layers of
        features from tiny images (2009), for CIFAR.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     labels, pixels = np.arange(4, dtype=np.uint8) % 2, np.zeros((4, 3, 2), np.uint8)
        ...     _ = (Path(folder) / "train-images-idx3-ubyte").write_bytes(
        ...         b"\0\0\x08\x03" + np.array(pixels.shape, ">u4").tobytes() + pixels.tobytes()
        ...     )
        ...     _ = (Path(folder) / "train-labels-idx1-ubyte").write_bytes(
        ...         b"\0\0\x08\x01" + np.array(labels.shape, ">u4").tobytes() + labels.tobytes()
        ...     )
        ...     images = read_images(folder)
        >>> images.pixels.shape, images.labels.tolist(), images.class_names
        ((4, 3, 2, 1), [0, 1, 0, 1], ('0', '1'))
    """
    path = Path(path)
    require(
        path.is_dir() or path.is_file(),
        f"there is no file or folder {path}",
        argument="path",
        value=str(path),
        remedy="check the path",
    )
    name = path.resolve().name if path.is_dir() else path.resolve().parent.name
    idx = find_idx(path) if path.is_dir() else (path if is_idx(path) else None, None)
    cifar = None if any(idx) else find_cifar(path)
    require(
        not coarse_labels or (cifar is not None and cifar[0] == 100),
        f"{path} is not CIFAR-100 and has no coarse labels",
        argument="coarse_labels",
        value=coarse_labels,
        remedy="leave it out",
    )
    if any(idx):
        parts = [None if each is None else read_idx(each) for each in idx]
        # Labels need not start at zero.
        classes = np.unique(np.concatenate([each[1] for each in parts if each is not None]))
        parts = [each and (each[0], np.searchsorted(classes, each[1])) for each in parts]
        return _assemble(name, "IDX files", [str(label) for label in classes], parts)
    if cifar is not None:
        classes, *files = cifar
        parts = [read_cifar(each, classes, coarse=coarse_labels) if each else None for each in files]
        names = read_cifar_names(path if path.is_dir() else path.parent, classes, coarse=coarse_labels)
        return _assemble(name, f"the binary files of CIFAR-{classes}", names, parts)
    require(
        path.is_dir(),
        f"{path.name} is neither an IDX file of images nor a binary file of CIFAR",
        argument="path",
        value=str(path),
        remedy="keep the name it was published under, or give a folder",
    )
    train_folder, test_folder = find_parts(path)
    *train, names = read_image_folders(train_folder)
    parts = [train, None if test_folder is None else read_image_folders(test_folder, names)[:2]]
    return _assemble(name, "folders, one for each class", names, parts)


def _assemble(name: str, source: str, class_names: Sequence[str], parts: Sequence[Any]) -> Images:
    """The images of the training part with those of the test part, or of the latter alone if there is no other."""
    present = [each for each in parts if each is not None]
    channels = max(pixels.shape[-1] for pixels, _ in present)
    found = None
    for pixels, labels in reversed(present):
        n, height, width, own = pixels.shape
        # Grey images are colour images with three equal channels.
        pixels = np.repeat(pixels, channels // own, axis=-1) if own < channels else pixels
        sentence = f"{n} images of {height} × {width} pixels were read from {source}."
        found = Images(pixels, labels, tuple(class_names), name, (sentence,), found)
    assert found is not None
    return found
