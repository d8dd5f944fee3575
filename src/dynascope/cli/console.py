"""What the command line says to people: tables and a verdict."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    import xarray as xr

    from dynascope.studies import Reference

__all__ = ["print_agreement", "print_staircase", "print_studies"]

_MOST_REASONS = 10


def print_studies(rows: Sequence[Mapping[str, Any]]) -> None:
    """One study a row."""
    _print_table(
        ["study", "claim", "paper", "minutes"],
        [[row["study"], row["claim"], f"{row['paper']} (arXiv {row['arxiv']})", f"{row['minutes']:g}"] for row in rows],
    )


def print_staircase(tree: xr.DataTree) -> None:
    """The predicted jumps, beside the observed ones where the network was trained, and the verdict."""
    predicted = tree["predicted"].to_dataset()
    residual = tree["residual"].to_dataset() if "residual" in tree.children else None
    attributes = predicted.attrs
    console = _console()
    console.print(f"Theory: {attributes['theory']}; initial loss {attributes['initial_loss']:.6g}", markup=False)
    header = ["jump", "learned", "predicted time", "predicted level"]
    if residual is not None:
        header[2:] = ["predicted time", "observed time", "error", "predicted level", "observed level"]
        header += ["predicted slope", "observed slope"] if "slope" in residual else []
    _print_table(header, [_staircase_row(predicted, residual, k) for k in range(predicted.sizes["jump"])])
    reasons = predicted["reason"].to_numpy()
    slow = [int(number) for number, reason in zip(predicted["jump"].to_numpy(), reasons, strict=True) if reason]
    if slow and residual is not None:
        console.print("* slow: the time approaches its limit slowly, so it is shown but not judged.", markup=False)
        for number in slow[:_MOST_REASONS]:
            console.print(f"  jump {number}: {reasons[number - 1]}", markup=False)
        if len(slow) > _MOST_REASONS:
            console.print(f"  and {len(slow) - _MOST_REASONS} more, on the page")
    for warning in _warnings(tree):
        console.print(f"Warning: {warning}", markup=False)
    if "verdict_sentence" in tree.attrs:
        _print_verdict(console, tree)


def print_agreement(reference: Reference, tree: xr.DataTree) -> None:
    """The claim of a study, what was compared, and the verdict."""
    console = _console()
    console.print(reference.claim, markup=False)
    agreement = json.loads(tree.attrs["agreement"])
    _print_table(
        ["quantity", "error", "tolerance", "agrees", "why this tolerance"],
        [
            [
                name.replace("_", " "),
                _number(each["error"]),
                _number(each["tolerance"]),
                "not judged" if each["error"] is None and each["agrees"] else "yes" if each["agrees"] else "no",
                each["reason"],
            ]
            for name, each in agreement.items()
        ],
    )
    for warning in _warnings(tree):
        console.print(f"Warning: {warning}", markup=False)
    _print_verdict(console, tree)


def _staircase_row(predicted: xr.Dataset, residual: xr.Dataset | None, k: int) -> list[str]:
    jump = predicted.isel(jump=k)
    star = " *" if bool(jump["slow"]) else ""
    cells = [f"{int(jump['jump'])}{star}", str(jump["learned"].item()), _number(jump["jump_time"])]
    if residual is None:
        return [*cells, _number(jump["loss_after"])]
    seen = residual.isel(jump=k)
    error = float(seen["jump_time_error"])
    cells += [_number(seen["observed_jump_time"]), "–" if math.isnan(error) else f"{100 * error:+.1f} %"]
    cells += [_number(jump["loss_after"]), _number(seen["observed_loss_after"])]
    if "slope" in seen:
        cells += [_number(jump["accelerated_time"]), _number(seen["slope"])]
    return cells


def _warnings(tree: xr.DataTree) -> list[str]:
    return json.loads(tree["predicted"].attrs.get("warnings", "[]"))


def _print_verdict(console: Console, tree: xr.DataTree) -> None:
    colour = "green" if tree.attrs["verdict"] == "agree" else "red"
    console.print(f"[bold {colour}]{escape(tree.attrs['verdict_sentence'])}")


def _print_table(header: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    table = Table(box=SIMPLE_HEAD)
    for name in header:
        words = name in ("learned", "claim", "paper", "why this tolerance", "study", "quantity")
        table.add_column(name, justify="left" if words else "right", no_wrap=name in ("study", "jump"))
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    _console().print(table)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # The exit code is for the caller to choose; rich would take that of a disagreement.
        raise BrokenPipeError


def _console() -> Console:
    # A pipe has no width of its own; tables must not be cut there.
    return _Console(width=None if sys.stdout.isatty() else 140, highlight=False)


def _number(value: Any) -> str:
    return "–" if value is None or math.isnan(float(value)) else f"{float(value):.4g}"
