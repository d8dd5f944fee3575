"""Reads delimited text into a data frame: tables and loss curves alike."""

from __future__ import annotations

import codecs
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pandas as pd

from dynascope.tasks.data.layout import Layout, find_layout, require_equal_rows, rows_of
from dynascope.tasks.data.names import is_unnamed, require_different, with_names
from dynascope.tasks.data.number_marks import with_numbers

__all__ = ["read_delimited"]

_LONGEST = 10**6  # characters in a line
_HEAD = 2**18  # characters from which the layout is found
_PART = 2**20  # bytes decoded at once


def read_delimited(
    path: Path, *, argument: str = "path", header: bool = True, text: bool = False
) -> tuple[pd.DataFrame, list[str]]:
    r"""Read a text file of columns.

    The separator is the one of comma, semicolon, tab, bar, blanks and colon under which all rows have the same number
    of fields. Comments and lines of text before the column names are skipped. Decimal commas and marks between
    thousands are read where the whole column, or the whole file, shows which they are.

    Args:
        path: The file, in UTF-8, UTF-16 or Windows-1252.
        argument: Name of the argument that holds the path, for errors.
        header: Whether the first row holds names even if it consists of numbers.
        text: Whether to return all values as they are written, where only an empty field is missing.

    Returns:
        The columns, and one sentence for each decision that the text did not force. A
        column without a name is called "Unnamed: 0" by its place, as in pandas; row names without a header come first.

    Raises:
        InputError: Rows differ in length, no line names the columns, or a number can be read in two ways.
        Exception: The file is damaged; pandas and Python raise a dozen types.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "run.csv"
        ...     _ = path.write_text("# run 7\nstep;loss\n0;3,5\n1;2,5\n")
        ...     frame, notes = read_delimited(path)
        >>> frame["loss"].tolist(), notes
        ([3.5, 2.5], ['Skipped before the column names: 1 line.', "Decimal commas were read in 'loss'."])
    """
    encoding, notes = _encoding(path)
    with path.open(encoding=encoding, newline="") as stream:
        layout = find_layout(_first_lines(stream), path.name, argument=argument, header=header)
    columns = max(len(layout.names), layout.width)
    # pandas fills short rows at their end, which moves numbers to other columns if a field within is missing.
    shorter = layout.separator != " " and not layout.short
    with _below(path, encoding, layout) as stream:
        rows = ((line + layout.skipped, row) for line, row in rows_of(stream, layout.separator))
        require_equal_rows(rows, columns, path.name, argument=argument, shorter=shorter)

    def read(**options: Any) -> pd.DataFrame:
        if not layout.rows:
            return pd.DataFrame(columns=range(columns))
        separator = r"\s+" if layout.separator == " " else layout.separator
        options |= {"header": None, "names": range(columns), "skipinitialspace": True, "low_memory": False}
        with _below(path, encoding, layout) as stream:
            return pd.read_csv(stream, sep=separator, **options)

    frame = read()
    blank = np.flatnonzero(frame.isna().to_numpy().all(axis=0)).tolist()
    names = list(layout.names)
    if layout.short:
        names.insert(columns if layout.ends_blank and columns - 1 in blank else 0, "")
    names = with_names(names)
    # A separator at the end of each row makes a blank column without a name.
    kept = [place for place, name in enumerate(names) if not (is_unnamed(name) and place in blank)]
    names = [names[place] for place in kept]
    require_different(names, path.name, argument=argument)

    def named(frame: pd.DataFrame) -> pd.DataFrame:
        return frame.iloc[:, kept].set_axis(names, axis=1)

    if layout.before:
        notes.append(f"Skipped before the column names: {layout.before} line{'s' if layout.before > 1 else ''}.")
    if text:
        return named(read(dtype=str, keep_default_na=False, na_values=[""])), notes
    frame, marks = with_numbers(named(frame), lambda: named(read(dtype=str)), path.name, argument=argument)
    return frame, [*notes, *marks]


@contextlib.contextmanager
def _below(path: Path, encoding: str, layout: Layout) -> Iterator[TextIO]:
    """The text below the column names."""
    with path.open(encoding=encoding, newline="") as stream:
        for _ in range(layout.skipped):
            stream.readline()
        yield stream


def _first_lines(stream: TextIO) -> list[str]:
    """The lines from which the layout is found, all of them complete."""
    lines: list[str] = []
    size = 0
    while size < _HEAD and (line := stream.readline(_LONGEST)):
        if len(line) >= _LONGEST:
            raise ValueError(f"line {len(lines) + 1} has more than {_LONGEST} characters")
        lines.append(line)
        size += 0 if line.startswith("#") else len(line)
    if not any(line.strip() for line in lines):
        raise ValueError("it holds no text")
    return lines


def _encoding(path: Path) -> tuple[str, list[str]]:
    """The encoding of the file, and a sentence if it was guessed."""
    with path.open("rb") as stream:
        if stream.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
            return "utf-16", []
        stream.seek(0)
        decoder = codecs.getincrementaldecoder("utf-8")()
        try:
            for part in iter(lambda: stream.read(_PART), b""):
                decoder.decode(part)
        except UnicodeDecodeError:
            return "cp1252", ["Letters were read as Windows-1252, since they are not UTF-8."]
    return "utf-8-sig", []
