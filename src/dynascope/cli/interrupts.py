"""An interrupt ends the program within a second, whatever it does, and with the exit code that says so.

Python tells of an interrupt only between two of its own steps, and compiling or a long chunk of training is a single
one. So a thread waits beside, which the system wakes at once: where the interrupt is not heard soon, it ends the
process itself, but not while results are written.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

from dynascope.cli.exit_codes import INTERRUPTED

__all__ = ["MESSAGE", "REMEDY", "hear", "heard", "listen", "tell", "uninterrupted"]

MESSAGE, REMEDY = "interrupted.", "run it again"
_PATIENCE = 0.7  # seconds in which Python usually comes to its next step
_SHOW_CURSOR = b"\r\x1b[2K\x1b[?25h"  # and no line of progress

_came, _heard = threading.Event(), threading.Event()
_closed = threading.RLock()  # held while results are written


def listen(*, as_json: bool) -> None:
    """Have interrupts end this process, unless whoever started it has switched them off.

    Args:
        as_json: Whether to tell of it on standard output as JSON.
    """
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGINT, _interrupt)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    sys.unraisablehook = _lost
    threading.Thread(target=_watch, args=(reading, as_json), daemon=True).start()


def hear() -> None:
    """Note that an interrupt is being answered."""
    _heard.set()


def heard() -> bool:
    """Whether an interrupt came, which may have become another error on its way through a compiled program."""
    return _came.is_set()


def tell(*, as_json: bool) -> None:
    """Say that the program was interrupted, past the buffers of other threads."""
    if as_json:
        _write(1, json.dumps({"error": {"message": MESSAGE, "argument": None, "value": None, "remedy": REMEDY}}) + "\n")
    else:
        _write(2, f"dynascope: {MESSAGE}\n")


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Let what is written within be closed before the process is left."""
    with _closed:
        yield


def _interrupt(*_: object) -> None:
    if not _came.is_set():
        _came.set()
        raise KeyboardInterrupt


def _lost(error: Any) -> None:
    """Say nothing of an interrupt that came where nothing can be raised, as in a destructor; the thread ends it."""
    if not issubclass(error.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(error)


def _watch(reading: int, as_json: bool) -> None:
    while os.read(reading, 1) != bytes([signal.SIGINT]):
        pass
    if _heard.wait(_PATIENCE):
        os.read(reading, 1)  # a second one is answered at once
    with _closed:
        if not _heard.is_set():
            with contextlib.suppress(OSError):
                if sys.stderr.isatty():
                    os.write(2, _SHOW_CURSOR)
                tell(as_json=as_json)
        os._exit(INTERRUPTED)


def _write(place: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(place, text.encode())
