"""Images that Pillow decodes, in folders, one for each class."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np

from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["read_image_folders", "visible_folders"]

_EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")
_GREY, _COLOUR = ("1", "L", "LA"), ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")


def visible_folders(path: Path) -> list[Path]:
    """The folders in a folder, sorted, without hidden ones."""
    return sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))


def read_image_folders(path: Path, allow: Callable[[int, str], None]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Read the images of one part; hidden files and files with other extensions are skipped.

    Args:
        path: Folder with one folder for each class.
        allow: Raises `InputError` if this many bytes of the named file exceed the memory limit.

    Yields:
        For each image its name, pixels (1, height, width, 1 or 3) without transparency, and the class name (1,).

    Raises:
        InputError: Pillow is missing, there are no classes, a class is empty, or an image is damaged or has more than
            eight bits a channel.
    """
    pillow, folders = _pillow(), visible_folders(path)
    require(
        len(folders) > 0,
        f"{path} has no folders of images",
        argument="path",
        value=str(path),
        remedy="give IDX files, the binary files of CIFAR, or one folder of images for each class",
    )
    for folder in folders:
        files = sorted(
            each
            for each in folder.iterdir()
            if each.suffix.lower() in _EXTENSIONS and not each.name.startswith(".") and each.is_file()
        )
        require(
            len(files) > 0,
            f"the folder {folder.name} has no images",
            argument="path",
            value=str(folder),
            remedy=f"put images of one class into it ({', '.join(_EXTENSIONS)}), or remove it",
        )
        for file in files:
            name = f"{folder.name}/{file.name}"
            yield name, _read(pillow, file, name, allow)[None], np.array([folder.name])


def _pillow() -> ModuleType:
    try:
        from PIL import Image  # not a direct dependency
    except ImportError:
        raise InputError(
            "folders of images are read with Pillow, which is not installed",
            argument="path",
            remedy="install it (pip install pillow), or give IDX files or the binary files of CIFAR",
        ) from None
    return Image


def _read(pillow: ModuleType, path: Path, name: str, allow: Callable[[int, str], None]) -> np.ndarray:
    try:
        # Pillow warns about large images and rejects twice as large ones; `allow` limits both.
        with warnings.catch_warnings(action="ignore"), pillow.open(path) as image:
            mode = image.mode
            channels = 1 if mode in _GREY else 3
            allow(image.width * image.height * channels, name)
            pixels = np.asarray(image.convert("L" if mode in _GREY else "RGB"), np.uint8)
    except InputError:
        raise
    except Exception as error:  # damaged images raise a dozen types
        raise InputError(
            f"{name} cannot be read as an image ({type(error).__name__})",
            argument="path",
            value=str(path),
            remedy="replace or remove it",
        ) from None
    require(
        mode in (*_GREY, *_COLOUR),
        f"{name} has more than eight bits a channel (Pillow's mode {mode})",
        argument="path",
        value=mode,
        remedy="save it with eight",
    )
    return pixels.reshape(*pixels.shape[:2], channels)
