"""Delimited text, such as tables and loss curves, read into data frames."""

from __future__ import annotations

import codecs
import io
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dynascope.tasks.data.column_names import is_unnamed, require_different, with_names
from dynascope.tasks.data.decimal_marks import with_numbers
from dynascope.tasks.data.layout import find_layout, rows_of
from dynascope.validation import require

__all__ = ["ReadTable", "read_delimited"]

_LONGEST = 10**6  # characters in a line
_HEAD = 1000  # lines that determine the layout


class ReadTable(NamedTuple):
    """A table from a file.

    Attributes:
        frame: The columns.
        notes: One sentence for each decision about an ambiguous format.
        empty: Mask of the empty fields, with the shape of the frame; the text "nan" is a missing value but not empty.
    """

    frame: pd.DataFrame
    notes: list[str]
    empty: np.ndarray


def read_delimited(path: Path, *, argument: str = "path", header: bool = True) -> ReadTable:
    r"""Read columns from a text file.

    The separator (comma, semicolon, tab, bar, blanks or colon) is the one for which all rows have the same number of
    fields. Comments and lines of text before the column names are skipped. Decimal commas and thousands separators are
    recognised from the whole column or file. An unnamed column is named after its position, such as "Unnamed: 0", as in
    pandas. Row names without a header become the first column.

    Args:
        path: The file, in UTF-8, UTF-16 or Windows-1252.
        argument: Name of the argument that holds the path, for errors.
        header: Whether the first row holds names even if it consists of numbers.

    Raises:
        InputError: If rows differ in length, if no line names the columns, or if numbers are ambiguous.
        Exception: If the file is damaged; the type depends on pandas and Python.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "run.csv"
        ...     _ = path.write_text("# run 7\nstep;loss\n0;3,5\n1;2,5\n")
        ...     frame, notes, _ = read_delimited(path)
        >>> frame["loss"].tolist(), notes
        ([3.5, 2.5], ['Skipped before the column names: 1 line.', "Decimal commas were read in 'loss'."])
    """
    text, notes = _decoded(path.read_bytes())
    lines = io.StringIO(text, newline="").readlines()
    longest = max(map(len, lines), default=0)
    if longest > _LONGEST or not text.strip():
        raise ValueError(f"a line has {longest} characters" if longest else "it contains no text")
    comments = next((i for i, line in enumerate(lines) if not line.startswith("#")), 0)
    layout = find_layout(lines[: comments + _HEAD], path.name, argument=argument, header=header)
    names = with_names(["", *layout.names] if layout.row_names else layout.names)
    body, width = lines[layout.skipped :], 1
    for line, row in rows_of(body, layout.separator):
        width = max(width, len(row))
        # pandas pads short rows at the end, which shifts values into other columns if a field in the middle is missing.
        short = len(row) < len(names) and (layout.separator == " " or layout.row_names)
        require(
            not short and not "".join(row[len(names) :]).strip(),
            f"line {line + layout.skipped} of {path.name} has {len(row)} instead of {len(names)} fields",
            argument=argument,
            value=path.name,
            remedy="give each row one field per column, and quote text that contains the separator",
        )
    require_different(names, path.name, argument=argument)

    def read(**options: Any) -> pd.DataFrame:
        if not "".join(body).strip():
            return pd.DataFrame(columns=names)
        separator = r"\s+" if layout.separator == " " else layout.separator
        options |= {"sep": separator, "header": None, "names": range(max(width, len(names)))}
        frame = pd.read_csv(io.StringIO("".join(body)), skipinitialspace=True, low_memory=False, **options)
        return frame.iloc[:, : len(names)].set_axis(names, axis=1)

    frame, written = read(), read(dtype=str, keep_default_na=False, na_values=[""])
    kept = np.array([not is_unnamed(name) for name in names]) | frame.notna().to_numpy().any(axis=0)
    frame, written = frame.loc[:, kept], written.loc[:, kept]
    if layout.before:
        notes.append(f"Skipped before the column names: {layout.before} line{'s' if layout.before > 1 else ''}.")
    # In comma-separated files, only a quoted number can have a point as a thousands separator.
    points = layout.separator == "," and not re.search(r'"\s*[-+]?\d{1,3}\.\d{3}\s*"', text)
    frame, marks = with_numbers(frame, written, path.name, decimal_points=points, argument=argument)
    return ReadTable(frame, [*notes, *marks], written.isna().to_numpy())


def _decoded(data: bytes) -> tuple[str, list[str]]:
    """Decode the text, and return a sentence if the encoding was guessed."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16"), []
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError:
        return data.decode("cp1252"), ["The text was read as Windows-1252, because it is not valid UTF-8."]
