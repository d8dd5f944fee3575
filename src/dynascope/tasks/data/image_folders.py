"""Images in folders, one for each class."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
from jaxtyping import Int, UInt8

from dynascope.errors import InputError
from dynascope.validation import require, require_unpacked

__all__ = ["EXTENSIONS", "find_parts", "read_image_folders"]

EXTENSIONS = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")
_TRAIN, _TEST = ("train", "training"), ("test", "testing", "val", "valid", "validation")
_GREY, _COLOUR = ("1", "L", "LA"), ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")


def find_parts(path: Path) -> tuple[Path, Path | None]:
    """The folders that hold the classes of the training and the test part: train/ and test/ if there, else the path.

    Raises:
        InputError: There is a test part only, or other folders beside the parts.
    """
    folders = {each.name.lower(): each for each in _folders(path)}
    train = [folders[name] for name in _TRAIN if name in folders]
    test = [folders[name] for name in _TEST if name in folders]
    if not train:
        return path, None
    others = [each.name for name, each in folders.items() if name not in (*_TRAIN, *_TEST)]
    require(
        len(train) == 1 and len(test) <= 1 and not others,
        f"{path} has the folders {', '.join(each.name for each in folders.values())}",
        argument="path",
        value=list(folders),
        remedy="keep train and test only, each with one folder for each class",
    )
    return train[0], test[0] if test else None


def read_image_folders(
    path: Path, class_names: Sequence[str] | None = None
) -> tuple[UInt8[np.ndarray, "n height width channels"], Int[np.ndarray, " n"], tuple[str, ...]]:
    """Read the images of one part.

    Args:
        path: Folder with one folder for each class; what is hidden, and files with other extensions, are left alone.
        class_names: The classes that are allowed, in the order of their labels; None for those found, sorted.

    Returns:
        Pixels (n, height, width, channels), with one channel if all images are grey and three otherwise; labels (n,);
        class names. Transparency is dropped.

    Raises:
        InputError: Pillow is missing, a class is empty or not allowed, or an image cannot be read, has more than eight
            bits a channel, or another size than the first.
    """
    pillow = _pillow()
    folders = _folders(path)
    if class_names is None:
        class_names = tuple(each.name for each in folders)
    unknown = [each.name for each in folders if each.name not in class_names]
    require(
        not unknown,
        f"the class {unknown[0] if unknown else ''} has test images and no training images",
        argument="path",
        value=unknown,
        remedy="give the two parts the same classes",
    )
    found: list[np.ndarray] = []
    labels: list[int] = []
    first: Path | None = None
    for folder in folders:
        files = sorted(each for each in folder.iterdir() if _is_image(each))
        require(
            len(files) > 0,
            f"the folder {folder.name} has no images",
            argument="path",
            value=str(folder),
            remedy=f"put images of one class into it ({', '.join(EXTENSIONS)}), or remove it",
        )
        for file in files:
            pixels = _read(pillow, file, bytes_before=sum(each.nbytes for each in found))
            first = first or file
            require(
                not found or pixels.shape[:2] == found[0].shape[:2],
                f"{folder.name}/{file.name} has {pixels.shape[0]} × {pixels.shape[1]} pixels, "
                f"and {first.parent.name}/{first.name} has {found[0].shape[0] if found else 0} × "
                f"{found[0].shape[1] if found else 0}",
                argument="path",
                value=pixels.shape[:2],
                remedy="bring all images to one size",
            )
            found.append(pixels)
            labels.append(class_names.index(folder.name))
    require(
        len(found) > 0,
        f"{path} has no folders of images",
        argument="path",
        value=str(path),
        remedy="give IDX files, the binary files of CIFAR, or one folder of images for each class",
    )
    channels = max(each.shape[2] for each in found)
    pixels = np.stack([np.broadcast_to(each, (*each.shape[:2], channels)) for each in found])
    return pixels, np.array(labels), tuple(class_names)


def _folders(path: Path) -> list[Path]:
    return sorted(each for each in path.iterdir() if each.is_dir() and not each.name.startswith("."))


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in EXTENSIONS and not path.name.startswith(".") and path.is_file()


def _pillow() -> ModuleType:
    try:
        from PIL import Image  # not installed with the package
    except ImportError:
        raise InputError(
            "folders of images are read with Pillow, which is not installed",
            argument="path",
            remedy="install it (pip install pillow), or give IDX files or the binary files of CIFAR",
        ) from None
    return Image


def _read(pillow: ModuleType, path: Path, *, bytes_before: int) -> np.ndarray:
    """The pixels of an image, unless they and those before it are more than may be unpacked."""
    try:
        # Pillow warns of what is large, which is limited here, and refuses what is twice as large.
        with warnings.catch_warnings(action="ignore"), pillow.open(path) as image:
            mode = image.mode
            size = bytes_before + image.width * image.height * (1 if mode in _GREY else 3)
            require_unpacked(size, f"{path.parent.name}/{path.name}, with the images before it,", value=str(path))
            pixels = np.asarray(image.convert("L" if mode in _GREY else "RGB"), np.uint8)
    except InputError:
        raise
    except Exception as error:  # damaged images raise a dozen types
        raise InputError(
            f"{path.parent.name}/{path.name} cannot be read as an image ({type(error).__name__})",
            argument="path",
            value=str(path),
            remedy="replace or remove it",
        ) from None
    require(
        mode in (*_GREY, *_COLOUR),
        f"{path.parent.name}/{path.name} has more than eight bits a channel (Pillow's mode {mode})",
        argument="path",
        value=mode,
        remedy="save it with eight",
    )
    return pixels[..., None] if pixels.ndim == 2 else pixels
