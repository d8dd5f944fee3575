"""Errors of the command line: the message, its JSON form and the exit code."""

from __future__ import annotations

import dataclasses
import errno
import math
import re
import sys
from collections.abc import Collection, Sequence
from typing import Any

from dynascope.cli.exit_codes import BAD_INPUT, FAILED, INTERRUPTED
from dynascope.errors import DivergenceError, InputError

__all__ = ["FAILURES", "FULL", "Failure", "with_options"]

FAILURES = (Exception, KeyboardInterrupt)  # everything that can abort a command
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a full disk or an exhausted quota


def with_options(text: str, options: Collection[str]) -> str:
    """Replace arguments in Python notation with command-line options.

    Args:
        text: A message with arguments in backticks or with values, as in `missing` or loss='mse'.
        options: Names of the arguments that are options.

    Example:
        >>> with_options("use `drop` or choose loss='mse'", ["drop", "loss"])
        'use --drop or choose --loss mse'
    """
    for name in options:
        option = _option(name)
        text = text.replace(f"`{name}`", option)
        text = re.sub(
            rf"(?<![-\w])`?{name}=('[^']*'|\"\"|[\w.-]*\w)?`?",
            lambda found, option=option: f"{option} {(found[1] or '').strip(chr(39))}".rstrip(),
            text,
        )
    return text


def _option(name: str) -> str:
    return f"--{name}".replace("_", "-")


@dataclasses.dataclass(frozen=True)
class Failure:
    """An error in the input, in a run, or in dynascope itself.

    Attributes:
        code: The exit code.
        message: One sentence.
        argument: The invalid argument, if any.
        value: The value of the argument.
        remedy: How to fix the error.

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
        """Convert an exception of one of the types in `FAILURES`."""
        if isinstance(error, KeyboardInterrupt):
            return cls(INTERRUPTED, "interrupted.", None, None, "run the command again")
        if isinstance(error, InputError):
            return cls(BAD_INPUT, str(error), error.argument, error.value, error.remedy)
        if isinstance(error, DivergenceError):
            return cls(FAILED, str(error), "flow", error.time, error.remedy)
        if isinstance(error, OSError):
            place, remedy = str(error.filename or "a file"), "check that this path exists and is readable"
            reason = error.strerror or str(error)
            if error.errno in FULL:
                # Errors in files carry a file name; an error without one concerns standard output.
                place = str(error.filename or "the output")
                reason, remedy = f"the disk is full; {reason}", "free some space"
            return cls(BAD_INPUT, f"{place} cannot be read or written ({reason}): {remedy}.", None, place, remedy)
        if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
            detail = " ".join(str(error).split())
            remedy = "use fewer samples, a smaller network, or a machine with more memory"
            return cls(FAILED, f"out of memory ({detail}): {remedy}.", "memory", detail, remedy)
        detail = " ".join([type(error).__name__, *str(error).splitlines()[:1]])
        remedy = "please report the error together with the output of --traceback"
        return cls(FAILED, f"unexpected error, a bug in dynascope ({detail}): {remedy}.", None, detail, remedy)

    def in_options(self, arguments: Sequence[str], options: Collection[str] = ()) -> Failure:
        """Return this failure with option names instead of argument names in its message and its remedy.

        Args:
            arguments: The command line; if it contains the option of the invalid argument, the message starts with
                the option.
            options: Names of the arguments that are options of the command.

        Example:
            >>> error = InputError("batch_size is 0", argument="batch_size", value=0, remedy="omit `batch_size`")
            >>> Failure.of(error).in_options(["predict", "--batch-size", "0"], ["batch_size"]).message
            '--batch-size is 0: omit --batch-size.'
        """
        option, message = _option(str(self.argument)), self.message
        if any(each == option or each.startswith(f"{option}=") for each in arguments):
            message = re.sub(rf"^{self.argument}\b", option, message)
        return dataclasses.replace(
            self, message=with_options(message, options), remedy=with_options(self.remedy, options)
        )

    @property
    def answer(self) -> dict[str, Any]:
        """The failure as JSON data, in which non-finite numbers are null."""
        value = self.value if isinstance(self.value, str | int | float | list | type(None)) else str(self.value)
        if isinstance(value, float) and not math.isfinite(value):
            value = None
        return {"message": self.message, "argument": self.argument, "value": value, "remedy": self.remedy}

    def print(self, before: str = "") -> None:
        """Print the message to standard error, after the text `before`."""
        print(f"dynascope: {before}{self.message}", file=sys.stderr)
