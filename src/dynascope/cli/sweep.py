"""The command that runs a study on a grid of field values."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

# Rooms load their modules lazily.
from dynascope import __version__, sweeps
from dynascope.cli.exit_codes import AGREED, FAILED
from dynascope.cli.output import check_writable, open_page, print_json, writing
from dynascope.cli.progress import step
from dynascope.cli.run import unchecked
from dynascope.errors import InputError
from dynascope.validation import require

if TYPE_CHECKING:
    from dynascope.studies import Study
    from dynascope.sweeps import Sweep as SweepResult

__all__ = ["Sweep", "sweeper"]


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Run a study for every combination of field values, and draw maps of the results.

    Args:
        study: Name of the study, as listed by `dynascope list`. For the options of a sweep, use
            `dynascope sweep STUDY --help`.
    """

    study: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="STUDY")]

    def __call__(self) -> int:
        """Never called, because each study has its own command."""
        raise NotImplementedError


@functools.cache
def sweeper(study_type: type[Study]) -> Callable[..., Callable[[], int]]:
    """Return the command that sweeps one study; fields of the study that are not varied are options."""

    def command(
        study: Any,
        over: tyro.conf.UseAppendAction[tuple[str, ...]],
        out: Path,
        workers: int | None = None,
        cluster: str | None = None,
        retry_failed: bool = False,
        dry_run: bool = False,
        yes: bool = False,
        open: bool = False,
        json: bool = False,
    ) -> Callable[[], int]:
        usual = dataclasses.asdict(study_type())
        fixed = {name: value for name, value in vars(study).items() if value != usual[name]}
        options = _Options(out, workers, cluster, retry_failed, dry_run, yes, open, json)
        return functools.partial(_sweep, study_type, over, fixed, options)

    command.__annotations__["study"] = Annotated[unchecked(study_type), tyro.conf.FlagConversionOff]
    command.__doc__ = f"""Run a study for every combination of field values: {study_type.reference.claim}

    The same command continues an interrupted sweep. Exit codes: 0 all cells are done, 3 some failed, 130 interrupted.

    Args:
        study: Values of fields that are equal in all cells.
        over: A field and its values, once for each axis: scale=0.1:2:17log, imbalance=-1:1:17, seed=0:16 or width=8,32.
        out: Folder of the sweep.
        workers: Number of worker processes, by default one for each core; 0 computes in this process.
        cluster: Compute on a Dask cluster: local:N for N processes of this machine, or the address of a scheduler.
        retry_failed: Compute failed cells again.
        dry_run: Print the number of cells, their size and their duration, estimated from one cell, and stop.
        yes: Allow more than 10 000 cells.
        open: Open the page in the browser.
        json: Print one JSON object.
    """
    return command


@dataclasses.dataclass(frozen=True)
class _Options:
    out: Path
    workers: int | None
    cluster: str | None
    retry_failed: bool
    dry_run: bool
    yes: bool
    open: bool
    json: bool


def _sweep(study_type: type[Study], over: tuple[str, ...], fixed: Mapping[str, Any], options: _Options) -> int:
    start = time.perf_counter()
    axes = _axes(over, yes=options.yes)
    if options.dry_run:
        estimate = sweeps.estimate_sweep(study_type, over=axes, workers=options.workers, most_cells=None, **fixed)
        print_json(estimate._asdict()) if options.json else print(estimate)
        return AGREED
    check_writable(options.out)
    with step(f"Sweeping {study_type.name}"), _cluster(options.cluster) as executor:
        call = {"workers": options.workers, "executor": executor, "retry_failed": options.retry_failed}
        found = sweeps.sweep(study_type, over=axes, out=options.out, most_cells=None, **call, **fixed)
    page = options.out / "sweep.html"
    with writing(options.out), step("Running the best and the worst cell again, and writing the page"):
        sweeps.write_sweep_page(found, page)
    failed = found.counts.get("failed", 0)
    if options.json:
        cells = {status: found.counts.get(status, 0) for status in ("done", "failed", "running", "waiting")}
        print_json(_answer(found) | {"cells": cells, "seconds": time.perf_counter() - start, "page": str(page)})
    else:
        print(found)
        for reason, count in found.failures()["reason"].value_counts().head(5).items():
            print(f"Failed: {count} × {reason}")
        print(f"Store: {found.path / 'sweep.zarr'}")
        print(f"Page: {page}")
    if options.open:
        open_page(page)
    return FAILED if failed else AGREED


def _answer(found: SweepResult) -> dict[str, Any]:
    sizes = {name: found.record.sizes[name] for name in found.axes}
    return {"study": found.name, "axes": sizes, "out": str(found.path), "version": __version__}


def _axes(over: tuple[str, ...], *, yes: bool) -> dict[str, list[Any]]:
    remedy = "give --over NAME=VALUES at least once, such as --over seed=0:4"
    require(over, "no field is varied", argument="over", remedy=remedy)
    axes: dict[str, list[Any]] = {}
    for text in over:
        name, values = sweeps.parse_axis(text)
        require(name not in axes, f"over varies {name} twice", argument="over", value=text, remedy="give it once")
        axes[name] = values
    count = math.prod(map(len, axes.values()))
    remedy = f"give fewer values, or allow more than {sweeps.MOST_CELLS} cells with --yes"
    require(yes or count <= sweeps.MOST_CELLS, f"over has {count} cells", argument="over", value=count, remedy=remedy)
    return axes


@contextlib.contextmanager
def _cluster(address: str | None) -> Iterator[Executor | None]:
    """Connect to a Dask cluster, or start one on this machine."""
    if address is None:
        yield None
        return
    kind, _, count = address.partition(":")
    right = kind != "local" or (count.isdecimal() and int(count) > 0)
    remedy = "give local:N with the number of processes, or an address such as tcp://host:8786"
    require(right, f"cluster is {address}", argument="cluster", value=address, remedy=remedy)
    try:
        from distributed import Client, LocalCluster  # pyright: ignore[reportMissingImports]
    except ImportError:
        remedy = "install it with: pip install distributed"
        raise InputError("cluster needs the package distributed", argument="cluster", remedy=remedy) from None
    with contextlib.ExitStack() as stack:
        if kind == "local":
            local = LocalCluster(
                n_workers=int(count), threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR
            )
            client = Client(stack.enter_context(local))
        else:
            client = Client(address)
        yield stack.enter_context(client).get_executor()
