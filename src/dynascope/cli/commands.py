"""The command line: list, predict, run, report."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import math
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Union

import tyro

# The face of a room loads what is behind it when it is used, so that help is there at once.
from dynascope import __version__, record, report
from dynascope.cli.answers import study_answer
from dynascope.cli.exit_codes import AGREED, BAD_INPUT, DISAGREED, FAILED
from dynascope.cli.predict import Predict
from dynascope.cli.progress import step
from dynascope.cli.results import check_before, print_json, write_results
from dynascope.errors import DivergenceError, InputError
from dynascope.studies import Study, find_studies

__all__ = ["main"]


@dataclasses.dataclass(frozen=True)
class List:
    """List every study: what it claims, where that was published, and how long it takes.

    Args:
        json: Print one JSON array.
    """

    json: bool = False

    def __call__(self) -> int:
        rows = [
            {
                "study": name,
                "paper": study.reference.paper,
                "arxiv": study.reference.arxiv,
                "claim": study.reference.claim,
                "minutes": study.minutes,
            }
            for name, study in find_studies().items()
        ]
        if self.json:
            print_json(rows)
            return AGREED
        from dynascope.cli.console import print_studies  # it loads rich, which JSON does without

        print_studies(rows)
        return AGREED


@dataclasses.dataclass(frozen=True)
class Report:
    """Write the page of a record again.

    Args:
        path: A record, as the other commands write it.
        out: The page; beside the record if not said.
    """

    path: tyro.conf.Positional[Path]
    out: Path | None = None

    def __call__(self) -> int:
        page = report.write_page(record.load(self.path), self.out or self.path.with_suffix(".html"))
        print(f"Page: {page}")
        return AGREED


def _run_command() -> Callable:
    """The command `run`, with one subcommand for each study that is installed."""

    def run(study: Callable[[], int]) -> Callable[[], int]:
        """Run a study: observe, predict, compare, and say whether theory and experiment agree."""
        return study

    run.__annotations__["study"] = Union[  # noqa: UP007 - the choices are known only here
        tuple(
            Annotated[Any, tyro.conf.arg(constructor=_runner(study)), tyro.conf.subcommand(name)]
            for name, study in find_studies().items()
        )
    ]
    return run


@functools.cache
def _runner(study_type: type[Study]) -> Callable:
    def runner(study: Study, out: Path = Path(), json: bool = False) -> Callable[[], int]:
        return functools.partial(_run, study, out, json)

    # Truth values are given like all other fields, as in `--whitened True`.
    runner.__annotations__["study"] = Annotated[study_type, tyro.conf.FlagConversionOff]
    runner.__doc__ = f"""{study_type.reference.claim}

    Args:
        study: The study.
        out: Folder for the page and the record.
        json: Print one JSON object.
    """
    return runner


def _run(study: Study, out: Path, as_json: bool) -> int:
    start = time.perf_counter()
    check_before(out, getattr(study, "seed", 0))
    with step(f"Running {study.name}"):
        tree = study.run()
    view = record.TreeView.of(tree)
    written = write_results(tree, out, study.name)
    if as_json:
        print_json(study_answer(study, view, seconds=time.perf_counter() - start, record=written))
    else:
        from dynascope.cli.console import print_agreement  # it loads rich, which JSON does without

        print_agreement(study.reference, view)
        print(f"Page and record: {written.with_suffix('.html')}, {written}")
    return DISAGREED if tree.attrs["verdict"] == "disagree" else AGREED


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 agreed or done, 1 disagree, 2 bad input, 3 the run failed."""
    arguments = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in arguments
    if arguments == ["--version"]:
        print(f"dynascope {__version__}")
        return AGREED
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Results are worth more than the letters that the encoding of a pipe may lack.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        code = _command(arguments, as_json)()
        sys.stdout.flush()
        return code
    except InputError as error:
        return _failed(str(error), BAD_INPUT, as_json, error.argument, error.value, error.remedy)
    except DivergenceError as error:
        return _failed(str(error), FAILED, as_json, "flow", error.time, error.remedy)
    except BrokenPipeError:
        # Who read the results has left; without this, closing the pipe would complain again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        place = error.filename or "the output"
        remedy = "choose another folder with --out"
        return _failed(f"{place}: {error.strerror}: {remedy}.", BAD_INPUT, as_json, "out", str(place), remedy)
    except KeyboardInterrupt:
        return _failed("interrupted.", FAILED, as_json, None, None, "run it again")


def _command(arguments: list[str], as_json: bool) -> Callable[[], int]:
    commands = {"list": List, "predict": Predict, "run": _run_command(), "report": Report}
    told = io.StringIO()
    try:
        # A usage error becomes JSON as well, so what tyro says of it is kept instead of shown.
        with contextlib.redirect_stderr(told) if as_json else contextlib.nullcontext():
            return tyro.extras.subcommand_cli_from_dict(
                commands,
                prog="dynascope",
                description="Predict what a neural network will learn, observe it, and compare the two.",
                args=arguments,
                config=(tyro.conf.OmitArgPrefixes, tyro.conf.OmitSubcommandPrefixes, tyro.conf.FlagCreatePairsOff),
            )
    except SystemExit as stop:
        code = BAD_INPUT if stop.code else AGREED
        if as_json and code == BAD_INPUT:
            raise _usage_error(told.getvalue(), arguments) from None
        return lambda: code


def _usage_error(told: str, arguments: list[str]) -> InputError:
    """The problem that tyro tells in a box: below the title, above the first rule."""
    parts = re.split(r"[-─]{9,}", re.sub(r"[╭╮╰╯│]", " ", told))
    problem = " ".join(parts[1 if len(parts) > 1 else 0].split()).removesuffix(".")
    return InputError(problem, argument="arguments", value=arguments, remedy="see dynascope --help")


def _failed(message: str, code: int, as_json: bool, argument: Any, value: Any, remedy: str) -> int:
    if as_json:
        plain = value if isinstance(value, str | int | float | list | type(None)) else str(value)
        if isinstance(plain, float) and not math.isfinite(plain):
            plain = None
        print_json({"error": {"message": message, "argument": argument, "value": plain, "remedy": remedy}})
    else:
        print(f"dynascope: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
