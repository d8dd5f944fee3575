"""Recorded runs for the lines of a diagnosis: small PyTorch training runs, and records made of a few numbers."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr
from torch import nn

from dynascope.diagnosis.run_facts import RunFacts
from dynascope.results import make_record
from dynascope.torch import Recorder

PROBES = "light", "activity", "features", "collapse"


def clusters(
    count: int = 200, *, classes: int = 4, size: int = 20, gap: float = 4.0, flips: float = 0.0, seed: int = 0
) -> tuple[torch.Tensor, torch.Tensor, np.ndarray]:
    """Gaussian clusters at a distance from the origin, their labels, and which labels were flipped."""
    draw = np.random.default_rng(seed)
    means = draw.normal(size=(classes, size))
    means *= gap / np.linalg.norm(means, axis=1, keepdims=True)
    y = np.arange(count) % classes
    x = means[y] + 0.7 * draw.normal(size=(count, size))
    flipped = np.zeros(count, bool)
    flipped[draw.permutation(count)[: round(flips * count)]] = True
    y = np.where(flipped, (y + draw.integers(1, classes, count)) % classes, y)
    return torch.tensor(x, dtype=torch.float32), torch.tensor(y), flipped


def relu_network(*sizes: int, seed: int = 0, scale: float = 1.0) -> nn.Sequential:
    """A ReLU network with the initial weights of PyTorch, multiplied by a factor."""
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    network = nn.Sequential(*layers[:-1])
    with torch.no_grad():
        for each in network.parameters():
            each *= scale
    return network


def trained(
    network: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    steps: int,
    rate: float = 0.05,
    decay: float = 0.0,
    batch: int = 50,
    probes: Sequence[str] = (),
    measure: Callable[[nn.Module], Mapping[str, float]] | None = None,
) -> RunFacts:
    """Train with momentum and record, also `probes`; `measure` returns further variables over the steps."""
    optimizer = torch.optim.SGD(network.parameters(), lr=rate, momentum=0.9, weight_decay=decay)
    initial = {name: each.detach().numpy().copy() for name, each in network.named_parameters()}
    draw = torch.Generator().manual_seed(0)
    rows: list[Mapping[str, float]] = [measure(network)] if measure is not None else []
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder(
            network,
            f"{folder}/run.zarr",
            reference=(x, y),
            optimizer=optimizer,
            preset=[*PROBES, *probes],
            schedule="log",
            max_overhead=None,
            verbose=False,
        ) as recorder,
    ):
        for _ in range(steps):
            chosen = torch.randperm(len(x), generator=draw)[:batch]
            loss = nn.functional.cross_entropy(network(x[chosen]), y[chosen])
            loss.backward()
            optimizer.step()
            recorder.step(loss=loss)
            optimizer.zero_grad()
            if measure is not None and recorder.measured:
                rows.append(measure(network))
        record = recorder.read().load()
    if rows:
        record = record.assign({name: ("step", [row[name] for row in rows]) for name in rows[0]})
    return RunFacts(record, initial_weights=initial, optimizer="SGD", groups=[dict(optimizer.param_groups[0])])


def facts(
    variables: Mapping[str, Any],
    *,
    labels: Mapping[str, Sequence[Any]] | None = None,
    steps: Sequence[int] | None = None,
    **known: Any,
) -> RunFacts:
    """The facts of a made-up run. Values are over `step`, or pairs of another dimension and values over both."""
    named: dict[str, Any] = {}
    for name, each in variables.items():
        dimension, values = each if isinstance(each, tuple) else ("", each)
        named[name] = (["step", dimension] if dimension else ["step"], np.asarray(values, float))
    count = len(next(iter(named.values()))[1])
    return RunFacts(make_record(named, {"step": steps or list(range(count)), **(labels or {})}), **known)


def with_groups(record: xr.Dataset, groups: Sequence[int]) -> xr.Dataset:
    """Add the parameter groups of the parameters to a record."""
    return record.assign_coords(parameter_group=("parameter", list(groups)))
