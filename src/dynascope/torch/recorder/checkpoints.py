"""Measure checkpoints of a finished or current training run, one row for each checkpoint."""
# pyright: reportMissingImports=false

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from dynascope.diagnosis.schedule import AtSteps
from dynascope.errors import InputError
from dynascope.torch.recorder.recorder import Recorder
from dynascope.validation import require, require_increasing, shown_error

__all__ = ["record_checkpoints"]

_CONTAINERS = "state_dict", "model_state_dict", "model"
_PREFIXES = "module.", "_orig_mod.", "model."


def record_checkpoints(
    model: torch.nn.Module,
    paths: Sequence[str | PathLike[str]],
    reference: Any,
    *,
    out: str | PathLike[str],
    steps: Sequence[int] | None = None,
    **options: Any,
) -> xr.Dataset:
    """Measure the checkpoints of a training run, as a recorder would have done during the run.

    The first checkpoint serves as the initial weights, so include one from before training if possible. Updates,
    gradients and losses are not recorded. The model itself is unchanged.

    Args:
        model: A module of the same architecture.
        paths: The checkpoints in the order of training: files of `torch.save`, which are read with `weights_only=True`,
            or safetensors. A file contains a state dictionary, directly or under "state_dict", "model_state_dict" or
            "model". Prefixes of wrappers, such as "module.", are removed.
        reference: The reference batch, as for `Recorder`.
        out: The folder of the record, which must not exist; by convention, the name ends in `.zarr`.
        steps: The step of each checkpoint; by default the last number in each file name.
        **options: Further options of `Recorder`, such as `preset` and `layers`.

    Returns:
        The record.

    Raises:
        InputError: If a file is missing or is not a checkpoint of this model, if the steps are not increasing, or if
            `Recorder` rejects an argument.

    Example:
        >>> import tempfile
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     paths = [f"{folder}/step{step}.pt" for step in (0, 10)]
        ...     torch.save(model.state_dict(), paths[0])
        ...     torch.save({name: 2 * each for name, each in model.state_dict().items()}, paths[1])
        ...     run = record_checkpoints(model, paths, torch.randn(20, 2), out=f"{folder}/run.zarr", preset="light")
        >>> run["step"].values, run["relative_displacement"].values.round(6)
        (array([ 0, 10]), array([0., 1.], dtype=float32))
    """
    files = [Path(path) for path in paths]
    require(files, "paths is empty", argument="paths", value=[], remedy="give at least one checkpoint")
    numbers = _steps_of(files) if steps is None else [int(step) for step in steps]
    require(
        len(numbers) == len(files),
        f"steps has length {len(numbers)}, but paths has length {len(files)}",
        argument="steps",
        value=len(numbers),
        remedy="give one step for each checkpoint",
    )
    require_increasing("steps", np.array(numbers))
    model = copy.deepcopy(model)
    _load(model, files[0])
    defaults = {"max_overhead": None, "schedule": AtSteps(tuple(numbers)), "verbose": False}
    recorder = Recorder(model, out, reference=reference, first_step=numbers[0], **(defaults | options))
    with recorder:
        for step, file in zip(numbers[1:], files[1:], strict=True):
            _load(model, file)
            recorder.skip_to(step)
    return recorder.read()


def _steps_of(files: Sequence[Path]) -> list[int]:
    found = [re.findall(r"\d+", file.stem) or re.findall(r"\d+", file.parent.name) for file in files]
    missing = [file.name for file, numbers in zip(files, found, strict=True) if not numbers]
    require(
        not missing,
        f"the file name {''.join(missing[:1])!r} contains no step number",
        argument="steps",
        remedy="pass the step of each checkpoint as steps",
    )
    return [int(numbers[-1]) for numbers in found]


def _load(model: torch.nn.Module, file: Path) -> None:
    require(
        file.is_file(),
        f"{str(file)!r} does not exist",
        argument="paths",
        value=str(file),
        remedy="give the paths of existing files",
    )
    try:
        state = _without_prefix(_read(file), set(model.state_dict()))
        model.load_state_dict(state)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # Damaged files and other models fail in many ways.
        raise InputError(
            f"{str(file)!r} is not a checkpoint of this model ({shown_error(error)})",
            argument="paths",
            value=str(file),
            remedy="give state dictionaries of a model with the same architecture",
        ) from error


def _read(file: Path) -> dict[str, Any]:
    if file.suffix == ".safetensors":
        try:
            loader = importlib.import_module("safetensors.torch")
        except ModuleNotFoundError:
            raise ModuleNotFoundError(
                f"reading {file.name} requires safetensors, which is missing: run python -m pip install safetensors.",
                name="safetensors",
            ) from None
        return loader.load_file(file)
    found = torch.load(file, map_location="cpu", weights_only=True)
    for name in _CONTAINERS:
        if isinstance(found.get(name), dict):
            return found[name]
    return found


def _without_prefix(state: dict[str, Any], names: set[str]) -> dict[str, Any]:
    """Remove prefixes of wrappers until the names match those of the model."""
    while not names & set(state):
        prefix = next((each for each in _PREFIXES if all(name.startswith(each) for name in state)), None)
        if prefix is None or not state:
            break
        state = {name.removeprefix(prefix): each for name, each in state.items()}
    return state
