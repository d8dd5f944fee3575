"""Detection of the separator and the column names of delimited text from its first lines."""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence

from dynascope.validation import require

__all__ = ["Layout", "find_layout", "rows_of"]

_SEPARATORS = (",", ";", "\t", "|")
_UNUSUAL = (" ", ":")  # tried if no other separator fits; " " stands for any run of blanks
_NUMBER = re.compile(r"[-+]?(\d[\d.,'\u2019\u00a0\u202f]*|[.,]\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)", re.IGNORECASE)
_COMMENT = re.compile(r"[\s\"']*(#|//)[#/\s]*")


@dataclasses.dataclass(frozen=True)
class Layout:
    """Separator, column names and first rows of a delimited text.

    Attributes:
        separator: One character; " " stands for any run of blanks.
        names: The column names; empty if no line contains them.
        width: Most frequent number of fields per row, without blank fields at the end of every row.
        skipped: Number of lines up to and including the column names.
        before: Number of non-blank lines before the column names.
        rows: The first rows below the names.
        quoted: Whether every row starts with a quotation mark.
        divided: Whether the separator occurs in most rows.
    """

    separator: str
    names: tuple[str, ...]
    width: int
    skipped: int
    before: int
    rows: Sequence[Sequence[str]]
    quoted: bool
    divided: bool

    @property
    def row_names(self) -> bool:
        """Whether the header has one field fewer than the rows, so that the first field of each row is the row name."""
        return 0 < len(self.names) == self.width - 1

    @property
    def regular(self) -> bool:
        """Whether every row has one field per column name, apart from row names."""
        same = all(len(row) == self.width for row in self.rows)
        return same and (len(self.names) == self.width or (self.row_names and self.separator != ":"))

    @property
    def preference(self) -> tuple[bool, bool, float, int]:
        """Sort key of layouts: share of numeric fields, usual separators, and number of columns."""
        fields = [field for row in self.rows for field in row if field.strip()]
        numbers = sum(map(_is_number, fields)) / max(len(fields), 1)
        return numbers > 0, self.separator in _SEPARATORS and not self.row_names, numbers, self.width

    @property
    def firsts(self) -> list[str]:
        """The first field of each row."""
        return [row[0].strip() for row in self.rows]


def find_layout(lines: Sequence[str], source: str, *, argument: str, header: bool = True) -> Layout:
    """Find the layout under which all rows have the same number of fields, most of them numbers.

    Args:
        lines: The first lines of the text.
        source: Name of the text in errors.
        argument: Name of the argument that holds the text, for errors.
        header: Whether the first row holds names even if it consists of numbers.

    Raises:
        InputError: If no line names the columns, or if the rows begin with unnamed fields that can be numbers.

    Example:
        >>> layout = find_layout(["# metres", "a;b", "1,5;2", "2;3"], "trees.csv", argument="path")
        >>> layout.separator, layout.names, layout.width, layout.skipped
        (';', ('a', 'b'), 2, 2)
    """
    layouts = [_divided(lines, separator, header=header) for separator in (*_SEPARATORS, *_UNUSUAL)]
    require(
        any(each.names or each.rows for each in layouts),
        f"{source} contains only comments",
        argument=argument,
        value=source,
        remedy="write one line of column names, followed by the rows",
    )
    regular = [each for each in layouts if each.regular and each.divided]
    single = next((each for each in layouts if each.regular and not each.divided), None)
    ragged = [each for each in layouts if each.width > 1 and each.separator != ":"]
    usual = [each for each in ragged if each.separator in _SEPARATORS and len(each.names) > 1]
    layout = (
        max(regular, key=lambda each: each.preference, default=None)
        or max(usual, key=lambda each: len(each.names), default=None)
        or next((each for each in ragged if not each.names or each.separator == " "), None)
        or single
        or layouts[0]
    )
    # Two fields below one name are either row names or numbers with decimal commas.
    if single and layout.separator == "," and layout.row_names and layout.width == 2 and not _count_rows(layout.firsts):
        return single
    require(
        not layout.row_names or _may_name_rows(layout),
        f"the rows of {source} have {layout.width} fields, but line {layout.skipped} names only "
        f"{layout.width - 1} of them",
        argument=argument,
        value=source,
        remedy="name the first column, and either write numbers with decimal points or separate columns by semicolons",
    )
    require(
        bool(layout.names),
        f"no line of {source} names the {layout.width} columns",
        argument=argument,
        value=source,
        remedy="begin with one line of column names, quoted if they contain the separator, followed by data rows only",
    )
    return layout


