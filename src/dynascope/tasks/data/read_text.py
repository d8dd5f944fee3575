"""Text from a file in UTF-8."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from dynascope.errors import InputError
from dynascope.validation import checked, require

__all__ = ["read_text"]


@checked
def read_text(path: str | PathLike[str]) -> str:
    r"""Read a text from a file in UTF-8; line ends become "\\n".

    Args:
        path: The file.

    Raises:
        InputError: If there is no such file, or if it cannot be read, is empty or is not valid UTF-8.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "notes.txt"
        ...     _ = path.write_bytes(b"one\r\ntwo")
        ...     read_text(path)
        'one\ntwo'
    """
    path = Path(path)
    require(
        path.is_file(),
        f"{path} is a directory" if path.is_dir() else f"there is no file {path}",
        argument="path",
        value=str(path),
        remedy="give the path of a text file",
    )
    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path} is not valid UTF-8 at byte {error.start}",
            argument="path",
            value=str(path),
            remedy="convert the file to UTF-8, for example with iconv",
        ) from None
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror})",
            argument="path",
            value=str(path),
            remedy="change the permissions of the file, or give a readable copy",
        ) from None
    require(text != "", f"{path} is empty", argument="path", value=str(path), remedy="give a file with a text")
    return text
