"""Labelled images from files in any supported format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
from jaxtyping import Shaped, UInt8

from dynascope.tasks.data.image_folders import visible_folders
from dynascope.tasks.data.image_formats import COARSE, FILES, FOLDERS, PICKLED, ImageFormat
from dynascope.tasks.data.images import Images
from dynascope.validation import require, require_unpacked

__all__ = ["read_images"]


def read_images(path: str | PathLike[str], *, coarse_labels: bool = False) -> Images:
    r"""Read labelled images from files, without unpickling.

    The file names determine which of three formats is read:

    * IDX, the format of MNIST: a folder with train-images-idx3-ubyte, train-labels-idx1-ubyte and, for the test part,
      t10k-images-idx3-ubyte, t10k-labels-idx1-ubyte; or a single file of images with the file of labels in the same
      folder. Files can be compressed (.gz).
    * The binary version of CIFAR-10 (data_batch_1.bin, …, test_batch.bin) or CIFAR-100 (train.bin, test.bin): the
      folder or a single file.
    * PNG, JPEG, BMP, PGM or PPM images in one folder per class, or such folders inside the folders train and test.
      All images must have eight bits per channel and the same size. Transparency is dropped.

    Args:
        path: The folder or file.
        coarse_labels: Whether to read the 20 coarse labels of CIFAR-100 instead of the 100 fine ones.

    Returns:
        The training images, named after the folder, with any test images as `test`.

    Raises:
        InputError: If there are no images, if a file is damaged, truncated or does not have the format that its name
            implies, if images have different sizes, or if there is only one class.

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
    path, total = Path(path), 0
    check = partial(require, argument="path", value=str(path))

    def allow(size: int, name: str) -> None:
        nonlocal total
        total += size
        require_unpacked(total, f"{name}, together with the files before it,", value=str(path))

    check(path.is_dir() or path.is_file(), f"there is no file or folder {path}", remedy="check the path")
    folder = path if path.is_dir() else path.parent
    layout, *files = _recognise(path, coarse_labels, check)
    class_names = layout.names(folder) if layout.names else None
    parts = [_decode(layout, part, class_names, allow, check) for part in files if part]
    labels = [each for _, each in parts]
    values = np.unique(np.concatenate(labels)) if class_names is None else np.arange(len(class_names))
    new = [] if layout.new_classes else np.setdiff1d(labels[-1], labels[0]).tolist()
    problem = f"the class {''.join(new[:1])} has test images but no training images"
    check(not new, problem, remedy="give the two parts the same classes")
    channels, images = max(pixels.shape[-1] for pixels, _ in parts), None
    for pixels, label in reversed(parts):
        n, height, width, _ = pixels.shape
        images = Images(
            np.ascontiguousarray(_with_channels(pixels, channels)),
            np.searchsorted(values, label),
            class_names or tuple(map(str, values)),
            folder.resolve().name,
            (f"{n} images of {height} × {width} pixels were read from {layout.source}.",),
            images,
        )
    assert images is not None
    return images


def _recognise(path: Path, coarse: bool, check: Callable[..., None]) -> tuple[ImageFormat, list[Path], list[Path]]:
    """Determine the format of a file or folder, and its training and test files or class folders."""
    files = sorted(each for each in path.iterdir() if each.is_file()) if path.is_dir() else [path]
    # An uncompressed file takes precedence over its compressed copy.
    files = [each for each in files if each.suffix.lower() != ".gz" or each.with_suffix("") not in files]
    found = [(layout, *layout.parts(files)) for layout in (COARSE if coarse else FILES)]
    found = [each for each in found if each[1] or each[2]]
    sources = " and ".join(layout.source for layout, *_ in found)
    check(len(found) <= 1, f"{path} has files of several formats: {sources}", remedy="put them into separate folders")
    problem = f"{path} is not CIFAR-100 and therefore has no coarse labels"
    require(found or not coarse, problem, argument="coarse_labels", value=coarse, remedy="omit it")
    if found:
        for part in found[0][1:]:
            names = ", ".join(each.name for each in part)
            single = len(part) <= 1 or not found[0][0].one_file
            check(single, f"{path.name} has several files of images ({names})", remedy="give the path of one of them")
        return found[0]
    problem = f"{path} is the Python version of CIFAR, whose files are pickled"
    remedy = "use the binary version, whose files end in .bin"
    check(all(each.name not in PICKLED for each in files), problem, remedy=remedy)
    problem = f"{path.name} is neither an IDX file of images nor a binary file of CIFAR"
    check(path.is_dir(), problem, remedy="use the original file name, or give a folder")
    folders = visible_folders(path)
    train, test = FOLDERS.parts(folders)
    if not train:
        return FOLDERS, [path], []
    valid = len(train) == 1 and len(test) <= 1 and len(folders) == len(train) + len(test)
    problem = f"{path} has the folders {', '.join(each.name for each in folders)}"
    check(valid, problem, remedy="keep only train and test, each with one folder per class")
    return FOLDERS, train, test


def _decode(
    layout: ImageFormat,
    files: Sequence[Path],
    class_names: Sequence[str] | None,
    allow: Callable[[int, str], None],
    check: Callable[..., None],
) -> tuple[UInt8[np.ndarray, "n height width channels"], Shaped[np.ndarray, " n"]]:
    """Decode the pixels and labels of one part."""
    blocks = []
    for name, pixels, labels in (block for file in files for block in layout.read(file, allow)):
        blocks.append((name, pixels, labels))
        first, (height, width), expected = blocks[0][0], pixels.shape[1:3], blocks[0][1].shape[1:3]
        problem = f"{name} has {height} × {width} pixels, but {first} has {expected[0]} × {expected[1]}"
        check((height, width) == expected, problem, remedy="resize all images to one size")
        if class_names is not None:
            problem = f"{name} has the label {labels.max()}, but there are {len(class_names)} classes"
            check(labels.max() < len(class_names), problem, remedy="download it again")
    channels = max(pixels.shape[-1] for _, pixels, _ in blocks)
    pixels = np.concatenate([_with_channels(pixels, channels) for _, pixels, _ in blocks])
    return pixels, np.concatenate([labels for *_, labels in blocks])


def _with_channels(pixels: np.ndarray, channels: int) -> np.ndarray:
    """Broadcast greyscale images to several channels, without a copy."""
    shape = (*pixels.shape[:3], channels)
    return pixels if pixels.shape == shape else np.broadcast_to(pixels, shape)
