"""Terminal output of predictions and studies: tables and the verdict."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

# Rooms load their modules lazily, so that listing the studies is fast.
from dynascope import results
from dynascope.cli.width import page_width
from dynascope.comparison import verdict
from dynascope.results import staircase_names as names
from dynascope.results.staircase_view import counted_words

if TYPE_CHECKING:
    from dynascope.comparison.verdict import Row
    from dynascope.protocols import Learnable
    from dynascope.results import Claim, Result, StaircaseView, Verdict
    from dynascope.results.staircase_view import Jump
    from dynascope.results.tree import AnyResult
    from dynascope.studies import Reference

__all__ = [
    "print_agreement",
    "print_data",
    "print_heading",
    "print_staircase",
    "print_table",
    "print_text",
    "print_warnings_and_verdict",
]

_MOST_WORDS = 4  # learned features listed for each jump over many seeds
_LARGE = 1e6
_NUMBER = 10  # terminal columns of a table column of numbers


def print_data(task: Learnable) -> None:
    """Print the preprocessing steps of the data, one sentence per line."""
    for sentence in task.attributes().get("description", ()):
        print(textwrap.fill(sentence, page_width(), subsequent_indent="  ", break_long_words=False))


def print_staircase(tree: AnyResult) -> None:
    """Print the predicted jumps, the observed ones if the network was trained, and the verdict."""
    view = results.from_tree(tree)
    assert view.staircase is not None
    rows, attributes = view.staircase.shown, view.staircase.record.attrs
    seen = [jump.seen for jump in rows if jump.seen is not None]
    console = _console()
    print_heading(attributes)
    clock = view.staircase.clock
    if attributes["convention"] != results.CONVENTION:
        print_text(f"Units of your run: {attributes['convention']}.", indent="")
    header = ["jump", "learned", f"predicted {clock}", "predicted level"]
    if view.residual is not None:
        header[2:] = [f"predicted {clock}", f"observed {clock}", "error", "predicted level", "observed level"]
        header += ["predicted slope", "observed slope"] if any(each.slope is not None for each in seen) else []
    cells = [_staircase_row(jump) for jump in rows]
    on_clocks = {
        f"predicted {name}": [getattr(jump, name) for jump in rows] for name in ("step", "epoch") if name != clock
    }
    for place, (name, numbers) in enumerate(on_clocks.items()):
        if any(map(math.isfinite, numbers)):
            header.insert(3 + place, name)
            for row, number in zip(cells, numbers, strict=True):
                row.insert(3 + place, _count(number) if name.endswith("step") else _number(number, 3))
    if max((len(jump.learned) for jump in rows), default=0) <= page_width() - _NUMBER * (len(header) - 1):
        print_table(header, cells)
    else:
        print_table([header[0], *header[2:]], [[row[0], *row[2:]] for row in cells])
        for jump in rows:
            print_text(f"jump {jump.number}: {jump.learned}")
        print()
    if tolerances := _time_tolerances(rows):
        print_text(tolerances, indent="")
    if view.staircase.gathered:
        print_text(view.staircase.gathered, indent="")
    if "steps" in attributes and clock == "time":
        print_text(f"Steps are training steps {attributes['steps']}.", indent="")
    _print_seeds(view.staircase)
    if any(jump.slow for jump in rows):
        console.print("* slow: the predicted time is uncertain at this scale, so the jump is not scored.", markup=False)
    print_warnings_and_verdict(view)


def print_heading(attributes: Mapping[Any, Any]) -> None:
    """Print the theory and the initial loss."""
    _console().print(f"Theory: {attributes['theory']}; initial loss {attributes[names.INITIAL_LOSS]:.6g}", markup=False)
    if "theory_choice" in attributes:
        print_text(f"{attributes['theory_choice']} `dynascope which` lists the alternatives.")


def print_warnings_and_verdict(view: Result) -> None:
    """Print the warnings and the verdict, if any."""
    console = _console()
    for warning in view.warnings:
        console.print(f"Warning: {warning}", markup=False)
    if view.verdict is not None:
        _print_verdict(console, view.verdict)


def print_agreement(reference: Reference, tree: AnyResult) -> None:
    """Print the claim of a study, the compared quantities and the verdict."""
    view = results.from_tree(tree)
    console = _console()
    console.print(reference.claim, markup=False)
    for quantities, mark in ((view.quantities, "agrees"), (view.checks, "holds")):
        rows = verdict.quantity_rows(quantities, view)
        if not rows:
            continue
        reasons = verdict.reasons_of(rows)
        _print_quantities(rows, reasons if len(reasons) > 1 else {}, mark)
        for reason, letter in reasons.items():
            label = f"{letter}: " if len(reasons) > 1 else "Reason for the tolerance: "
            print_text(f"{label}{reason.removesuffix('.')}.")
        print()
    claims = [each for each in view.claims.values() if each.decides]
    for claim in claims:
        print_text(_described(claim), indent="")
    if claims:
        print()
    for warning in view.warnings:
        console.print(f"Warning: {warning}", markup=False)
    assert view.verdict is not None
    _print_verdict(console, view.verdict)


def _described(claim: Claim) -> str:
    """Format a claim: outcome, statement, and the measured value or the reason why it is undecided."""
    value, low, high = (_number(each, claim.digits) for each in (claim.value, *claim.interval))
    units = f" {claim.units}" if claim.units else ""
    known = claim.interval[0] == claim.interval[1]
    measured = claim.why_undecided or (f"{value}{units}" if known else f"{value}{units}, {low} to {high}")
    if not known and not claim.why_undecided and math.isfinite(claim.least) and math.isfinite(claim.most):
        measured += f"; claimed {claim.expected}"
    if claim.why_undecided and math.isfinite(claim.value):
        measured = f"{value}{units}; {measured}"
    return f"{claim.outcome.capitalize()}: {claim.statement.removesuffix('.')} ({measured})."


def _print_quantities(rows: Sequence[Row], letters: Mapping[str, str], mark: str) -> None:
    """Print one row for each quantity, including its largest error if it has a tolerance."""
    worst = any(row.largest is not None for row in rows)
    header = ["quantity", "error", *(["largest error"] if worst else []), "tolerance", mark]
    print_table(
        [*header, *(["why"] if letters else [])],
        [
            [
                row.name,
                _number(row.error, 2),
                *([_number(row.largest, 2) if row.largest is not None else ""] if worst else []),
                _number(row.tolerance, 2)
                + ("" if row.largest_tolerance is None else f"\n{_number(row.largest_tolerance, 2)} largest"),
                "not scored" if not row.judged else "yes" if row.agrees else "no",
                *([letters.get(row.reason, "")] if letters else []),
            ]
            for row in rows
        ],
    )


def _print_seeds(staircase: StaircaseView) -> None:
    """Print a table with statistics of the jumps over many draws of the initial weights."""
    shown = {jump.number for jump in staircase.shown}
    jumps = [jump for jump in staircase.over_seeds if jump.number in shown]
    if not jumps:
        return
    print(f"Over {staircase.seeds} draws of the initial weights:")
    clock = staircase.clock
    print_table(
        ["jump", "number of draws", f"median {clock}", f"earliest {clock}", f"latest {clock}", "learned"],
        [
            [
                str(jump.number),
                str(jump.seen),
                *(_number(each) for each in (jump.median, jump.earliest, jump.latest)),
                counted_words(jump, most=_MOST_WORDS),
            ]
            for jump in jumps
        ],
    )
    print()


def _staircase_row(jump: Jump) -> list[str]:
    cells = [f"{jump.number}{' *' if jump.slow else ''}", jump.learned, _number(jump.time)]
    seen = jump.seen
    if seen is None:
        return [*cells, _number(jump.loss_after)]
    cells += [
        names.NOT_DUE if seen.status == names.NOT_DUE else _number(seen.time),
        "–" if math.isnan(seen.time_error) else f"{100 * seen.time_error:+.1f} %",
    ]
    cells += [_number(jump.loss_after), _number(seen.loss_after)]
    return cells if seen.slope is None else [*cells, _number(jump.accelerated_time), _number(seen.slope)]


def _time_tolerances(rows: Sequence[Jump]) -> str:
    """State the tolerances for the times of the scored jumps; empty if no jump is scored."""
    scored = [jump.seen for jump in rows if jump.status == names.JUDGED and jump.seen is not None]
    found = sorted(100 * seen.time_tolerance for seen in scored if math.isfinite(seen.time_tolerance))
    least, most = ([_number(found[0], 2), _number(found[-1], 2)]) if found else ("", "")
    if not found or least == most:
        return f"Tolerance for the jump times: {most} %." if found else ""
    return f"Tolerances for the jump times: {least} to {most} %."


def _print_verdict(console: Console, found: Verdict) -> None:
    colour = {"agree": "green", "disagree": "red"}.get(found.outcome, "yellow")
    console.print(f"[bold {colour}]{verdict.HEADINGS[found.outcome]}.")
    print_text(found.sentence, indent="")


def print_text(text: str, indent: str = "  ") -> None:
    """Print a paragraph, wrapped to the page width."""
    print(
        textwrap.fill(text, page_width(), initial_indent=indent, subsequent_indent=2 * indent, break_long_words=False)
    )


def print_table(header: Iterable[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table that fits the page width."""
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False, show_edge=False)
    for name in header:
        words = name in ("learned", "quantity")
        # Headings of numeric columns take two lines, to leave more width for text.
        title = name if words else name.replace(" ", "\n", 1)
        table.add_column(title, justify="left" if words else "right", no_wrap=name == "jump")
    for row in rows:
        table.add_row(*(escape(cell) for cell in row))
    _console().print(table)


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # The caller chooses the exit code; rich would exit with 1, which means disagreement.
        raise BrokenPipeError


def _console() -> Console:
    return _Console(width=page_width(), highlight=False)


def _count(value: float) -> str:
    return f"{value:.0f}" if abs(value) < 1e7 else _number(value, 3)


def _number(value: Any, digits: int = 4) -> str:
    if value is None or math.isnan(float(value)):
        return "–"
    if math.isinf(float(value)):
        return "∞" if value > 0 else "-∞"
    # Print thousands as integers rather than in scientific notation.
    return f"{float(value):{'.0f' if 10**digits <= abs(float(value)) < _LARGE else f'.{digits}g'}}"
