"""Parse the command line, and suggest corrections for mistyped arguments."""

from __future__ import annotations

import contextlib
import difflib
import inspect
import io
import re
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import tyro

from dynascope.cli.exit_codes import AGREED
from dynascope.cli.width import page_width
from dynascope.errors import InputError

__all__ = ["parsed", "unknown_command"]

_SETTINGS = (tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff)


def parsed(command: Any, arguments: Sequence[str], *, words: int) -> Callable[[], int]:
    """Parse the arguments of a command into a callable; for `--help`, the callable does nothing.

    Args:
        command: A dataclass with `__call__`, or a function that returns a callable. The first paragraph of its
            docstring opens the help.
        arguments: The complete command line.
        words: Number of leading words that name the command.

    Raises:
        InputError: The arguments are invalid for this command.
    """
    called = " ".join(["dynascope", *arguments[:words]])

    def read(given: Sequence[str]) -> Any:
        # tyro does not rewrap lines that start with a blank.
        paragraph = (inspect.getdoc(command) or "").partition("\n\n")[0]
        text = textwrap.fill(
            " ".join(paragraph.split()), page_width(), initial_indent=" ", subsequent_indent=" ", break_on_hyphens=False
        )
        return tyro.cli(command, prog=called, description=text, args=given, config=_SETTINGS)

    errors = io.StringIO()
    try:
        with contextlib.redirect_stderr(errors):
            return read(arguments[words:])
    except SystemExit as stop:
        if not stop.code:
            return lambda: AGREED
    problem, remedy = _problem(errors.getvalue()), f"see {called} --help"
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        read(["--help"])
    options = set(re.findall(r"--[a-z][\w-]*", shown.getvalue()))
    for given in arguments[words:]:
        option = given.partition("=")[0]
        if option.startswith("--") and option != "--" and option.replace("_", "-") not in options:
            problem, remedy = f"{called} has no option {option}", f"{_suggestion(option, options)}{remedy}"
            break
    raise InputError(problem, argument="arguments", value=list(arguments), remedy=remedy)


def unknown_command(arguments: Sequence[str], commands: Sequence[str]) -> InputError:
    """Return the error for an unknown or missing command."""
    listed = f"{', '.join(commands[:-1])} or {commands[-1]}"
    if not arguments:
        return InputError("the command is missing", argument="arguments", value=[], remedy=f"choose {listed}")
    remedy = f"{_suggestion(arguments[0], commands)}choose {listed}"
    problem = f"dynascope has no command {arguments[0]!r}"
    return InputError(problem, argument="arguments", value=list(arguments), remedy=remedy)


def _suggestion(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, sorted(known), 1)
    return f"did you mean {close[0]}? Otherwise, " if close else ""


def _problem(box: str) -> str:
    """Extract the message from tyro's error box: below the title, above the first rule."""
    parts = re.split(r"[-─]{9,}", re.sub(r"[╭╮╰╯│]", " ", box))
    problem = " ".join(parts[1 if len(parts) > 1 else 0].split()).removesuffix(".")
    missing = re.match(r"Missing from [^:]+: (\S+)", problem)
    if missing:
        return f"{missing[1]} is missing"
    without = re.match(r"Missing value for argument '(--[\w-]+)'", problem)
    if without:
        return f"{without[1]} has no value"
    chosen = re.match(r"invalid choice '([^']*)' for argument '(--[\w-]+)'. Expected one of \((.*)\)", problem)
    if chosen:
        # The choices of an optional argument include None, in the order of a set.
        known = sorted(set(re.findall(r"'([^']*)'", chosen[3])) - {"None"})
        close = difflib.get_close_matches(chosen[1].lower(), known, 1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        return f"{chosen[2]} is {chosen[1]!r}{meant}, but must be one of {', '.join(known)}"
    # The messages of int() and float(), alone or within a union of types.
    mistyped = re.match(r"Error parsing (--[\w-]+): .*?(int\(\) with base 10|string to float): '([^']*)'", problem)
    if mistyped is None:
        return problem
    kind = "an integer" if mistyped[2].startswith("int") else "a number"
    return f"{mistyped[1]} is {mistyped[3]!r}, which is not {kind}"
