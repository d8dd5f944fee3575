"""What a sweep will cost, estimated from one of its cells."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from dynascope.sweeps.entries import run_block
from dynascope.sweeps.running import MOST_CELLS, checked_sweep, cores
from dynascope.validation import checked
from dynascope.validation.bounded_scalars import NonNegativeInt, PositiveInt

__all__ = ["Estimate", "estimate_sweep"]

_TEXTS = 4 * (200 + 7)  # bytes of the reason and the status of a cell


class Estimate(NamedTuple):
    """The cost of a sweep.

    Attributes:
        cells: Number of cells.
        bytes: Size of the store without compression.
        minutes: Duration with the given number of workers, each of which compiles its programs once.
    """

    cells: int
    bytes: int
    minutes: float

    def __str__(self) -> str:
        time = f"{self.minutes:.2g} minutes" if self.minutes >= 1 else f"{60 * self.minutes:.2g} s"
        size = f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1e5 else f"{self.bytes / 1e3:.1f} kB"
        note = "estimated from one cell; starting workers and compiling in each take longer"
        return f"{self.cells} cells, at most {size}, about {time} ({note})."


@checked
def estimate_sweep(
    run: Any,
    *,
    over: Mapping[str, Any],
    workers: NonNegativeInt | None = None,
    most_cells: PositiveInt | None = MOST_CELLS,
    **fixed: Any,
) -> Estimate:
    """Run the cell in the middle of a sweep twice, and estimate the cost of all cells.

    Args:
        run: As for `sweep`.
        over: As for `sweep`.
        workers: As for `sweep`.
        most_cells: As for `sweep`.
        **fixed: As for `sweep`.

    Raises:
        InputError: As for `sweep`.

    Example:
        >>> estimate_sweep(lambda rate: rate**2, over={"rate": [1.0, 2.0]}).cells
        2
    """
    what, axes = checked_sweep(run, over, fixed, most_cells=most_cells)
    count = math.prod(map(len, axes.values()))
    middle = tuple(len(values) // 2 for values in axes.values())
    start = time.perf_counter()
    (entry,) = run_block(what, axes, [middle])
    first = time.perf_counter() - start
    (entry,) = run_block(what, axes, [middle])
    again = min(entry["seconds"], first)
    processes = min(workers or cores(), count)
    size = _TEXTS + sum(8 * (len(value) if dims else 1) for dims, value in entry["values"].values())
    return Estimate(count, count * size, (first + again * count / processes) / 60)
