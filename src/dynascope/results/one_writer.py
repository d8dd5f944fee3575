"""One writer at a time for a path, among all processes of a machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from dynascope.arguments import require

try:
    import fcntl

    _locks: ModuleType | None = fcntl
except ImportError:  # a system without such locks, where two writers are not told from each other
    _locks = None

__all__ = ["one_writer"]

_PATIENCE, _PAUSE = 60.0, 0.02  # seconds


@contextmanager
def one_writer(target: Path, *, patience: float = _PATIENCE) -> Iterator[None]:
    """Wait until nobody else writes the target, and keep others waiting meanwhile.

    The lock is on a file beside the target, which is gone afterwards. It ends with the process that holds it, however
    that ends.

    Args:
        target: A path in a folder that exists.
        patience: Seconds to wait.

    Raises:
        InputError: The other writer takes longer.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, one_writer(Path(folder, "note.txt")):
        ...     os.listdir(folder)
        ['.note.txt.lock']
    """
    if _locks is None:
        yield
        return
    lock = target.with_name(f".{target.name}.lock")
    deadline = time.monotonic() + patience
    while (held := _held(lock, _locks)) is None:
        require(
            time.monotonic() < deadline,
            f"another process is writing {str(target)!r}",
            argument="path",
            value=str(target),
            remedy="wait until it has finished, or choose another path",
        )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        os.close(held)


def _held(lock: Path, locks: ModuleType) -> int | None:
    """The open lock if it could be had at once."""
    place = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        locks.flock(place, locks.LOCK_EX | locks.LOCK_NB)
        # Who held it before may have deleted the file, and a third may have made a new one.
        if os.fstat(place).st_ino == os.stat(lock).st_ino:
            return place
    except (BlockingIOError, FileNotFoundError):
        pass
    except OSError:
        return place  # a file system without locks
    os.close(place)
    return None
