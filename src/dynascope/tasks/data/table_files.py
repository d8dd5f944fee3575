"""Table files: delimited text and Parquet."""

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
_NUMBER = 4  # bytes of memory per byte of text, because a number takes at least two characters


def read_frame(path: Path, *, argument: str = "path", header: bool = True) -> ReadTable:
    """Read the columns of a Parquet or text file, chosen by the extension.

    Args:
        path: The file.
        argument: Name of the argument that holds the path, for errors.
        header: Whether the first row of a text file holds names even if it consists of numbers.

    Raises:
        InputError: If the file is not a table, if column names repeat, or if the table exceeds the memory limit.
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
            remedy="write the file with pandas.DataFrame.to_parquet"
            if packed
            else "write the file in UTF-8, with fields separated by commas and one row of column names",
        ) from None


def _parquet_size(path: Path) -> int:
    """Memory of the columns in bytes, at least one number per row, because a file can store repeated values once."""
    metadata = pyarrow.parquet.read_metadata(path)
    groups = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
    numbers = metadata.num_rows * metadata.num_columns * np.dtype(float).itemsize
    kinds = [metadata.schema.column(place) for place in range(metadata.num_columns)]
    fixed = sum(
        metadata.row_group(group).column(place).num_values * max(kind.length, 0)
        for group in range(metadata.num_row_groups)
        for place, kind in enumerate(kinds)
    )
    known = max(groups, numbers, fixed)
    require_unpacked(known, path.name, value=str(path))
    # The file stores repeated text once. Read the text here to count it for every row.
    names = [kind.path for kind in kinds if kind.physical_type == "BYTE_ARRAY" and kind.logical_type.type != "DECIMAL"]
    shared = pyarrow.parquet.ParquetFile(path, read_dictionary=names).read(columns=names)
    texts = (text for column in shared.columns for part in column.chunks for text in _texts(part))
    lengths = (pc.call_function("binary_length", [text.dictionary]).take(text.indices) for text in texts)
    return known + sum(pc.call_function("sum", [each]).as_py() or 0 for each in lengths)


def _texts(part: pyarrow.Array) -> Iterator[pyarrow.DictionaryArray]:
    """Yield the text arrays of a column, including those in lists and records."""
    if isinstance(part, pyarrow.DictionaryArray):
        yield part
    elif isinstance(part, pyarrow.StructArray):
        for each in part.flatten():
            yield from _texts(each)
    elif hasattr(part, "flatten"):
        yield from _texts(part.flatten())
