"""The options that say which data a prediction is for."""

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
    """What is learned.

    Args:
        source: "digits", or a file: .npz with arrays x and y, x.npy beside y.npy, or a table (.csv, .tsv, .txt, .dat,
            .parquet).
        target: Target columns of a table.
        drop: Columns of a table to leave out; "" is those without a name.
        missing: Leave out rows with missing values, or fill inputs by the mean of their column; refused if not said.
        raw: Leave the units of a table as they are, only centred; else inputs and quantities have mean 0 and spread 1.
        standardise: Bring arrays too to mean 0 and spread 1, as tables are.
        only: Keep a single target, by its name.
        classification: Whether the target is a class label; decided by its type if not said.
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
        """The task that a kind of network has with these data.

        Args:
            network: The kind; attention learns in context, and diagonal networks have one output.
            context: Number of examples in a prompt, for attention.
        """
        task = self._read()
        if self.only is not None:
            return task.only(self.only)
        if network == "attention":
            return tasks.InContextRegression.on_inputs_of(task, context)
        first, last = task.targets[:, 0], task.targets[:, -1]
        if network == "diagonal" and task.output_dimension == 2 and abs(first + last).max() < 1e-12:
            # Two centred classes mirror each other, so one target says it all.
            return task.only(task.target_names[1])
        return task

    @property
    def prepares(self) -> bool:
        """Whether more is done to the data on the way in than their mean taken off, which is then said."""
        arrays = self.source == "digits" or Path(self.source).suffix.lower() in (".npz", ".npy")
        return not arrays or self.standardise or self.missing is not None

    def _read(self) -> tasks.Task:
        require(
            not (self.raw and self.standardise),
            "data cannot be both raw and standardised",
            argument="standardise",
            value=True,
            remedy="leave out --raw or --standardise",
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
                    error.argument = "data"  # as the argument is called
                raise
        for argument, names in (("target", self.target), ("drop", self.drop)):
            require(
                not names,
                f"digits has no columns to choose {'targets ' if argument == 'target' else ''}from",
                argument=argument,
                value=list(names),
                remedy=f"leave --{argument} out, or name a single digit by --only 'digit 3'",
            )
        require(
            self.classification is not False,
            "the targets of digits are class labels",
            argument="classification",
            value=self.classification,
            remedy="leave --classification out",
        )
        return tasks.digits().standardised() if self.standardise else tasks.digits()
