"""The command line as a process, from its first moment to its last.

The commands themselves are imported when all that is prepared, and so this module imports little.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from dynascope.cli.exit_codes import INTERRUPTED

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code, as `exit_codes` has them.

    With `--traceback` anywhere an error is told with where it came from.

    Args:
        arguments: What follows the name of the program; if not given, that of this process, which then ends here.
    """
    if arguments is not None:
        return _run(arguments)
    # Modules and traced programs stay to the end; to look for garbage among them took a quarter of a short run.
    gc.set_threshold(50_000, 20, 20)
    # Checks of equinox would call Python from within compiled programs, which then could not be kept for the next run.
    # Ours tell what went wrong by their results.
    os.environ.setdefault("EQX_ON_ERROR", "off")
    code = _run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        # A stream may be closed from the start, closed by its reader, or full.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    # Threads of XLA may still compute after an interrupt, and Python crashes if it ends under them.
    os._exit(code)


def _run(arguments: list[str]) -> int:
    try:
        from dynascope.cli import commands  # it takes a while, in which one may interrupt

        return commands.main(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED
