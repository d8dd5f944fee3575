"""Tasks from tables: files, data frames, dictionaries of columns, and data sets of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

from dynascope.errors import InputError
from dynascope.tasks.data.files import task_from_file
from dynascope.tasks.data.missing_values import Missing
from dynascope.tasks.data.tables import task_from_table
from dynascope.tasks.task import Task

__all__ = ["read_table"]


def read_table(
    table: str | PathLike[str] | Any,
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
    r"""Read a task from a file or from a table in memory.

    These files are read, and nothing is ever unpickled:

    * `.csv`, `.tsv`, `.txt` or `.dat` with one line of column names, which comments and text may precede, and columns
      separated by commas, semicolons, tabs, bars, blanks or colons; first columns that only name or number the rows are
      left out;
    * `.parquet`;
    * `.npz` with the arrays `x` and `y`;
    * `.npy`: give the file of the inputs, named `x.npy` or `NAME-x.npy`; the targets are in `y.npy` or `NAME-y.npy`
      beside it.

    Arrays: x is (n, d), (n,) or images (n, height, width), which are flattened; y is (n, c) or (n,). They are centred.

    Tables: the columns in `target` are the targets and all others the inputs. Units of columns are arbitrary and would
    decide what is learned first, so inputs and targets that are quantities are **standardised** (mean 0, variance 1);
    losses are then in units of the target's variance. Inputs of text become a column "kind=oak" of 1 and 0 for each
    value, a single one for two values, or are left out if more than half of the rows have a value of their own.

    A single target of text, truth values or categories is a class label. So is one of integers with 2 to 20 distinct
    values and at least twice as many samples as distinct values; `classification` overrides this rule. Class labels are
    one-hot encoded. Whole numbers stored as floats are quantities. The description of the task says what was decided.

    Args:
        table: The path of a file; a data frame of pandas, or of a library that converts to one (polars, Arrow); a
            dictionary of columns by name; or a data set of scikit-learn, which names its targets.
        target: For tables, the name of the target column, or several.
        name: Name of the task; by default that of the file or of the data set of scikit-learn, else "table".
        drop: For tables, the name of a column to leave out, or several.
        missing: What is done about missing or infinite values: None rejects them, "drop" leaves out the rows, "mean"
            fills inputs by the mean of their column and leaves out rows without a target.
        standardise: Bring inputs, and targets that are quantities, to mean 0 and variance 1; None does so for
            tables that are centred and hold no images.
        centre: Remove the mean of every input and target.
        classification: Whether the target is a class label; None decides by the rule above.
        image_shape: (height, width) when each row of inputs is an image; known already when x is (n, height, width).

    Raises:
        InputError: The file cannot be read, it is no table, or it does not hold at least two complete samples of what
            can be encoded.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "trees.csv"
        ...     _ = path.write_text("height;girth;kind\n9,5;1;oak\n7;3;elm\n8;2;oak\n")
        ...     task = read_table(path, target="kind")
        >>> task, task.feature_names, task.target_names
        (Task('trees', 3 × 2 → 2), ('height', 'girth'), ('elm', 'oak'))
        >>> trees = {"height": [9.0, 7.0, 8.0], "girth": [1.0, 3.0, 2.5], "age": [60.0, 90.0, 84.0]}
        >>> read_table(trees, target="age", name="trees").description[-1]
        "Inputs and target are standardised (mean 0, variance 1): a loss times 168 is in units of 'age' squared."
    """
    options: dict[str, Any] = {"target": target, "name": name, "drop": drop, "missing": missing}
    options |= {"standardise": standardise, "centre": centre, "classification": classification}
    if not isinstance(table, str | PathLike):
        return task_from_table(table, image_shape=image_shape, **options)
    try:
        return task_from_file(table, image_shape=image_shape, **options)
    except InputError as error:
        if error.argument == "path":
            error.argument = "table"
        raise
