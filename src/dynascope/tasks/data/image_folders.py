"""Images from one folder per class, decoded by Pillow."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["read_image_folders", "visible_folders"]

_EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")
_GREY, _COLOUR = ("1", "L", "LA"), ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")  # modes of Pillow


def visible_folders(path: Path) -> list[Path]:
    """The subfolders of a folder, sorted by name, except hidden ones."""
    return sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))


def read_image_folders(path: Path, allow: Callable[[int, str], None]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Read the images of one part; hidden files and files with other extensions are skipped.

    Args:
        path: Folder with one subfolder per class.
        allow: Function of a size in bytes and a file name that raises `InputError` if the size exceeds the memory
            limit.

    Yields:
        For each image, its name, pixels (1, height, width, 1 or 3) without transparency, and class name (1,).

    Raises:
        InputError: If there are no classes, if a class is empty, or if an image is damaged or has more than eight bits
            per channel.
    """
    check = partial(require, argument="path", value=str(path))
    folders = visible_folders(path)
    remedy = "give IDX files, the binary files of CIFAR, or one folder of images per class"
    check(folders, f"{path} has no folders of images", remedy=remedy)
    for folder in folders:
        files = [each for each in folder.iterdir() if each.suffix.lower() in _EXTENSIONS and each.is_file()]
        files = sorted(each for each in files if not each.name.startswith("."))
        remedy = f"put images of one class into this folder ({', '.join(_EXTENSIONS)}), or remove the folder"
        check(files, f"the folder {folder.name} has no images", remedy=remedy)
        for file in files:
            name = f"{folder.name}/{file.name}"
            yield name, _read(file, name, allow)[None], np.array([folder.name])


def _read(path: Path, name: str, allow: Callable[[int, str], None]) -> np.ndarray:
    try:
        # Pillow warns about large images and rejects still larger ones; `allow` limits both.
        with warnings.catch_warnings(action="ignore"), Image.open(path) as image:
            mode, channels = image.mode, 1 if image.mode in _GREY else 3
            allow(image.width * image.height * channels, name)
            pixels = np.asarray(image.convert("L" if channels == 1 else "RGB"), np.uint8)
    except InputError:
        raise
    except Exception as error:  # damaged images raise a dozen types
        problem = f"{name} cannot be read as an image ({type(error).__name__})"
        raise InputError(problem, argument="path", value=str(path), remedy="replace or remove this file") from None
    problem = f"{name} has more than eight bits per channel (Pillow mode {mode})"
    remedy = "save this image with eight bits per channel"
    require(mode in (*_GREY, *_COLOUR), problem, argument="path", value=str(path), remedy=remedy)
    return pixels.reshape(*pixels.shape[:2], channels)
