"""What the lines of a diagnosis read: the record of a run, and the settings of its training."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dynascope.diagnosis.known_values import known_values
from dynascope.diagnosis.recorded_run import initial_weights, recorder_warnings
from dynascope.results import load
from dynascope.symmetry import Charge
from dynascope.symmetry.charge_encoding import decode_charges

__all__ = ["RunFacts", "run_facts"]


@dataclasses.dataclass(frozen=True, eq=False)
class RunFacts:
    """A recorded run.

    Attributes:
        record: The record, over `step`.
        initial_weights: The weights at the first row, by name; empty if they are not available.
        symmetries: The symmetries whose charges were recorded; empty if there are none.
        optimizer: Class of the optimiser, such as "SGD"; empty if unknown.
        groups: Settings of each parameter group under the names of PyTorch, such as "momentum" and "weight_decay".
        batch_size: Number of examples per step; None if unknown.
        criterion: Name of the loss, such as "CrossEntropyLoss"; empty if unknown.
        full_batch: Whether every step is known to use all samples.
        warnings: The warnings of the recorder.
    """

    record: xr.Dataset
    initial_weights: Mapping[str, np.ndarray] = dataclasses.field(default_factory=dict)
    symmetries: tuple[Charge, ...] = ()
    optimizer: str = ""
    groups: Sequence[Mapping[str, Any]] = ()
    batch_size: int | None = None
    criterion: str = ""
    full_batch: bool = False
    warnings: Sequence[str] = ()

    def known(self, name: str) -> xr.DataArray | None:
        """Return the rows of a variable that have a finite value; None if there are none."""
        return known_values(self.record, name)

    def last(self, name: str) -> float:
        """Return the last finite value of a variable over `step`; NaN if there is none."""
        values = self.known(name)
        return float("nan") if values is None else float(values[-1])

    @property
    def learning_rate(self) -> float:
        """The largest learning rate in the last row; NaN if unknown."""
        rates = self.known("learning_rate")
        return float("nan") if rates is None else float(np.nanmax(rates[-1].to_numpy()))

    @property
    def momentum(self) -> float:
        """The momentum of SGD, or β₁ of Adam, in the first parameter group; NaN if unknown."""
        if not self.groups:
            return float("nan")
        group = self.groups[0]
        return float(group["momentum"]) if "momentum" in group else float(group.get("betas", (float("nan"),))[0])


def run_facts(path: str | PathLike[str]) -> RunFacts:
    """Read the facts of a recorded run from its folder, also while the run is in progress.

    Args:
        path: The folder that a recorder wrote, or a file in which its result was saved, which has no initial weights.

    Raises:
        InputError: If `results.load` rejects the path.

    Example:
        >>> import tempfile
        >>> import torch
        >>> from dynascope.torch import Recorder
        >>> model = torch.nn.Linear(2, 3)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = f"{folder}/run.zarr"
        ...     with Recorder(model, path, reference=torch.randn(8, 2), optimizer=optimizer, verbose=False):
        ...         pass
        ...     run = run_facts(path)
        >>> run.optimizer, run.momentum, run.initial_weights["weight"].shape
        ('SGD', 0.9, (3, 2))
    """
    record = load(path).observed
    assert record is not None
    attributes = record.attrs
    symmetries = attributes.get("symmetries", "")
    return RunFacts(
        record,
        initial_weights=initial_weights(Path(path)),
        symmetries=decode_charges(symmetries) if symmetries else (),
        optimizer=attributes.get("optimizer", ""),
        groups=json.loads(attributes.get("parameter_groups", "[]")),
        batch_size=attributes.get("batch_size"),
        criterion=attributes.get("criterion", ""),
        warnings=recorder_warnings(Path(path)),
    )
