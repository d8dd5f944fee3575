"""Diagnose a recorded training run: what happened, why, and what to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

from dynascope.diagnosis.diagnosis import Diagnosis, summary_of
from dynascope.diagnosis.line import Line
from dynascope.diagnosis.lines.conservation import conservation
from dynascope.diagnosis.lines.features import features_used, neural_collapse, redundancy
from dynascope.diagnosis.lines.label_noise import label_noise
from dynascope.diagnosis.lines.memorisation import memorisation
from dynascope.diagnosis.lines.nearest_model import nearest_model
from dynascope.diagnosis.lines.normalised_layers import normalised_layers
from dynascope.diagnosis.lines.progress import progress
from dynascope.diagnosis.lines.recorder_warnings import recorder_warnings
from dynascope.diagnosis.lines.regime import regime
from dynascope.diagnosis.lines.sgd_noise import sgd_noise
from dynascope.diagnosis.lines.stability import stability
from dynascope.diagnosis.lines.tied_weights import tied_weights
from dynascope.diagnosis.lines.units import dead_units, duplicate_units, vanishing_units
from dynascope.diagnosis.lines.weight_decay import weight_decay
from dynascope.diagnosis.run_facts import RunFacts, run_facts
from dynascope.diagnosis.run_page import load_run
from dynascope.validation import checked

__all__ = ["LINES", "diagnose"]

LINES: tuple[Callable[[RunFacts], Line], ...] = (
    progress,
    stability,
    conservation,
    weight_decay,
    tied_weights,
    regime,
    sgd_noise,
    normalised_layers,
    dead_units,
    duplicate_units,
    vanishing_units,
    features_used,
    redundancy,
    neural_collapse,
    memorisation,
    label_noise,
    nearest_model,
    recorder_warnings,
)


@runtime_checkable
class Recording(Protocol):
    """A recorder; its folder is read."""

    path: str | PathLike[str]

    def flush(self) -> None:
        """Write the rows that are still in memory."""
        ...


Run: TypeAlias = str | PathLike[str] | Recording


@checked
def diagnose(run: Run) -> Diagnosis:
    """Tell what happened in a recorded training run, why, and what to do.

    Each line of the diagnosis answers one question by a number that was measured in the run and the threshold of a
    theory:

    - progress: did the loss fall?
    - regime: was training lazy or rich?
    - stability: is the learning rate below the limit that the curvature of the loss sets?
    - conservation, weight decay, tied weights: did the training loop do what its settings say?
    - noise of SGD, normalised layers: is the noise of the weights stationary, and how far do weights turn per step?
    - dead, duplicate and vanishing units, features used, redundancy, neural collapse: what do the units compute?
    - memorisation, label noise: does the network fit wrong labels?
    - solvable model: which solvable model is nearest, and which of its assumptions fails?
    - recorder: could everything be measured?

    A question whose measurements were not recorded has the state "not measured", and its sentence says what to pass to
    the recorder. For all questions, record with `preset=["standard", "curvature", "batches"]`, `criterion`,
    `batch_size`, and, for SGD in PyTorch, `charges=True`.

    Args:
        run: The folder of a recorder, or the recorder itself. The run may be in progress.

    Returns:
        The diagnosis. Print it for a summary and what to do; `to_html` writes a page, and `to_json` returns plain
        values.

    Raises:
        InputError: If the path is missing, or is not the record of a training run.

    Example:
        >>> import tempfile, torch
        >>> from dynascope.torch import Recorder
        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <torch._C.Generator ...>
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        >>> for each in model.parameters():
        ...     _ = each.data.mul_(0.3)
        >>> optimizer, x = torch.optim.SGD(model.parameters(), lr=0.1), torch.randn(64, 2)
        >>> y = x[:, :1] * x[:, 1:]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Recorder(
        ...         model, f"{folder}/run.zarr", reference=(x, y), optimizer=optimizer, verbose=False
        ...     ) as recorder:
        ...         for _ in range(300):
        ...             loss = torch.nn.functional.mse_loss(model(x), y)
        ...             loss.backward()
        ...             optimizer.step()
        ...             recorder.step(loss=loss)
        ...             optimizer.zero_grad()
        ...     found = diagnose(recorder)
        >>> found.state("regime")
        'rich'
    """
    if isinstance(run, Recording):
        run.flush()
        run = run.path
    return diagnosis_of(Path(run))


def diagnosis_of(path: Path, title: str = "", *, full_batch: bool = False) -> Diagnosis:
    """Diagnose the record in a folder.

    Args:
        path: The folder of a recorder.
        title: The title; by default, that of the record.
        full_batch: Whether every step is known to use all samples.
    """
    observed = load_run(path)
    facts = dataclasses.replace(run_facts(path), full_batch=full_batch)
    lines = tuple(line(facts) for line in LINES)
    given = {field.name: getattr(observed, field.name) for field in dataclasses.fields(observed)}
    name = title or observed.title.replace("Training run", "Diagnosis")
    return Diagnosis(**given | {"title": name, "findings": summary_of(lines)}, lines=lines)
