"""Finds the separator and the column names of delimited text from its first lines."""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Iterable, Iterator, Sequence

from dynascope.arguments import require
from dynascope.errors import InputError

__all__ = ["Layout", "find_layout", "require_equal_rows", "rows_of"]

_SEPARATORS = (",", ";", "\t", "|")
_UNUSUAL = (" ", ":")  # tried where no other separator fits; " " stands for any run of blanks
_NUMBER = re.compile(r"[-+]?(\d[\d.,'\u2019\u00a0\u202f]*|[.,]\d+)([eE][-+]?\d+)?|[-+]?(nan|inf)", re.IGNORECASE)
_COMMENT = re.compile(r"[\s\"']*(#|//)[#/\s]*")


@dataclasses.dataclass(frozen=True)
class Layout:
    """How a text is divided into columns.

    Attributes:
        separator: One character; " " stands for any run of blanks.
        names: The column names; empty if no line holds them.
        width: Number of fields in most rows.
        skipped: Number of lines up to and including the column names.
        before: Number of lines before the column names that are not blank.
        rows: The rows below, as far as they were looked at, each with the number of its line.
        quoted: Whether every row starts with a quote.
    """

    separator: str
    names: tuple[str, ...]
    width: int
    skipped: int
    before: int
    rows: Sequence[tuple[int, list[str]]]
    quoted: bool

    @property
    def short(self) -> bool:
        """Whether the header has one field fewer than the rows."""
        return 0 < len(self.names) == self.width - 1

    @property
    def regular(self) -> bool:
        """Whether there are several columns, and every row has the same number of fields."""
        same = all(len(row) == self.width for _, row in self.rows)
        return self.width > 1 and same and (len(self.names) == self.width or self.short)

    @property
    def fitness(self) -> tuple[float, int]:
        """The share of fields that are numbers, and the number of columns: of several layouts, the largest fits."""
        fields = [field for _, row in self.rows for field in row if field.strip()]
        return sum(map(_is_number, fields)) / max(len(fields), 1), self.width

    @property
    def ends_blank(self) -> bool:
        """Whether every row ends with a separator."""
        return not any(row[-1].strip() for _, row in self.rows)

    @property
    def names_rows(self) -> bool:
        """Whether the first fields must be row names: all different, and text or whole numbers.

        Between commas they must be quoted, or there must be a decimal point, and whole numbers must count the rows:
        otherwise the first fields may be parts of numbers with commas.
        """
        firsts = [row[0].strip() for _, row in self.rows]
        numbers = [each for each in firsts if _is_number(each)]
        if len(set(firsts)) < len(firsts) or not all(each.isdigit() for each in numbers):
            return False
        if self.quoted or self.separator != ",":
            return True
        points = any("." in field and _is_number(field) for _, row in self.rows for field in row[1:])
        return points and (not numbers or _count_rows(firsts))


def find_layout(lines: Sequence[str], source: str, *, argument: str, header: bool = True) -> Layout:
    """The layout under which all rows have the same number of fields, most of them numbers.

    Commas, semicolons, tabs and bars come before blanks and colons.

    Args:
        lines: The first lines of the text.
        source: Name of the text in errors.
        argument: Name of the argument that gave it, for errors.
        header: Whether the first row holds names even if it consists of numbers.

    Raises:
        InputError: No line names the columns, or the rows have one field more and the first may be no row name.

    Example:
        >>> layout = find_layout(["# metres", "a;b", "1,5;2", "2;3"], "trees.csv", argument="path")
        >>> layout.separator, layout.names, layout.width, layout.skipped
        (';', ('a', 'b'), 2, 2)
    """
    layouts = [_divided(lines, separator, header=header) for separator in (*_SEPARATORS, *_UNUSUAL)]
    require(
        any(each.names or each.rows for each in layouts),
        f"{source} holds nothing but comments",
        argument=argument,
        value=source,
        remedy="write one line of column names and the rows below them",
    )
    regular = sorted((each for each in layouts if each.regular), key=_preference, reverse=True)
    single = next((each for each in layouts if each.width == len(each.names) == 1 and _all_of(each, 1)), None)
    for layout in regular:
        if not layout.short or layout.ends_blank or (layout.names_rows and layout.separator != ":"):
            return layout
        decimals = layout.separator == "," and layout.width == 2 and not _count_rows(row[0] for _, row in layout.rows)
        if layout.separator != ":" and not (decimals and single is not None):
            raise InputError(
                f"the rows of {source} have {layout.width} fields and line {layout.skipped} names {layout.width - 1}",
                argument=argument,
                value=source,
                remedy="name the first column, and write numbers with decimal points or put semicolons between columns",
            )
    ragged = [each for each in layouts if each.separator in _SEPARATORS and each.width > 1 and len(each.names) > 1]
    if ragged:
        return max(ragged, key=lambda each: len(each.names))
    unnamed = next((each for each in layouts if not each.names and each.width > 1 and each.separator != ":"), None)
    before = "" if unnamed is None else f"lines 1 to {unnamed.skipped}" if unnamed.skipped > 1 else "line 1"
    require(
        unnamed is None,
        f"{before} of {source} {'are' if ' to ' in before else 'is'} not divided into columns as the lines below",
        argument=argument,
        value=source,
        remedy="remove what is not data, and begin with one line of column names, in quotes if they hold the separator",
    )
    blanks = next(each for each in layouts if each.separator == " ")
    if single is None or blanks.width > 1:
        require_equal_rows(blanks.rows, max(len(blanks.names), blanks.width), source, argument=argument)
    return single or blanks


