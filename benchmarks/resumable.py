"""Tables that are written row by row, so that a stopped run can be resumed."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["keep", "rows"]


def rows(file: Path) -> list[dict[str, str]]:
    """Return the rows that are already in the file."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def keep(file: Path, row: dict[str, Any], columns: Sequence[str], *, shown: Sequence[str] = ()) -> None:
    """Append a row to the file and print it, or only its columns in `shown`."""
    new = not file.exists()
    with file.open("a", newline="") as lines:
        writer = csv.DictWriter(lines, columns, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(" ".join(f"{row.get(name, ''):>12}" for name in shown or columns), flush=True)
