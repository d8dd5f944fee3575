"""Files of columns: delimited text and Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet

from dynascope.errors import InputError
from dynascope.tasks.data.delimited import ReadTable, read_delimited
from dynascope.validation import require_unpacked, shown_error

__all__ = ["TABLES", "read_frame"]

TABLES = (".csv", ".tsv", ".txt", ".dat", ".parquet")
_NUMBER = 4  # bytes that a byte of text takes as numbers, since two make one


def read_frame(path: Path, *, argument: str = "path", header: bool = True) -> ReadTable:
    """Read the columns of a file: Parquet by its extension, and otherwise text.

    Args:
        path: The file.
        argument: Name of the argument that holds the path, for errors.
        header: Whether the first row of a text holds names even if it consists of numbers.

    Raises:
        InputError: The file is no table of columns whose names differ, or larger than may be unpacked.
    """
    packed = path.suffix.lower() == ".parquet"
    try:
        size = _parquet_size(path) if packed else _NUMBER * path.stat().st_size
        require_unpacked(size, path.name, argument=argument, value=str(path))
        if packed:
            frame = pd.read_parquet(path)
            return ReadTable(frame, [], frame.isna().to_numpy())
        return read_delimited(path, argument=argument, header=header)
    except InputError:
        raise
    except Exception as error:  # damaged files raise a dozen types, most of them undocumented
        reason = shown_error(error)
        raise InputError(
            f"{path.name} cannot be read as a table ({reason})",
            argument=argument,
            value=str(path),
            remedy="write it with pandas.DataFrame.to_parquet"
            if packed
            else "write it in UTF-8 with commas between columns and one row of column names",
        ) from None


def _parquet_size(path: Path) -> int:
    """Bytes of the columns, at least those of one number for each row, as a file can store equal values once."""
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
