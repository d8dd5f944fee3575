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

# The face of a room loads what is behind it when it is used, so that listing the studies loads nothing heavy.
from dynascope import record

if TYPE_CHECKING:
    from dynascope.record import TreeView
    from dynascope.record.staircase_view import Jump
    from dynascope.record.tree_view import Tree
    from dynascope.studies import Reference

__all__ = ["print_agreement", "print_staircase", "print_studies"]

_MOST_REASONS = 10


def print_studies(rows: Sequence[Mapping[str, Any]]) -> None:
    """One study a row."""
    _print_table(
        ["study", "claim", "paper", "minutes"],
        [[row["study"], row["claim"], f"{row['paper']} (arXiv {row['arxiv']})", f"{row['minutes']:g}"] for row in rows],
    )


def print_staircase(tree: Tree) -> None:
    """The predicted jumps, beside the observed ones where the network was trained, and the verdict."""
    view = record.TreeView.of(tree)
    assert view.staircase is not None
    rows, attributes = view.staircase.rows, view.staircase.record.attrs
    seen = [jump.seen for jump in rows if jump.seen is not None]
    console = _console()
    console.print(f"Theory: {attributes['theory']}; initial loss {attributes['initial_loss']:.6g}", markup=False)
    header = ["jump", "learned", "predicted time", "predicted level"]
    if view.residual is not None:
        header[2:] = ["predicted time", "observed time", "error", "predicted level", "observed level"]
        header += ["predicted slope", "observed slope"] if any(each.slope is not None for each in seen) else []
    _print_table(header, [_staircase_row(jump) for jump in rows])
    slow = [jump for jump in rows if jump.reason]
    if slow and view.residual is not None:
        console.print("* slow: the time approaches its limit slowly, so it is shown but not judged.", markup=False)
        for jump in slow[:_MOST_REASONS]:
            console.print(f"  jump {jump.number}: {jump.reason}", markup=False)
        if len(slow) > _MOST_REASONS:
            console.print(f"  and {len(slow) - _MOST_REASONS} more, on the page")
    for warning in _warnings(view):
        console.print(f"Warning: {warning}", markup=False)
    if "verdict_sentence" in view.attributes:
        _print_verdict(console, view.attributes)


def print_agreement(reference: Reference, tree: Tree) -> None:
    """The claim of a study, what was compared, and the verdict."""
    view = record.TreeView.of(tree)
    console = _console()
    console.print(reference.claim, markup=False)
    agreement = json.loads(view.attributes["agreement"])
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
    for warning in _warnings(view):
        console.print(f"Warning: {warning}", markup=False)
    _print_verdict(console, view.attributes)


def _staircase_row(jump: Jump) -> list[str]:
    cells = [f"{jump.number}{' *' if jump.slow else ''}", jump.learned, _number(jump.time)]
    seen = jump.seen
    if seen is None:
        return [*cells, _number(jump.loss_after)]
    cells += [_number(seen.time), "–" if math.isnan(seen.time_error) else f"{100 * seen.time_error:+.1f} %"]
    cells += [_number(jump.loss_after), _number(seen.loss_after)]
    return cells if seen.slope is None else [*cells, _number(jump.accelerated_time), _number(seen.slope)]


def _warnings(view: TreeView) -> list[str]:
    return [] if view.predicted is None else json.loads(view.predicted.attrs.get("warnings", "[]"))


def _print_verdict(console: Console, attributes: Mapping[Any, Any]) -> None:
    colour = "green" if attributes["verdict"] == "agree" else "red"
    console.print(f"[bold {colour}]{escape(attributes['verdict_sentence'])}")


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
