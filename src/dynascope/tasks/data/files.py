"""Tasks from files: arrays and tables."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from dynascope.arguments import require
from dynascope.tasks.data.array_files import read_arrays
from dynascope.tasks.data.column_roles import split_frame
from dynascope.tasks.data.columns import columns_of
from dynascope.tasks.data.missing_values import Missing
from dynascope.tasks.data.table_files import TABLES, read_frame
from dynascope.tasks.data.table_task import assembled
from dynascope.tasks.task import Task

__all__ = ["from_file"]

_ARRAYS = (".npz", ".npy")
_PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")
_OTHER_TABLES = (".json", ".jsonl", ".xls", ".xlsx", ".ods", ".feather", ".sav", ".dta")


def from_file(
    path: str | PathLike[str],
    *,
    target: str | Sequence[str] | None = None,
    drop: str | Sequence[str] = (),
    missing: Missing | None = None,
    standardise: bool | None = None,
    centre: bool = True,
    classification: bool | None = None,
    image_shape: tuple[int, int] | None = None,
) -> Task:
    r"""Read a task from a file of arrays or a table.

    These layouts are read, and nothing is ever unpickled:

    * `.npz` with the arrays `x` and `y`;
    * `.npy`: give the file of the inputs, named `x.npy` or `NAME-x.npy`; the targets are in `y.npy` or `NAME-y.npy`
      beside it;
    * `.csv`, `.tsv`, `.txt` or `.dat` with one line of column names, which comments and text may precede, and columns
      separated by commas, semicolons, tabs, bars, blanks or colons; first columns that only name or number the rows are
      left out;
    * `.parquet`.

    Arrays: x is (n, d), (n,) or images (n, height, width), which are flattened; y is (n, c) or (n,). They are centred.

    Tables: the columns in `target` are the targets and all others the inputs. Units of columns are arbitrary and would
    decide what is learned first, so inputs and targets that are quantities are **standardised** (mean 0, spread 1);
    losses are then in units of the target's variance. Inputs of text become a column "kind=oak" of 1 and 0 for each
    value, a single one for two values, or are left out if more than half of the rows have a value of their own.

    A single target of text, truth values or categories is a class label. So is one of integers with 2 to 20 distinct
    values and at least twice as many samples as distinct values; `classification` overrides this rule. Class labels are
    one-hot encoded. Whole numbers stored as floats are quantities. The description of the task says what was decided.

    Args:
        path: The file.
        target: For tables, the name of the target column, or several.
        drop: For tables, the name of a column to leave out, or several.
        missing: What is done about missing or infinite values: None refuses them, "drop" leaves out the rows, "mean"
            fills inputs by the mean of their column and leaves out rows without a target.
        standardise: Whether to bring inputs, and targets that are quantities, to mean 0 and spread 1; None does so for
            tables that are centred.
        centre: Remove the mean of every input and target.
        classification: Whether the target is a class label; None decides by the rule above.
        image_shape: (height, width) when each row of inputs is an image; known already when x is (n, height, width).

    Returns:
        The task, named after the file.

    Raises:
        InputError: The file cannot be read, or does not hold at least two complete samples of what can be encoded.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "trees.csv"
        ...     _ = path.write_text("height;girth;kind\n9,5;1;oak\n7;3;elm\n8;2;oak\n")
        ...     task = from_file(path, target="kind")
        >>> task, task.feature_names, task.target_names
        (Task('trees', 3 × 2 → 2), ('height', 'girth'), ('elm', 'oak'))
        >>> task.description[-1]
        'Inputs are standardised (mean 0, spread 1), and class targets (0 or 1) centred.'
    """
    path = Path(path)
    _check_file(path)
    table = path.suffix.lower() in TABLES
    told: list[str] = []
    if table:
        frame, told, _ = read_frame(path)
        inputs, targets, left_out = split_frame(frame, target, drop, source=path.name, argument="path")
        told += left_out
    else:
        for argument, names in (("target", target), ("drop", drop or None)):
            require(
                names is None,
                f"{argument} is {names!r} and {path.name} has no columns to choose from",
                argument=argument,
                value=names,
                remedy="leave it out, since a file of arrays has its inputs in x and its targets in y",
            )
        x, y = read_arrays(path)
        image_shape = (int(x.shape[1]), int(x.shape[2])) if x.ndim == 3 and image_shape is None else image_shape
        inputs, targets = columns_of(x, "x", argument="x"), columns_of(y, "y", argument="y")
    return assembled(
        inputs,
        targets,
        name=(path.suffix.lower() == ".npy" and re.sub(r"[-_]?x$", "", path.stem)) or path.stem,
        source=path.name,
        came=f"were read from {path.name}",
        told=told,
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
        problem, remedy = f"{path} is a directory", "name a file in it"
    elif not path.is_file():
        problem, remedy = f"there is no file {path}", "check the path"
    elif path.suffix.lower() not in (*TABLES, *_ARRAYS):
        problem, remedy = f"{path.name} has an unknown extension", "give a .npz, .npy, .csv, .tsv or .parquet file"
        if path.suffix.lower() in _PACKED:
            remedy = f"unpack it, and {remedy}"
        elif path.suffix.lower() in _OTHER_TABLES:
            remedy = "save it as .csv, or read it with pandas and give the frame to tasks.from_table(frame, target=…)"
    elif not os.access(path, os.R_OK):
        problem, remedy = f"{path} may not be read", "ask for the right to read it, or give a copy"
    elif path.stat().st_size == 0:
        problem, remedy = f"{path.name} is empty", "write the data into it"
    require(not problem, problem, argument="path", value=str(path), remedy=remedy)
