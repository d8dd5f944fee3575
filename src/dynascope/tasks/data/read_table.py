"""Tasks from tables: files, data frames, dictionaries of columns, and scikit-learn data sets."""

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

    Supported files (nothing is unpickled):

    * `.csv`, `.tsv`, `.txt` or `.dat` with one line of column names, and columns separated by commas, semicolons, tabs,
      bars, blanks or colons. Comments and text before the column names are skipped. Unnamed columns at the beginning
      that only name or number the rows are left out.
    * `.parquet`.
    * `.npz` with the arrays `x` and `y`.
    * `.npy`: give the file of the inputs, named `x.npy` or `NAME-x.npy`. The targets must be in `y.npy` or
      `NAME-y.npy` in the same folder.

    **Arrays.** x has shape (n, d), (n,) or, for images, (n, height, width); images are flattened. y has shape (n, c) or
    (n,). Inputs and targets are centred.

    **Tables.** The columns in `target` are the targets, and all other columns are the inputs. Without rescaling, the
    units of the columns would determine what a network learns first. Inputs and quantitative targets are therefore
    standardised (mean 0, variance 1), and losses are in units of the target's variance. A text input becomes one 0-or-1
    column such as "kind=oak" for each value, or a single column if it has two values. A text input is left out if more
    than half of its values occur only once.

    **Class labels.** A single target of text, booleans or categories is a class label. A single target of integers is a
    class label if it has 2 to 20 distinct values and at least twice as many samples as distinct values. Integers stored
    as floats are quantities. `classification` overrides these rules. Class labels are one-hot encoded. The description
    of the task lists all decisions.

    Args:
        table: The path of a file; a data frame of pandas or of a library that converts to pandas (polars, Arrow); a
            dictionary of columns by name; or a scikit-learn data set, which specifies its targets.
        target: For tables, the name of the target column, or several names.
        name: Name of the task. The default is the name of the file or of the scikit-learn data set, else "table".
        drop: For tables, the name of a column to leave out, or several names.
        missing: Treatment of missing or infinite values: None raises an error, "drop" removes the rows, "mean" replaces
            missing inputs with the column mean and removes rows without a target.
        standardise: Whether to rescale inputs and quantitative targets to mean 0 and variance 1. None standardises
            tables if `centre` is set and the inputs are not images.
        centre: Whether to subtract the mean of every input and target.
        classification: Whether the target is a class label; None applies the rules above.
        image_shape: (height, width) if each row of inputs is an image; not needed if x has shape (n, height, width).

    Raises:
        InputError: If the file cannot be read or is not a table, if a column cannot be encoded, or if there are fewer
            than two complete samples.

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
        "Inputs and target are standardised (mean 0, variance 1); multiply losses by 168 to convert them to units
        of 'age' squared."
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
