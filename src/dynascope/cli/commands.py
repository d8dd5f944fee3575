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
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union

import tyro

from dynascope import __version__
from dynascope.arguments import require
from dynascope.cli.progress import step
from dynascope.cli.results import check_before, print_json, write_results
from dynascope.errors import DivergenceError, InputError
from dynascope.studies import Study, find_studies, second_scale

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["main"]

AGREED, DISAGREED, BAD_INPUT, FAILED = 0, 1, 2, 3


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
        from dynascope.cli.console import print_studies

        print_studies(rows)
        return AGREED


@dataclasses.dataclass(frozen=True)
class Predict:
    """Predict the loss staircase of a network trained on your data from small initialisation.

    Args:
        data: "digits", or a file: .npz with arrays x and y, x.npy beside y.npy, .csv or .parquet.
        network: Kind of network: two-layer relu, quadratic or linear, diagonal linear, or linear attention, which
            learns in-context regression on inputs like those of the data.
        scale: Initialisation scale, below one; if not said 1e-8, or 1e-3 where times grow as a power of it.
        target: Target columns of a table.
        only: Keep a single target, by its name.
        classification: Whether the target is a class label; decided by its type if not said.
        check: Also train the network, overlay both and judge.
        slope: With the check, also train from 1e-4 of the scale and compare slopes dt/dlog(1/scale).
        seed: Seed of the initial weights.
        width: Number of hidden neurons, or of attention heads.
        normalised: Predict, and train by, the homogeneity-normalised flow.
        jumps: Number of jumps after which to stop; all if not said, but 5 for relu, quadratic and attention.
        context: Number of examples in a prompt, for attention.
        out: Folder for the page and the record.
        json: Print one JSON object.
    """

    data: tyro.conf.Positional[str]
    network: Literal["relu", "quadratic", "linear", "diagonal", "attention"] = "linear"
    scale: float | None = None
    target: tuple[str, ...] = ()
    only: str | None = None
    classification: bool | None = None
    check: bool = False
    slope: bool = False
    seed: int = 0
    width: int = 50
    normalised: bool = False
    jumps: int | None = None
    context: float = 20.0
    out: Path = Path()
    json: bool = False

    def __call__(self) -> int:
        start = time.perf_counter()
        check_before(self.out, self.seed)
        with step(f"Reading {self.data}"):
            task = self._task()
        from dynascope.networks import network_for
        from dynascope.prediction import predict

        network = network_for(self.network, task, width=self.width, seed=self.seed)
        exponential = network.degree == 2 or self.normalised
        scale = (1e-8 if exponential else 1e-3) if self.scale is None else self.scale
        usual = None if self.network in ("linear", "diagonal") else 5
        with step(f"Predicting a {self.network} network from scale {scale:g}"):
            jumps = usual if self.jumps is None else self.jumps
            predicted = predict(task, network, scale=scale, normalised=self.normalised, jumps=jumps)
        if self.check or self.slope:
            tree = self._checked(task, network, predicted, second_scale(scale) if exponential else scale / 3)
        else:
            from dynascope.comparison import unjudged

            tree = unjudged(predicted)
        record = write_results(tree, self.out, f"{task.name}-{self.network}")
        seconds = time.perf_counter() - start
        if self.json:
            from dynascope.cli.answers import prediction_answer

            print_json(prediction_answer(tree, seconds=seconds, record=record))
        else:
            from dynascope.cli.console import print_staircase

            print_staircase(tree)
            print(f"Page and record: {record.with_suffix('.html')}, {record}")
        return DISAGREED if tree.attrs.get("verdict") == "disagree" else AGREED

    def _task(self) -> Any:
        from dynascope.tasks import InContextRegression, digits, from_file

        if self.data == "digits":
            require(
                not self.target,
                "digits has no columns to choose targets from",
                argument="target",
                value=list(self.target),
                remedy="leave --target out, or name a single digit by --only 'digit 3'",
            )
            require(
                self.classification is not False,
                "the targets of digits are class labels",
                argument="classification",
                value=self.classification,
                remedy="leave --classification out",
            )
            task = digits()
        else:
            task = from_file(self.data, target=self.target or None, classification=self.classification)
        if self.only is not None:
            return task.only(self.only)
        if self.network == "attention":
            return InContextRegression.on_inputs_of(task, self.context)
        first, last = task.targets[:, 0], task.targets[:, -1]
        if self.network == "diagonal" and task.output_dimension == 2 and abs(first + last).max() < 1e-12:
            # Two centred classes mirror each other, so one target says it all.
            return task.only(task.target_names[1])
        return task

    def _checked(self, task: Any, network: Any, predicted: xr.Dataset, other_scale: float) -> xr.DataTree:
        from dynascope.comparison import compare
        from dynascope.observation import observe, training_time

        options: dict[str, Any] = {"normalised": True} if self.normalised else {}

        def trained(scale: float) -> xr.Dataset:
            with step(f"Training it from scale {scale:g}"):
                return observe(task, network, scale=scale, duration=training_time(predicted, scale), **options)

        observed = trained(float(predicted.attrs["scale"]))
        other = trained(other_scale) if self.slope else None
        return compare(observed, predicted, at_other_scale=other)


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
        from dynascope.record.store import load
        from dynascope.report import write_page

        page = write_page(load(self.path), self.out or self.path.with_suffix(".html"))
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
    record = write_results(tree, out, study.name)
    if as_json:
        from dynascope.cli.answers import study_answer

        print_json(study_answer(study, tree, seconds=time.perf_counter() - start, record=record))
    else:
        from dynascope.cli.console import print_agreement

        print_agreement(study.reference, tree)
        print(f"Page and record: {record.with_suffix('.html')}, {record}")
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
