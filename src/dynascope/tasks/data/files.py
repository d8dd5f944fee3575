"""Tasks from files: arrays and tables."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.tasks.data.array_files import read_arrays
from dynascope.tasks.data.labels import look_like_labels, one_hot
from dynascope.tasks.data.table_files import listed, read_table, split_columns
from dynascope.tasks.task import Task

__all__ = ["from_file"]

_TABLES = (".csv", ".parquet")
_ARRAYS = (".npz", ".npy")
_LABELS = ("string", "boolean", "categorical")
_NUMBERS = ("floating", "integer", "mixed-integer-float", "decimal", "boolean", "empty")
_WORDS = {"string": "text", "categorical": "categories"} | dict.fromkeys(
    ("datetime64", "datetime", "date", "time", "timedelta64", "timedelta", "period"), "dates or times"
)


def from_file(
    path: str | PathLike[str],
    *,
    target: str | Sequence[str] | None = None,
    image_shape: tuple[int, int] | None = None,
    centre: bool = True,
    classification: bool | None = None,
) -> Task:
    r"""Read a task from a file of arrays or a table.

    Four layouts are read, and nothing is ever unpickled:

    * `.npz` with the arrays `x` and `y`;
    * `.npy`: give the file of the inputs, named `x.npy` or `NAME-x.npy`; the targets are in `y.npy` or `NAME-y.npy`
      beside it;
    * `.csv`, separated by commas, with column names in the first row;
    * `.parquet`.

    Arrays: x is (n, d), (n,) or images (n, height, width), which are flattened; y is (n, c) or (n,). Tables: the
    columns in `target` are the targets and all others the inputs.

    A single target of text, truth values or categories is a class label. So is one of integers with 2 to 20 distinct
    values and at least twice as many samples as distinct values; `classification` overrides this rule. Class labels are
    one-hot encoded. Whole numbers stored as floats are quantities. The description of the task says what was decided.

    Args:
        path: The file.
        target: For tables, the name of the target column, or several.
        image_shape: (height, width) when each row of inputs is an image; known already when x is (n, height, width).
        centre: Remove the mean of every input and target.
        classification: Whether the target is a class label; None decides by the rule above.

    Returns:
        The task, named after the file.

    Raises:
        InputError: The file cannot be read, or does not hold at least two complete samples of numbers.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "trees.csv"
        ...     _ = path.write_text("height,girth,kind\n9,1,oak\n7,3,elm\n8,2,oak\n")
        ...     task = from_file(path, target="kind")
        >>> task.name, task.feature_names, task.target_names
        ('trees', ('height', 'girth'), ('elm', 'oak'))
    """
    path = Path(path)
    _check_file(path)
    if path.suffix.lower() in _TABLES:
        inputs, targets = split_columns(read_table(path), target, source=path.name)
    else:
        require(
            target is None,
            f"target is {target!r} and {path.name} has no columns to choose from",
            argument="target",
            value=target,
            remedy="leave it out, since the target of a file of arrays is its y",
        )
        x, y = read_arrays(path)
        image_shape = x.shape[1:] if x.ndim == 3 and image_shape is None else image_shape
        inputs, targets = _columns("x", x), _columns("y", y)
    samples = len(next(iter(inputs.values())))
    require(
        samples >= 2,
        f"{path.name} has {samples} sample{'s' if samples != 1 else ''}",
        argument="path",
        value=samples,
        remedy="give at least two",
    )
    values = _numbers(inputs, "input", path.name)
    encoded, target_names, encoding = _encode(targets, classification, path.name)
    task = Task(
        values,
        encoded,
        name=(path.suffix.lower() == ".npy" and re.sub(r"[-_]?x$", "", path.stem)) or path.stem,
        image_shape=image_shape,
        feature_names=() if image_shape else tuple(inputs),
        target_names=target_names,
    )
    spreads = np.ptp(values, axis=0).tolist()
    constant = [name for name, spread in zip(task.feature_names, spreads, strict=True) if spread == 0]
    description = [f"{samples} samples were read from {path.name}.", encoding]
    if constant:
        description.append(f"Constant over the samples, and so without information: {listed(constant)}.")
    task = dataclasses.replace(task, description=description)
    return task.centred() if centre else task


def _check_file(path: Path) -> None:
    problem, remedy = "", ""
    if path.is_dir():
        problem, remedy = f"{path} is a directory", "name a file in it"
    elif not path.is_file():
        problem, remedy = f"there is no file {path}", "check the path"
    elif path.suffix.lower() not in (*_TABLES, *_ARRAYS):
        problem, remedy = f"{path.name} has an unknown extension", "give a .npz, .npy, .csv or .parquet file"
    elif path.stat().st_size == 0:
        problem, remedy = f"{path.name} is empty", "write the data into it"
    require(not problem, problem, argument="path", value=str(path), remedy=remedy)


def _columns(letter: str, array: np.ndarray) -> dict[str, pd.Series]:
    columns = array.reshape(len(array), -1).T
    return {letter if len(columns) == 1 else f"{letter}{i + 1}": pd.Series(column) for i, column in enumerate(columns)}


def _kind(column: pd.Series) -> str:
    return pd.api.types.infer_dtype(column, skipna=True)


def _numbers(columns: dict[str, pd.Series], role: str, source: str) -> np.ndarray:
    other = {name: column for name, column in columns.items() if _kind(column) not in _NUMBERS}
    if other:
        first = next(iter(other.values()))
        words = _WORDS.get(_kind(first), "values that are not numbers,")
        raise InputError(
            f"{source} has {words} such as {_not_number(first)!r} in the {role} {listed(other)}",
            argument="path",
            value=list(other),
            remedy="encode it as numbers or leave it out",
        )
    values = np.column_stack([column.to_numpy(dtype=np.float64, na_value=np.nan) for column in columns.values()])
    finite = np.isfinite(values)
    gaps = [name for name, whole in zip(columns, np.all(finite, axis=0), strict=True) if not whole]
    rows = int(np.sum(~np.all(finite, axis=1)))
    require(
        not gaps,
        f"{source} has {rows} row{'s' if rows != 1 else ''} with missing or infinite values in {listed(gaps)}",
        argument="path",
        value=gaps,
        remedy="drop or fill them",
    )
    return values


def _not_number(column: pd.Series) -> str:
    present = column.dropna().astype(str).to_list()
    for value in present:
        try:
            float(value)
        except ValueError:
            return value
    return present[0]


def _encode(
    targets: dict[str, pd.Series], classification: bool | None, source: str
) -> tuple[np.ndarray, tuple[str, ...], str]:
    names = tuple(targets)
    column = targets[names[0]]
    kind = _kind(column)
    if classification is None:
        classification = len(names) == 1 and (
            kind in _LABELS or (kind == "integer" and look_like_labels(column.dropna().to_numpy()))
        )
    require(
        len(names) == 1 or not classification,
        f"{len(names)} targets of {source} cannot be one class label",
        argument="classification",
        value=classification,
        remedy="name one column of labels",
    )
    if not classification or kind not in (*_NUMBERS, *_LABELS):
        verb = "are quantities" if len(names) > 1 else "is a quantity"
        sentence = f"The target{'s' if len(names) > 1 else ''} {listed(names)} {verb}, not a class label."
        return _numbers(targets, "target", source), names, sentence
    if kind in _NUMBERS:
        _numbers(targets, "target", source)
    missing = int(column.isna().sum())
    require(
        missing == 0,
        f"{source} has {missing} row{'s' if missing != 1 else ''} without a label in {names[0]!r}",
        argument="path",
        value=names[0],
        remedy="drop or fill them",
    )
    labels = column.to_numpy()
    return one_hot(labels.astype(str) if labels.dtype == object else labels, names[0])
