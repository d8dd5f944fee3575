"""The command line as a process, from its first moment to its last.

The commands themselves are imported when all that is prepared, and so this module imports little.
"""

from __future__ import annotations

import gc
import os
import sys

from dynascope.cli.exit_codes import INTERRUPTED

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code, as `exit_codes` has them.

    With `--traceback` anywhere an error is told with where it came from.

    Args:
        arguments: What follows the name of the program; if not given, that of this process.
    """
    if arguments is None:
        arguments = sys.argv[1:]
        # Modules and traced programs stay to the end; to look for garbage among them took a quarter of a short run.
        gc.set_threshold(50_000, 20, 20)
        # Checks of equinox would call Python from within compiled programs, which then could not be kept for the next
        # run. Ours tell what went wrong by their results.
        os.environ.setdefault("EQX_ON_ERROR", "off")
    try:
        from dynascope.cli import commands  # it takes a while, in which one may interrupt

        code = commands.main(arguments)
    except KeyboardInterrupt:
        code = INTERRUPTED
    try:
        print(end="", flush=True)
    except OSError:  # the output is closed or full: Python would report the rest of the buffer as an error at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
