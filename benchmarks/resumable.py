"""Tables that are filled row by row, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

__all__ = ["keep", "rows"]


def rows(file: Path) -> list[dict[str, str]]:
    """What the file holds already."""
    if not file.exists():
        return []
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def keep(file: Path, row: dict[str, Any], columns: Sequence[str], *, shown: Sequence[str] = ()) -> None:
    """Append a row, and print it, or the columns of it that are to be shown."""
    new = not file.exists()
    with file.open("a", newline="") as lines:
        writer = csv.DictWriter(lines, columns)
        if new:
            writer.writeheader()
        writer.writerow(row)
    print(" ".join(f"{row.get(name, ''):>12}" for name in shown or columns), flush=True)
