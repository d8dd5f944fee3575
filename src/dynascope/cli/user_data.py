"""The options that say which data a prediction is for."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import tyro

from dynascope import tasks
from dynascope.arguments import require

__all__ = ["UserData"]


@dataclasses.dataclass(frozen=True)
class UserData:
    """What is learned.

    Args:
        data: "digits", or a file: .npz with arrays x and y, x.npy beside y.npy, .csv or .parquet.
        target: Target columns of a table.
        only: Keep a single target, by its name.
        classification: Whether the target is a class label; decided by its type if not said.
    """

    data: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="DATA")]
    target: tuple[str, ...] = ()
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

    def _read(self) -> tasks.Task:
        if self.data != "digits":
            return tasks.from_file(self.data, target=self.target or None, classification=self.classification)
        require(
            not self.target,
            "digits has no columns to choose targets from",
            argument="target",
            value=list(self.target),
            remedy="leave --target out, or name a single digit by --only 'digit 3'",
        )
        require(
            self.classification is not False,
            "the targets of digits are class labels",
            argument="classification",
            value=self.classification,
            remedy="leave --classification out",
        )
        return tasks.digits()
