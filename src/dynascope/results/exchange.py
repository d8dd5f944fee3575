"""Two names in a folder that change places at once, where the file system can do that."""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path

__all__ = ["exchanged"]

_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux; RENAME_SWAP of macOS has the same value


def exchanged(one: Path, other: Path) -> bool:
    """Let two paths, which both exist, change places, so that nobody ever sees one of them missing.

    Returns:
        Whether that was done; false where the system or the file system cannot, and then nothing was changed.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     old, new = Path(folder, "old"), Path(folder, "new")
        ...     _ = old.write_text("1"), new.write_text("2")
        ...     done = exchanged(old, new)
        ...     old.read_text() == ("2" if done else "1")
        True
    """
    exchange = _exchange()
    return exchange is not None and exchange(os.fsencode(one), os.fsencode(other)) == 0


@functools.cache
def _exchange() -> Callable[[bytes, bytes], int] | None:
    """The call of the system, of two names; zero if it did."""
    if sys.platform == "win32":
        return None
    library = ctypes.CDLL(None)
    if hasattr(library, "renameat2"):
        return lambda one, other: library.renameat2(_HERE, one, _HERE, other, _EXCHANGE)
    if hasattr(library, "renamex_np"):
        return lambda one, other: library.renamex_np(one, other, _EXCHANGE)
    return None
