"""The options that select the data."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from dynascope import tasks
from dynascope.errors import InputError
from dynascope.validation import require

__all__ = ["UserData"]


@dataclasses.dataclass(frozen=True)
class UserData:
    """The data.

    Args:
        source: "digits", or a file: .npz with arrays x and y, x.npy next to y.npy, or a table in .csv, .tsv, .txt, .dat
            or .parquet format.
        target: Name of the target column of a table, or several names.
        drop: Columns of a table to exclude; "" stands for columns without a name.
        missing: Drop rows with missing values, or fill missing inputs with the column mean. By default, missing values
            raise an error.
        raw: Only centre a table; by default, inputs and numeric targets are standardised to zero mean and unit
            variance.
        standardise: Standardise arrays too; by default, they are only centred.
        only: Name of a single target to keep.
        classification: Whether the target is a class label; by default, inferred from its type.
    """

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    target: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing: Literal["mean", "drop"] | None = None
    raw: bool = False
    standardise: bool = False
    only: str | None = None
    classification: bool | None = None

    def task(self, network: str, context: float) -> Any:
        """Return the task that a kind of network learns from these data.

        Args:
            network: The kind of network; attention learns in context, and diagonal networks have one output.
            context: Number of examples in a prompt, for attention.
        """
        task = self._read()
        if self.only is not None:
            return task.only(self.only)
        if network == "attention":
            return tasks.InContextRegression.on_inputs_of(task, context)
        first, last = task.targets[:, 0], task.targets[:, -1]
        if network == "diagonal" and task.output_dimension == 2 and abs(first + last).max() < 1e-12:
            # The targets of two centred classes are opposite, so one target is enough.
            return task.only(task.target_names[1])
        return task

    @property
    def prepares(self) -> bool:
        """Whether the data are preprocessed beyond centring; if so, the preprocessing steps are printed."""
        arrays = self.source == "digits" or Path(self.source).suffix.lower() in (".npz", ".npy")
        return not arrays or self.standardise or self.missing is not None

    def _read(self) -> tasks.Task:
        require(
            not (self.raw and self.standardise),
            "--raw and --standardise cannot be combined",
            argument="standardise",
            value=True,
            remedy="omit --raw or --standardise",
        )
        if self.source != "digits":
            try:
                return tasks.read_table(
                    self.source,
                    target=self.target or None,
                    drop=self.drop,
                    missing=self.missing,
                    standardise=True if self.standardise else False if self.raw else None,
                    classification=self.classification,
                )
            except InputError as error:
                if error.argument == "table":
                    error.argument = "data"  # the name of the command-line argument
                raise
        for argument, names in (("target", self.target), ("drop", self.drop)):
            require(
                not names,
                f"the digits data have no named columns, so --{argument} does not apply",
                argument=argument,
                value=list(names),
                remedy=f"omit --{argument}, or select a single digit with --only 'digit 3'",
            )
        require(
            self.classification is not False,
            "classification is False, but the targets of the digits data are class labels",
            argument="classification",
            value=self.classification,
            remedy="omit --classification",
        )
        return tasks.digits().standardised() if self.standardise else tasks.digits()
