"""Standard output and standard error, which may be closed, or be closed while they are written to."""

from __future__ import annotations

import io
import os
import stat
import sys

__all__ = ["outlive_readers"]


class _Pipe(io.FileIO):
    """A pipe into which one can write when nobody reads any more, as into a null device."""

    def write(self, data):
        try:
            return super().write(data)
        except BrokenPipeError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self.fileno())
            os.close(nowhere)
            return memoryview(data).nbytes


def outlive_readers() -> None:
    """Let the streams of this process take what they are given whether or not anybody reads it.

    What was found does not depend on how much of it is read, as by `head -1`, and neither does the exit code.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started the process
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - open as long as the process
        elif isinstance(stream, io.TextIOWrapper) and _is_pipe(stream):
            stream.flush()
            pipe = io.BufferedWriter(_Pipe(stream.fileno(), "w", closefd=False))
            own = io.TextIOWrapper(pipe, stream.encoding, stream.errors, line_buffering=stream.line_buffering)
            setattr(sys, name, own)


def _is_pipe(stream: io.TextIOWrapper) -> bool:
    try:
        kind = os.fstat(stream.fileno()).st_mode
    except io.UnsupportedOperation:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind)
