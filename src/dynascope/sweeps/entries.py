"""The result of a cell: what its run returned, or why it failed, as an entry of the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dynascope.errors import DivergenceError, InputError
from dynascope.sweeps.cells import Cell, settings_of
from dynascope.sweeps.measurements import measurements

if TYPE_CHECKING:
    from dynascope.sweeps.runs import Run

__all__ = ["Outcome", "attempt", "failed_entry", "reason_of", "run_block"]

_LONGEST = 200  # characters of a reason
Outcome = dict[str, Any] | BaseException
"""What a run returned, or the exception that it raised."""


def run_block(run: Run, axes: Mapping[str, Sequence[Any]], cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Run the cells of a block and return their entries for the journal; a failed cell states its reason."""
    start = time.perf_counter()
    found = run.found([settings_of(cell, axes) for cell in cells])
    seconds = (time.perf_counter() - start) / len(cells)
    return [_entry(cell, each, seconds) for cell, each in zip(cells, found, strict=True)]


def _entry(cell: Cell, found: Outcome, seconds: float) -> dict[str, Any]:
    if isinstance(found, BaseException):
        return failed_entry(cell, reason_of(found), seconds)
    return {"cell": list(cell), "status": "done", "seconds": seconds, "reason": "", "values": found}


def failed_entry(cell: Cell, reason: str, seconds: float = 0.0) -> dict[str, Any]:
    """The entry of a failed cell."""
    return {"cell": list(cell), "status": "failed", "seconds": seconds, "reason": reason[:_LONGEST], "values": {}}


def reason_of(error: BaseException) -> str:
    """The message of an error in one line, with its type unless the message is for users.

    Example:
        >>> reason_of(ZeroDivisionError("division by zero"))
        'ZeroDivisionError: division by zero'
    """
    words = " ".join(str(error).split())
    plain = isinstance(error, InputError | DivergenceError) or type(error) is ArithmeticError
    return words if plain else f"{type(error).__name__}: {words}".removesuffix(": ")


def attempt(compute: Callable[..., Any], *arguments: Any, **named: Any) -> Outcome:
    """Call a function and extract what a cell stores, or return the exception."""
    try:
        return measurements(compute(*arguments, **named))
    except Exception as error:  # whatever a function of the user raises is the reason of its cell
        return error
