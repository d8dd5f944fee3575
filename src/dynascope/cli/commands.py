"""The command line: list, predict, which, run, sweep, diagnose, report, watch."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Union

import tyro

# Rooms load their modules lazily, so that help appears immediately.
from dynascope import __version__, report, sweeps
from dynascope.cli.diagnose import Diagnose
from dynascope.cli.exit_codes import AGREED, FAILED
from dynascope.cli.failure import FAILURES, Failure
from dynascope.cli.list_studies import List
from dynascope.cli.option_values import option_names
from dynascope.cli.output import open_page, page_of, print_json, writing
from dynascope.cli.parsing import parsed, unknown_command
from dynascope.cli.predict import Predict
from dynascope.cli.progress import step
from dynascope.cli.run import Run, run_command, runner
from dynascope.cli.sweep import Sweep, sweeper
from dynascope.cli.watch import Watch
from dynascope.cli.which import Which
from dynascope.studies import find_studies, find_study
from dynascope.validation import require, require_choice

__all__ = ["main"]


@dataclasses.dataclass(frozen=True)
class Report:
    """Write the HTML page of a recorded training run, of a sweep, or of a saved record.

    Args:
        path: The folder of a recorder or of a sweep, or a record written by `dynascope predict` or `dynascope run`.
        out: Path of the page; next to the record by default.
        open: Open the page in the browser.
    """

    path: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="RECORD")]
    out: Path | None = None
    open: bool = False

    def __call__(self) -> int:
        if (self.path / sweeps.MANIFEST).is_file():
            return self._sweep()
        from dynascope.diagnosis.run_page import load_result  # slower than the rest of the command line

        tree, page = load_result(self.path), self.out or page_of(self.path)
        with writing(page.parent):
            page = report.write_page(tree, page)
        print(f"Page: {page}")
        if self.open:
            open_page(page)
        return AGREED

    def _sweep(self) -> int:
        page = self.out or self.path / "sweep.html"
        with writing(page.parent), step("Running the best and the worst cell again, and writing the page"):
            sweeps.write_sweep_page(sweeps.load_sweep(self.path), page)
        print(f"Page: {page}")
        if self.open:
            open_page(page)
        return AGREED


_COMMANDS: dict[str, Any] = {
    "list": List,
    "predict": Predict,
    "which": Which,
    "run": Run,
    "sweep": Sweep,
    "diagnose": Diagnose,
    "report": Report,
    "watch": Watch,
}
_COMPLETIONS = ("--tyro-print-completion", "--tyro-write-completion")  # tyro's options
_SHELLS = ("bash", "zsh", "fish")


def main(arguments: list[str]) -> int:
    """Run a command and return its exit code.

    Args:
        arguments: The command-line arguments after the program name.
    """
    as_json, traced = "--json" in arguments, "--traceback" in arguments
    arguments = [each for each in arguments if each != "--traceback"]
    if arguments[:1] == ["--version"]:
        print(f"dynascope {__version__}")
        return AGREED
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Print results even where the encoding of a pipe lacks a character.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _command(arguments)()
        print(end="", flush=True)
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        code = FAILED
    except FAILURES as error:
        if traced:
            traceback.print_exception(error)
        failure = Failure.of(error).in_options(arguments, _options(arguments))
        code = failure.code
        if as_json:
            with contextlib.suppress(OSError):  # standard output itself may have failed
                print_json({"error": failure.answer})
                sys.stdout.flush()
                return code
        with contextlib.suppress(OSError):  # the exit code also reports the failure
            failure.print()
    return code


def _command(arguments: list[str]) -> Callable[[], int]:
    """Parse the command; import only the study that it runs."""
    first = arguments[0] if arguments else ""
    if first in ("run", "sweep") and len(arguments) > 1 and not arguments[1].startswith("-"):
        of_study = runner if first == "run" else sweeper
        return parsed(of_study(find_study(arguments[1])), arguments, words=2)
    if first in _COMMANDS:
        return parsed(_COMMANDS[first], arguments, words=1)
    if not first.startswith("-"):
        raise unknown_command(arguments, list(_COMMANDS))
    if first in _COMPLETIONS:
        _check_completion(arguments)
        return parsed(_all(_COMMANDS | {"run": run_command(find_studies())}), arguments, words=0)
    return parsed(_all(_COMMANDS), arguments, words=0)


def _options(arguments: list[str]) -> list[str]:
    """Return the names of the options of the command that was called."""
    command = _COMMANDS.get(arguments[0]) if arguments else None
    return option_names(command) if command is not None else []


def _check_completion(arguments: list[str]) -> None:
    """Reject completion arguments for which tyro would print a traceback."""
    require_choice("shell", arguments[1] if len(arguments) > 1 else "", _SHELLS)
    if arguments[0].endswith("write-completion"):
        place = Path(arguments[2]) if len(arguments) > 2 else None
        require(
            place is not None and place.parent.is_dir() and not place.is_dir(),
            f"the completion script cannot be written to {place}"
            if place
            else "the path of the completion script is missing",
            argument="path",
            value=str(place),
            remedy="give the path of a file in an existing folder",
        )


def _all(commands: dict[str, Any]) -> Callable[..., Any]:
    """Return one parser for all commands, for the top-level help and for shell completion."""

    def dynascope(command: Callable[[], int]) -> Callable[[], int]:
        return command

    dynascope.__annotations__["command"] = Union[  # noqa: UP007 - the choices are known only here
        tuple(Annotated[command, tyro.conf.subcommand(name)] for name, command in commands.items())
    ]
    dynascope.__doc__ = """Predict what a network will learn, observe training, and compare prediction and observation.
    Exit codes: 0 agree or finished, 1 disagree, 2 bad input, 3 the run failed, 4 undecided, 130 interrupted.
    `dynascope --version` prints the version.

    Args:
        command: The command to run; `dynascope COMMAND --help` lists its options.
    """
    return dynascope
