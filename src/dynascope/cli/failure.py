"""What went wrong, as a person and a machine are told it, and the exit code that says so."""

from __future__ import annotations

import dataclasses
import errno
import math
import re
import sys
from collections.abc import Sequence
from typing import Any

from dynascope.cli.exit_codes import BAD_INPUT, FAILED, INTERRUPTED
from dynascope.errors import DivergenceError, InputError

__all__ = ["FAILURES", "FULL", "Failure"]

FAILURES = (Exception, KeyboardInterrupt)  # all that ends a command before its time
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # what says that a disk, or what one may use of it, is full


@dataclasses.dataclass(frozen=True)
class Failure:
    """An error, of the user's input, of a run, or of ours.

    Attributes:
        code: For the shell.
        message: One sentence.
        argument: What it is about.
        value: What that is.
        remedy: What to do.

    Example:
        >>> Failure.of(KeyboardInterrupt()).code
        130
    """

    code: int
    message: str
    argument: str | None
    value: Any
    remedy: str

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """What an error of one of the types of `FAILURES` says."""
        if isinstance(error, KeyboardInterrupt):
            return cls(INTERRUPTED, "interrupted.", None, None, "run it again")
        if isinstance(error, InputError):
            return cls(BAD_INPUT, str(error), error.argument, error.value, error.remedy)
        if isinstance(error, DivergenceError):
            return cls(FAILED, str(error), "flow", error.time, error.remedy)
        if isinstance(error, OSError):
            place, remedy = str(error.filename or "a file"), "check that it is there and may be read"
            said = error.strerror or str(error)
            if error.errno in FULL:
                # What is written elsewhere than to the output has a name, as `results.writing` sees to.
                place = str(error.filename or "the output")
                said, remedy = f"the disk is full ({said})", "free some space"
            return cls(BAD_INPUT, f"{place}: {said}: {remedy}.", None, place, remedy)
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
            said = " ".join(str(error).split())
            remedy = "choose fewer samples or a smaller network, or a machine with more"
            return cls(FAILED, f"the memory does not suffice ({said}): {remedy}.", "memory", said, remedy)
        said = " ".join([type(error).__name__, *str(error).splitlines()[:1]])
        remedy = "report it with what --traceback adds"
        return cls(FAILED, f"this was not foreseen, and the fault is ours ({said}): {remedy}.", None, said, remedy)

    def in_options(self, arguments: Sequence[str]) -> Failure:
        """The same, with the option in the place of the argument if it was given on the command line.

        Example:
            >>> error = InputError("batch_size is 0", argument="batch_size", value=0, remedy="choose more")
            >>> Failure.of(error).in_options(["predict", "t.csv", "--batch-size", "0"]).message
            '--batch-size is 0: choose more.'
        """
        option = f"--{self.argument}".replace("_", "-")
        if not any(each == option or each.startswith(f"{option}=") for each in arguments):
            return self
        return dataclasses.replace(self, message=re.sub(rf"^{self.argument}\b", option, self.message))

    @property
    def answer(self) -> dict[str, Any]:
        """For a machine, which takes no number that is not finite."""
        value = self.value if isinstance(self.value, str | int | float | list | type(None)) else str(self.value)
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        return {"message": self.message, "argument": self.argument, "value": value, "remedy": self.remedy}

    def print(self, before: str = "") -> None:
        """Say it on standard error, after other words."""
        print(f"dynascope: {before}{self.message}", file=sys.stderr)
