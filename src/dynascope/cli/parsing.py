"""Arguments become a command, or one sentence that says what was meant instead."""

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
    """What a command makes of the arguments, to be called; nothing more if these asked for help.

    Args:
        command: A dataclass with `__call__`, or a function whose result is called; help begins with the first paragraph
            of its docstring.
        arguments: All of the command line.
        words: How many of them name the command.

    Raises:
        InputError: The arguments are not those of the command.
    """
    called = " ".join(["dynascope", *arguments[:words]])

    def read(given: Sequence[str]) -> Any:
        # A line is kept as one by tyro if it starts with a blank.
        said = (inspect.getdoc(command) or "").partition("\n\n")[0]
        text = textwrap.fill(
            " ".join(said.split()), page_width(), initial_indent=" ", subsequent_indent=" ", break_on_hyphens=False
        )
        return tyro.cli(command, prog=called, description=text, args=given, config=_SETTINGS)

    told = io.StringIO()
    try:
        with contextlib.redirect_stderr(told):
            return read(arguments[words:])
    except SystemExit as stop:
        if not stop.code:
            return lambda: AGREED
    problem, remedy = _problem(told.getvalue()), f"see {called} --help"
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        read(["--help"])
    options = set(re.findall(r"--[a-z][\w-]*", shown.getvalue()))
    for given in arguments[words:]:
        option = given.partition("=")[0]
        if option.startswith("--") and option != "--" and option.replace("_", "-") not in options:
            problem, remedy = f"{called} has no option {option}", f"{_meant(option, options)}{remedy}"
            break
    raise InputError(problem, argument="arguments", value=list(arguments), remedy=remedy)


def unknown_command(arguments: Sequence[str], commands: Sequence[str]) -> InputError:
    """The error of a command that does not exist, or of none."""
    listed = f"{', '.join(commands[:-1])} or {commands[-1]}"
    if not arguments:
        return InputError("no command is given", argument="arguments", value=[], remedy=f"choose {listed}")
    remedy = f"{_meant(arguments[0], commands)}choose {listed}"
    problem = f"dynascope has no command {arguments[0]!r}"
    return InputError(problem, argument="arguments", value=list(arguments), remedy=remedy)


def _meant(word: str, known: Any) -> str:
    close = difflib.get_close_matches(word, sorted(known), 1)
    return f"did you mean {close[0]}? Else " if close else ""


def _problem(told: str) -> str:
    """The problem that tyro tells in a box: below the title, above the first rule."""
    parts = re.split(r"[-─]{9,}", re.sub(r"[╭╮╰╯│]", " ", told))
    problem = " ".join(parts[1 if len(parts) > 1 else 0].split()).removesuffix(".")
    missing = re.match(r"Missing from [^:]+: (\S+)", problem)
    if missing:
        return f"{missing[1]} is not given"
    without = re.match(r"Missing value for argument '(--[\w-]+)'", problem)
    if without:
        return f"{without[1]} has no value"
    # As Python's own conversions report it, alone or among other types.
    mistyped = re.match(r"Error parsing (--[\w-]+): .*?(int\(\) with base 10|string to float): '([^']*)'", problem)
    if mistyped is None:
        return problem
    return f"{mistyped[1]} is {mistyped[3]!r}, and not {'an integer' if mistyped[2].startswith('int') else 'a number'}"
