"""The command line as a process: what happens to it from its first moment to its last.

Whatever reads its output may leave, and a user may interrupt it at any time; the exit code says what was found all the
same. The commands themselves are imported when all that is prepared, and so this module imports little.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback

from dynascope.cli import interrupts
from dynascope.cli.exit_codes import FAILED, INTERRUPTED
from dynascope.cli.streams import outlive_readers

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code, as `exit_codes` has them.

    With `--traceback` anywhere an error is told with where it came from.

    Args:
        arguments: What follows the name of the program; if not given, that of this process, which then ends here.
    """
    if arguments is not None:
        from dynascope.cli import commands  # as below

        return commands.main(arguments)
    # Modules and traced programs stay to the end; to look for garbage among them took a quarter of a short run.
    gc.set_threshold(50_000, 20, 20)
    outlive_readers()
    # Checks of equinox would call Python from within compiled programs, which then could not be kept for the next run.
    # Ours tell what went wrong by their results.
    os.environ.setdefault("EQX_ON_ERROR", "off")
    code = FAILED
    try:
        interrupts.listen(as_json="--json" in sys.argv)
        from dynascope.cli import commands  # it takes a while, in which one may interrupt

        code = commands.main(sys.argv[1:])
    except KeyboardInterrupt:
        interrupts.hear()
        interrupts.tell(as_json="--json" in sys.argv)
        code = INTERRUPTED
    except Exception:
        with contextlib.suppress(OSError, ValueError):
            traceback.print_exc()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    # Threads may still compute, and to end the interpreter under them may crash, with another exit code.
    os._exit(code)
