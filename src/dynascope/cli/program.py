"""The command-line process: set up the interpreter, run a command, and exit.

Commands are imported only after the setup, and other imports are kept to a minimum.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from dynascope.cli.exit_codes import INTERRUPTED

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    The exit code is 0 if theory and experiment agree or the command finished without a comparison, 1 if they disagree,
    2 for bad input, 3 if the run failed, 4 if undecided, and 130 if interrupted.

    The option `--traceback`, at any position, prints the traceback of an error.

    Args:
        arguments: The arguments after the program name; by default those of this process, which then exits.
    """
    if arguments is not None:
        return _run(arguments)
    # Modules and traced programs live until the end; scanning them for garbage took a quarter of a short run.
    gc.set_threshold(50_000, 20, 20)
    # Error checks of equinox call Python from compiled programs, which prevents caching them on disk. dynascope checks
    # the result codes instead.
    os.environ.setdefault("EQX_ON_ERROR", "off")
    code = _run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        # A stream may be closed, closed by its reader, or full.
        with contextlib.suppress(AttributeError, OSError, ValueError):
            stream.flush()
    # Threads of XLA may still compute after an interrupt, and Python crashes if it exits before they end.
    os._exit(code)


def _run(arguments: list[str]) -> int:
    try:
        from dynascope.cli import commands  # slow enough that the user may interrupt it

        return commands.main(arguments)
    except KeyboardInterrupt:
        print("dynascope: interrupted.", file=sys.stderr)
        return INTERRUPTED