def rows_of(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each with the number of its last line."""
    if separator == " ":
        lines = (" ".join(line.split()) for line in lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    for row in reader:
        if any(field.strip() for field in row):
            yield reader.line_num, row


def _divided(lines: Sequence[str], separator: str, *, header: bool) -> Layout:
    """Compute the layout for one separator, without column names if the first full row is data."""
    first = next((i for i, line in enumerate(lines) if line.strip() and not _COMMENT.match(line)), len(lines))
    comments = [line for line in lines[:first] if line.strip()]
    rows = [(first + line, row) for line, row in rows_of(lines[first:], separator)]
    counts = [len(row) for _, row in rows]
    width = max(set(counts), key=lambda count: (counts.count(count), count), default=1)
    place = next((i for i, count in enumerate(counts) if count >= width), 0)
    if separator == " ":  # a sentence above the header can have the same number of words
        place = next((i for i in range(len(counts), 0, -1) if counts[i - 1] != width), 0) % max(len(counts), 1)
    # A spreadsheet pads the lines above the header with separators.
    while place + 1 < len(rows) and _count_names(rows[place][1]) == 1 < _count_names(rows[place + 1][1]):
        place += 1
    names = rows[place][1] if rows else []
    before, below = len(comments) + place, place + 1
    if rows and not _count_names(names):
        last_comment = [_COMMENT.sub("", comment) for comment in comments[-1:]]
        above = rows[place - 1][1] if place else next(rows_of(last_comment, separator), (0, []))[1]
        if _count_names(above) and len(above) == width - bool(place):
            names, before, below = above, before - 1, place
        elif place:
            names, below = [], place
        elif not header and names[0] and all(_is_number(name) for name in names if name):
            names, below = [str(i) if name else "" for i, name in enumerate(names)], 0
    skipped = rows[below - 1][0] if rows and below else first
    data, divided = [row for _, row in rows[below:]], width > 1
    while width > 1 and not any("".join(row[width - 1 :]).strip() for row in (names, *data)):
        width -= 1  # a separator ends each row
    names, *data = (row if "".join(row[width:]).strip() else row[:width] for row in (names, *data))
    written = [lines[line - 1] for line, _ in rows[below:]]
    if separator == " " and len(names) == width and _stand_left_of(lines[skipped - 1], written):
        names = []  # a name contains a blank, and the first column has no name
    quoted = all(line.lstrip().startswith('"') for line in written)
    return Layout(separator, tuple(name.strip() for name in names), width, skipped, before, data, quoted, divided)


def _may_name_rows(layout: Layout) -> bool:
    """Whether the first fields are all different and are text or integers.

    If the separator is a comma, the first fields could also be parts of numbers with decimal commas. In this case, they
    must be quoted, or the file must have decimal points and any integers must number the rows.
    """
    numbers = [each for each in layout.firsts if _is_number(each)]
    if len(set(layout.firsts)) < len(layout.firsts) or not all(each.isdigit() for each in numbers):
        return False
    points = any("." in field and _is_number(field) for row in layout.rows for field in row[1:])
    return layout.separator != "," or layout.quoted or (points and (not numbers or _count_rows(layout.firsts)))


def _count_rows(firsts: Sequence[str]) -> bool:
    return list(firsts) in ([str(i + start) for i in range(len(firsts))] for start in (0, 1))


def _stand_left_of(header: str, rows: Sequence[str]) -> bool:
    """Whether all first fields end before the header begins, like row names in aligned columns."""
    start = len(header) - len(header.lstrip())
    return start > 0 and all(len(row) - len(row.lstrip()) + len(row.split()[0]) <= start for row in rows)


def _count_names(row: Sequence[str]) -> int:
    """Number of non-blank fields, or 0 if any field is a number."""
    return 0 if any(map(_is_number, row)) else sum(bool(field.strip()) for field in row)


def _is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field.strip()) is not None
