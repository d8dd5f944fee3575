"""Diagnose a PyTorch model before training, or at a checkpoint."""
# pyright: reportMissingImports=false

from __future__ import annotations

import dataclasses
import math
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
import xarray as xr
from torch import nn

from dynascope.diagnosis.diagnose import diagnosis_of
from dynascope.diagnosis.diagnosis import Diagnosis, summary_of
from dynascope.diagnosis.known_values import known_values
from dynascope.diagnosis.line import Line
from dynascope.errors import InputError
from dynascope.prediction import regime
from dynascope.prediction.lazy_or_rich.labels import LAZY, RICH
from dynascope.torch.recorder.recorder import Recorder
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["diagnose"]

_MOST_NUMBERS = 5e7  # parameters × examples up to which training is measured
_THEORY = "Lazy training keeps the NTK constant (arXiv:1812.07956); gradient flow of the squared loss or cross-entropy."


@checked
def diagnose(
    model: nn.Module,
    loader: Iterable[Any],
    loss: Callable[[Any, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer,
    *,
    flipped: Any = None,
    output: Callable[[Any], torch.Tensor] | None = None,
    examples: PositiveInt = 256,
    seconds: PositiveFloat = 20.0,
    verbose: bool = True,
) -> Diagnosis:
    """Tell what theory says of a PyTorch model before training, or at a checkpoint.

    The model is measured once, on a reference batch drawn from the loader. For SGD with a squared loss or the
    cross-entropy, a copy of a small model is then trained briefly to tell whether training is lazy or rich. The model,
    the optimiser and the random state of PyTorch are unchanged. Questions about the course of training have the state
    "not measured"; for these, record the run with `Recorder`, and diagnose the record with `dynascope.diagnose`.

    Args:
        model: The module.
        loader: The data, as in training: yields pairs of inputs and targets, or dictionaries in which `labels` are the
            targets.
        loss: The loss, a function of outputs and targets that averages over examples, such as
            `torch.nn.CrossEntropyLoss()`.
        optimizer: The optimiser of the model.
        flipped: Mask or indices of the examples of the reference batch whose labels are known to be wrong; see
            `Recorder`.
        output: Returns the outputs from the result of the module; see `Recorder`.
        examples: Number of examples of the reference batch.
        seconds: Time limit of training.
        verbose: Whether to print the time that the diagnosis requires to standard error.

    Returns:
        The diagnosis; see `dynascope.diagnose`.

    Raises:
        InputError: If the loader yields no batches of inputs and targets, if the loss is a class, if the optimiser
            belongs to another model, or if `Recorder` rejects an argument.

    Example:
        >>> torch.manual_seed(0)  # doctest: +ELLIPSIS
        <torch._C.Generator ...>
        >>> model = nn.Sequential(nn.Linear(4, 50), nn.Tanh(), nn.Linear(50, 1))
        >>> x = torch.randn(64, 4)
        >>> loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, :1]), batch_size=64)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=100.0)
        >>> found = diagnose(model, loader, nn.MSELoss(), optimizer, verbose=False)
        >>> found.state("stability")
        'unstable'
    """
    require(
        not isinstance(loss, type),
        f"loss is the class {getattr(loss, '__name__', loss)}",
        argument="loss",
        value=str(loss),
        remedy=f"give an instance: {getattr(loss, '__name__', 'loss')}()",
    )
    own = {id(each) for each in model.parameters()}
    require(
        any(id(each) in own for group in optimizer.param_groups for each in group["params"]),
        "the optimizer trains no parameter of the model",
        argument="optimizer",
        value=type(optimizer).__name__,
        remedy="give the optimizer of this model",
    )
    reference, batch_size = _reference(loader, examples)
    if verbose:
        size = sum(each.numel() for each in model.parameters())
        print(
            f"dynascope: measuring {size} parameters on {examples} examples, which takes seconds to a minute; then at "
            f"most {seconds:g} seconds of training, for small models.",
            file=sys.stderr,
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.zarr"
        with Recorder(
            model,
            path,
            reference=reference,
            optimizer=optimizer,
            criterion=loss,
            preset=["standard", "curvature", "batches"],
            output=output,
            batch_size=batch_size,
            flipped=flipped,
            max_overhead=None,
            verbose=False,
        ):
            pass
        found = diagnosis_of(path, title=f"Diagnosis: {type(model).__name__}", full_batch=_is_one_batch(loader))
    line = _regime(model, reference, loss, optimizer, seconds)
    lines = tuple(line if each.topic == "regime" else each for each in found.lines)
    assert found.observed is not None
    return dataclasses.replace(found, observed=_measured(found.observed), lines=lines, findings=summary_of(lines))


def _measured(record: xr.Dataset) -> xr.Dataset:
    """Omit what only training has, such as the norms of updates, and the durations of measurements."""
    floating = [str(name) for name, each in record.items() if each.dtype.kind == "f"]
    return record.drop_vars(["seconds", "probe_seconds", *(n for n in floating if known_values(record, n) is None)])


def _reference(loader: Iterable[Any], examples: int) -> tuple[Any, int]:
    """Return the first examples of the loader, and the size of its first batch."""
    batches, size, count = [], 0, 0
    with torch.random.fork_rng([]):  # iterating over a loader draws random numbers
        for batch in loader:
            require(
                isinstance(batch, Mapping) or (isinstance(batch, tuple | list) and len(batch) > 1),
                f"the loader yields {type(batch).__name__}, and no pairs of inputs and targets",
                argument="loader",
                value=type(batch).__name__,
                remedy="give a loader, or a list of pairs of inputs and targets",
            )
            batches.append(batch)
            first = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
            size = size or len(first)
            count += len(first)
            if count >= examples:
                break
    require(
        bool(batches),
        "the loader yields no batch",
        argument="loader",
        remedy="give a loader with at least one batch of inputs and targets",
    )
    return _joined(batches, examples), size


def _is_one_batch(loader: Any) -> bool:
    return hasattr(loader, "__len__") and len(loader) == 1


def _joined(batches: Sequence[Any], examples: int) -> Any:
    """Concatenate batches of the same structure along the first axis."""
    first = batches[0]
    if isinstance(first, Mapping):
        return {name: _joined([each[name] for each in batches], examples) for name in first}
    if isinstance(first, tuple | list):
        return tuple(_joined(list(parts), examples) for parts in zip(*batches, strict=True))
    return torch.cat([torch.as_tensor(each) for each in batches])[:examples]


def _kind(loss: Any) -> Literal["squared", "cross_entropy"] | None:
    if isinstance(loss, nn.MSELoss) or loss is nn.functional.mse_loss:
        return "squared"
    return "cross_entropy" if isinstance(loss, nn.CrossEntropyLoss) or loss is nn.functional.cross_entropy else None


def _regime(model: nn.Module, reference: Any, loss: Any, optimizer: torch.optim.Optimizer, seconds: float) -> Line:
    """Tell by brief training whether the model is lazy or rich."""
    kind = _kind(loss)
    reason = ""
    size = sum(each.numel() for each in model.parameters() if each.requires_grad)
    if not isinstance(optimizer, torch.optim.SGD):
        reason = f"it covers SGD, not {type(optimizer).__name__}"
    elif kind is None:
        reason = "it covers torch.nn.MSELoss and torch.nn.CrossEntropyLoss, not this loss"
    elif not isinstance(reference, tuple) or len(reference) != 2 or not isinstance(reference[0], torch.Tensor):
        reason = "it requires inputs in one tensor"
    elif size * len(reference[0]) > _MOST_NUMBERS:
        reason = "the model is too large for brief training; record a run instead"
    else:
        try:
            found = regime(reference, model, loss=kind, seconds=seconds)
        except (InputError, RuntimeError) as error:
            reason = f"the model cannot be trained on the reference batch ({str(error).splitlines()[0]})"
        else:
            turn = str(found.turns[0]) if found.turns else ""
            named = "undecided between lazy and rich" if found.label == "undecided" else found.label
            sentence = f"Training on the reference batch by gradient flow is {named}. {found.reason}"
            threshold = found.threshold if math.isfinite(found.threshold) else (LAZY, RICH)[found.label != "lazy"]
            weight = 2 if found.label in ("lazy", "rich", "delayed rich") else 1
            number = found.number if math.isfinite(found.number) else None
            return Line("regime", found.label, sentence, number, threshold, _THEORY, turn, weight)
    return Line("regime", "does not apply", f"The regime is not told before training: {reason}.", theory=_THEORY)
