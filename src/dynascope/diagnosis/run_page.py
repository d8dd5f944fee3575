"""The page of a recorded training run: findings, figures and methods."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

import xarray as xr

from dynascope.diagnosis.run_charts import run_charts
from dynascope.diagnosis.run_findings import run_findings
from dynascope.results import Observation, Parameter, Provenance, Result, load
from dynascope.validation import require

__all__ = ["load_result", "load_run"]

_METHOD = "The probes ran on a fixed reference batch, with the model in evaluation mode."
_PARAMETERS = {
    "model": "Class of the recorded model.",
    "framework": "Framework in which the model was trained.",
    "schedule": "Steps at which probes ran, except those with their own schedule.",
}


def load_run(path: str | PathLike[str]) -> Observation:
    """Load a recorded training run, with the findings and figures of its page.

    The run may still be in progress; the result contains the rows that were written so far.

    Args:
        path: The folder that a recorder wrote, or a file in which the result was saved.

    Returns:
        The observation. Its method `to_html` writes the page, `plot` draws the figures, and `save` writes one file.

    Raises:
        InputError: If the path is missing, or is not the record of a training run.

    Example:
        >>> import tempfile
        >>> import torch
        >>> from dynascope.torch import Recorder
        >>> model = torch.nn.Linear(2, 3)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Recorder(model, f"{folder}/run.zarr", reference=torch.randn(8, 2), verbose=False) as recorder:
        ...         recorder.step(loss=1.0)
        ...     run = load_run(f"{folder}/run.zarr")
        >>> run.title, run["step"].values.tolist()
        ('Training run: run', [0, 1])
    """
    result = load(path)
    require(
        _is_run(result),
        f"{str(path)!r} is not the record of a training run",
        argument="path",
        value=str(path),
        remedy="give the folder that a recorder wrote",
    )
    return _described(result, Path(path))


def load_result(path: str | PathLike[str]) -> Result:
    """Load any result; a recorded training run is loaded as by `load_run`.

    Raises:
        InputError: If `results.load` rejects the file.
    """
    result = load(path)
    return _described(result, Path(path)) if _is_run(result) else result


def _is_run(result: Result) -> bool:
    record = result.observed
    return record is not None and "measured" in record and record["measured"].dims == ("step", "probe")


def _described(result: Result, path: Path) -> Observation:
    """Add the findings, figures and methods to the observation of a recorded run."""
    record = result.observed
    assert record is not None
    return Observation(
        observed=record.assign_attrs(description=[_METHOD]),
        title=f"Training run: {path.name.removesuffix('.zip').removesuffix('.zarr')}",
        findings=tuple(run_findings(record)),
        charts=run_charts(record),
        parameters=_parameters(record),
        provenance=Provenance(version=str(record.attrs.get("version", ""))),
    )


def _parameters(record: xr.Dataset) -> dict[str, Parameter]:
    """Return the model and the schedule, and the number of rows of each probe."""
    found = {name: Parameter(record.attrs[name], about) for name, about in _PARAMETERS.items() if name in record.attrs}
    known = json.loads(record.attrs.get("probes", "{}"))
    for name in map(str, record["probe"].to_numpy()):
        rows = f"{int(record['measured'].sel(probe=name).sum())} of {record.sizes['step']} rows"
        found[f"probe {name}"] = Parameter(rows, known.get(name, ""))
    return found
