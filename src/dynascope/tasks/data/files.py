"""Tasks from files of arrays and tables."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from dynascope.tasks.data.array_files import read_arrays
from dynascope.tasks.data.column_roles import split_frame
from dynascope.tasks.data.columns import columns_of
from dynascope.tasks.data.missing_values import Missing
from dynascope.tasks.data.table_files import TABLES, read_frame
from dynascope.tasks.data.table_task import assembled
from dynascope.tasks.task import Task
from dynascope.validation import require

__all__ = ["task_from_file"]

_ARRAYS = (".npz", ".npy")
_PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")
_OTHER_TABLES = (".json", ".jsonl", ".xls", ".xlsx", ".ods", ".feather", ".sav", ".dta")


def task_from_file(
    path: str | PathLike[str],
    *,
    target: str | Sequence[str] | None = None,
    name: str | None = None,
    drop: str | Sequence[str] = (),
    missing: Missing | None = None,
    standardise: bool | None = None,
    centre: bool = True,
    classification: bool | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Task:
    """Read a task from a file of arrays or a table; `read_table` documents the arguments."""
    path = Path(path)
    _check_file(path)
    table = path.suffix.lower() in TABLES
    notes: list[str] = []
    if table:
        frame, notes, _ = read_frame(path)
        inputs, targets, left_out = split_frame(frame, target, drop, source=path.name, argument="path")
        notes += left_out
    else:
        for argument, names in (("target", target), ("drop", drop or None)):
            require(
                names is None,
                f"{argument} is {names!r}, but {path.name} has no named columns",
                argument=argument,
                value=names,
                remedy=f"omit {argument}, because array files store the inputs in x and the targets in y",
            )
        x, y = read_arrays(path)
        image_shape = (int(x.shape[1]), int(x.shape[2])) if x.ndim == 3 and image_shape is None else image_shape
        inputs, targets = columns_of(x, "x", argument="x"), columns_of(y, "y", argument="y")
    return assembled(
        inputs,
        targets,
        name=name or (path.suffix.lower() == ".npy" and re.sub(r"[-_]?x$", "", path.stem)) or path.stem,
        source=path.name,
        origin=f"were read from {path.name}",
        notes=notes,
        text=table,
        image_shape=image_shape,
        missing=missing,
        classification=classification,
        centre=centre,
        standardise=table and centre if standardise is None else standardise,
    )


def _check_file(path: Path) -> None:
    problem, remedy = "", ""
    if path.is_dir():
        problem, remedy = f"{path} is a directory", "give the path of a file"
    elif not path.is_file():
        problem, remedy = f"there is no file {path}", "check the path"
    elif path.suffix.lower() not in (*TABLES, *_ARRAYS):
        problem, remedy = f"{path.name} has an unknown extension", "give an .npz, .npy, .csv, .tsv or .parquet file"
        if path.suffix.lower() in _PACKED:
            remedy = f"decompress the file, and {remedy}"
        elif path.suffix.lower() in _OTHER_TABLES:
            remedy = (
                "save the file as .csv, or read the file with pandas and give the frame to read_table(frame, target=…)"
            )
    elif not os.access(path, os.R_OK):
        problem, remedy = f"{path} cannot be read", "change the permissions of the file, or give a readable copy"
    elif path.stat().st_size == 0:
        problem, remedy = f"{path.name} is empty", "write the data into this file"
    require(not problem, problem, argument="path", value=str(path), remedy=remedy)
