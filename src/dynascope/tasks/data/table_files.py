"""Files of tables: named columns."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet

from dynascope.arguments import require, require_unpacked, shown_error
from dynascope.errors import InputError
from dynascope.tasks.data.columns import listed

__all__ = ["TABLES", "read_table"]

TABLES = (".csv", ".tsv", ".parquet")
_SEPARATORS = (",", ";", "\t")
_DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+([eE][-+]?\d+)?")
_NUMBER = 4  # bytes that a byte of text takes as numbers, since two make one
_LONGEST = 10**6  # letters of a line
_PART = 2**20  # bytes that are looked at in one go
_WHOLE = re.compile(r"[-+]?\d+")


def read_table(path: Path) -> tuple[dict[str, pd.Series], list[str]]:
    """Read the columns of a table by name.

    A `.csv` file is separated by commas, semicolons or tabs, whichever makes most columns of its first row, and a
    `.tsv` file by tabs. Where commas do not separate, they may stand for the decimal point.

    Returns:
        The columns by name, and sentences if decimal commas, or letters of another encoding than UTF-8, were read.

    Raises:
        InputError: A file that is not a table whose columns all have a name of their own.
    """
    packed = path.suffix.lower() == ".parquet"
    try:
        require_unpacked(_parquet_size(path) if packed else _NUMBER * path.stat().st_size, path.name, value=str(path))
        columns, notes = _read_parquet(path) if packed else _read_text(path)
    except InputError:
        raise
    except Exception as error:  # damaged files raise a dozen types, most of them undocumented
        reason = shown_error(error)
        raise InputError(
            f"{path.name} cannot be read as a table ({reason})",
            argument="path",
            value=str(path),
            remedy="write it with pandas.DataFrame.to_parquet"
            if packed
            else "write it in UTF-8 with commas between columns and one row of column names",
        ) from None
    header = [name for name, _ in columns]
    repeated = sorted({name for name in header if header.count(name) > 1})
    problem, remedy = "", ""
    if "" in header:
        problem = f"column {header.index('') + 1} of {path.name} has no name"
        remedy = "name it, or leave it out if it numbers the rows (to_csv(…, index=False) in pandas)"
    elif repeated:
        problem, remedy = f"{path.name} has several columns named {listed(repeated)}", "give each its own name"
    require(not problem, problem, argument="path", value=str(path), remedy=remedy)
    return dict(columns), notes


def _parquet_size(path: Path) -> int:
    """Bytes of the columns, at least those of one number for each row, as a file can say many equal ones by one."""
    told = pyarrow.parquet.read_metadata(path)
    groups = sum(told.row_group(place).total_byte_size for place in range(told.num_row_groups))
    numbers = told.num_rows * told.num_columns * np.dtype(float).itemsize
    kinds = [told.schema.column(place) for place in range(told.num_columns)]
    fixed = sum(
        told.row_group(group).column(place).num_values * max(kind.length, 0)
        for group in range(told.num_row_groups)
        for place, kind in enumerate(kinds)
    )
    known = max(groups, numbers, fixed)
    require_unpacked(known, path.name, value=str(path))
    # A text that rows share is stored once; so it is read here, and counted for every row.
    names = [kind.path for kind in kinds if kind.physical_type == "BYTE_ARRAY" and kind.logical_type.type != "DECIMAL"]
    shared = pyarrow.parquet.ParquetFile(path, read_dictionary=names).read(columns=names)
    texts = (text for column in shared.columns for part in column.chunks for text in _texts(part))
    lengths = (pc.call_function("binary_length", [text.dictionary]).take(text.indices) for text in texts)
    return known + sum(pc.call_function("sum", [each]).as_py() or 0 for each in lengths)


def _texts(part: pyarrow.Array) -> Iterator[pyarrow.DictionaryArray]:
    """The texts of a column, also those in lists and records; of two columns of one name, one has none."""
    if isinstance(part, pyarrow.DictionaryArray):
        yield part
    elif isinstance(part, pyarrow.StructArray):
        for each in part.flatten():
            yield from _texts(each)
    elif hasattr(part, "flatten"):
        yield from _texts(part.flatten())


def _read_parquet(path: Path) -> tuple[list[tuple[str, pd.Series]], list[str]]:
    return [(str(name), column) for name, column in pd.read_parquet(path).items()], []


def _read_text(path: Path) -> tuple[list[tuple[str, pd.Series]], list[str]]:
    encoding, told = _encoding(path)
    separator = "\t" if path.suffix.lower() == ".tsv" else _separator(path, encoding)
    # The header is read apart because pandas renames the second of two equal names; with one row of values, because
    # it would take those beyond the header's last name to number the rows.
    usual: dict[str, Any] = {"skipinitialspace": True, "sep": separator, "encoding": encoding}
    names = pd.read_csv(path, header=None, nrows=2, dtype=str, keep_default_na=False, **usual)
    table = pd.read_csv(path, low_memory=False, **usual)
    header = [str(name).strip() for name in names.iloc[0]]
    columns = list(zip(header, (column for _, column in table.items()), strict=True))
    # A separator at the end of each row makes a blank column without a name.
    columns = [(name, column) for name, column in columns if name or column.notna().any()]
    commas = [] if separator == "," else [name for name, column in columns if _has_decimal_commas(column)]
    if not commas:
        return columns, told
    columns = [(name, _with_points(column) if name in commas else column) for name, column in columns]
    return columns, [*told, f"Decimal commas were read in {listed(commas)}."]


def _encoding(path: Path) -> tuple[str, list[str]]:
    """That of the file, and a sentence where it had to be guessed."""
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


def _separator(path: Path, encoding: str) -> str:
    """The one that makes most columns of the first row; a comma where none does."""
    with path.open(encoding=encoding, newline="") as stream:
        first = next((line for line in iter(lambda: stream.readline(_LONGEST), "") if line.strip()), "")
    if len(first) >= _LONGEST:
        raise ValueError(f"its first line has more than {_LONGEST} letters")
    return max(_SEPARATORS, key=lambda each: len(next(csv.reader([first], delimiter=each, skipinitialspace=True))))


def _has_decimal_commas(column: pd.Series) -> bool:
    if pd.api.types.infer_dtype(column, skipna=True) != "string":
        return False
    present = column.dropna().str.strip()
    with_comma = present.map(lambda text: _DECIMAL_COMMA.fullmatch(text) is not None)
    return bool(with_comma.any()) and all(_WHOLE.fullmatch(text) for text in present[~with_comma])


def _with_points(column: pd.Series) -> pd.Series:
    return column.str.strip().str.replace(",", ".").astype(np.float64)