def require_equal_rows(
    rows: Iterable[tuple[int, list[str]]], width: int, source: str, *, argument: str, shorter: bool = False
) -> None:
    """Raise `InputError` if a row has more fields than there are columns, or fewer unless these are allowed."""
    for line, row in rows:
        require(
            len(row) == width or (shorter and len(row) < width),
            f"line {line} of {source} has {len(row)} fields, and there are {width} columns",
            argument=argument,
            value=source,
            remedy="give each row one field for each column, and put quotes around text that holds the separator",
        )


def rows_of(lines: Iterable[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """The rows of a text that are not blank, each with the number of its last line."""
    if separator == " ":
        lines = (" ".join(line.split()) for line in lines)
    reader = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    for row in reader:
        if any(field.strip() for field in row):
            yield reader.line_num, row


def _divided(lines: Sequence[str], separator: str, *, header: bool) -> Layout:
    """The layout of the lines for a separator, without names if the first full row is data."""
    comments = next((i for i, line in enumerate(lines) if line.strip() and not _COMMENT.match(line)), len(lines))
    rows = [(comments + line, row) for line, row in rows_of(lines[comments:], separator)]
    counts = [len(row) for _, row in rows]
    width = max(set(counts), key=lambda count: (counts.count(count), count), default=1)
    place = next((i for i, count in enumerate(counts) if count >= width), 0)
    if separator == " ":  # a sentence above the header may have as many words
        place = next((i for i in range(len(counts), 0, -1) if counts[i - 1] != width), 0) % max(len(counts), 1)
    # A spreadsheet pads the lines above the header with separators.
    while place + 1 < len(rows) and _is_title(rows[place][1]) and _is_header(rows[place + 1][1], 2):
        place += 1
    names = [name.strip() for name in rows[place][1]] if rows else []
    above = [line for line in lines[:comments] if line.strip()]
    skipped, before = (rows[place][0], len(above) + place) if rows else (0, 0)
    data = bool(rows) and not _is_header(names, 1)
    if data and place > 0:
        place -= 1
        skipped, before = rows[place][0], before - 1
        names = rows[place][1] if counts[place] == width - 1 and _is_header(rows[place][1], 1) else []
    elif data:
        commented = next(rows_of([_COMMENT.sub("", above[-1])], separator), (0, []))[1] if above else []
        if len(commented) == width and _is_header(commented, 1):
            names, place, skipped, before = commented, -1, comments, before - 1
        elif not header and names[0] and all(_is_number(name) for name in names if name):
            names, place, skipped = [str(i) if name else "" for i, name in enumerate(names)], -1, comments
    while len(names) > width and not names[-1].strip():
        names.pop()
    rows = rows[place + 1 :]
    if (
        separator == " "
        and len(names) == width
        and _stands_left_of(lines[skipped - 1], [lines[i - 1] for i, _ in rows])
    ):
        names = []  # a name holds a blank, and the first column has none
    quoted = bool(rows) and all(lines[line - 1].lstrip().startswith('"') for line, _ in rows)
    return Layout(separator, tuple(name.strip() for name in names), width, skipped, before, rows, quoted)


def _preference(layout: Layout) -> tuple[bool, bool, tuple[float, int]]:
    usual = layout.separator in _SEPARATORS and not layout.short
    return layout.fitness[0] > 0, usual, layout.fitness


def _stands_left_of(header: str, rows: Sequence[str]) -> bool:
    """Whether all first fields end before the header begins, as row names do in columns that are aligned."""
    start = len(header) - len(header.lstrip())
    return start > 0 and all(len(row) - len(row.lstrip()) + len(row.split()[0]) <= start for row in rows)


def _is_title(row: Sequence[str]) -> bool:
    return len(row) > 1 and bool(row[0].strip()) and not any(field.strip() for field in row[1:])


def _is_header(row: Sequence[str], least: int) -> bool:
    """Whether a row has at least so many names and no number."""
    return sum(bool(field.strip()) for field in row) >= least and not any(_is_number(field) for field in row)


def _is_number(field: str) -> bool:
    return _NUMBER.fullmatch(field.strip()) is not None


def _all_of(layout: Layout, width: int) -> bool:
    return all(len(row) == width for _, row in layout.rows)


def _count_rows(firsts: Iterable[str]) -> bool:
    """Whether the fields count the rows, from 0 or 1."""
    firsts = [each.strip() for each in firsts]
    counted = [str(number) for number in range(len(firsts) + 1)]
    return firsts in (counted[:-1], counted[1:])
