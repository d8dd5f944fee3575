"""Training runs of PyTorch, with and without a recorder."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch
from torch import nn

functional = nn.functional
INPUTS = torch.from_numpy(np.random.default_rng(0).normal(size=(24, 3)))
LABELS = torch.arange(24) % 3
PAIR = INPUTS, LABELS


def mlp(dtype: torch.dtype = torch.float64, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 3)).to(dtype)


def sgd(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), **{"lr": 0.1, "momentum": 0.9, **options})


def random_state() -> tuple[Any, ...]:
    """The states of three random number generators."""
    _, keys, *rest = np.random.get_state()  # noqa: NPY002  # pyright: ignore
    return torch.get_rng_state().tolist(), random.getstate(), [keys.tolist(), rest]  # pyright: ignore


def hooks(module: nn.Module, optimizer: torch.optim.Optimizer) -> list[Any]:
    """All hooks on a module, its parameters and its optimiser."""
    found = [value for inner in module.modules() for name, value in vars(inner).items() if "hook" in name]
    found += [value for name, value in vars(optimizer).items() if "hook" in name]
    return [[*each] for each in [*found, *(each._backward_hooks or {} for each in module.parameters())] if each]


def train(
    model: Any, recorder: Any = None, *, steps: int = 4, optimizer: Any = None, start: int = 0, **how: Any
) -> Any:
    """Train on batches that two random number generators draw; return all that a recorder could have changed."""
    optimizer = optimizer or sgd(model)
    autocast, parts = how.get("autocast", False), how.get("parts", 1)
    found: list[Any] = []
    for step in range(start, start + steps):
        for _ in range(parts):
            rows = torch.randperm(24)[: 8 + np.random.randint(4)]  # noqa: NPY002
            with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
                loss = functional.cross_entropy(model(INPUTS[rows].to(next(model.parameters()).dtype)), LABELS[rows])
            (loss / parts).backward()
            found.append(loss.item())
            if recorder is not None and parts > 1:
                recorder.add_loss(loss)
        optimizer.step()
        if recorder is not None:
            recorder.step(loss=loss if parts == 1 else None)
            assert hooks(model, optimizer) == how.get("hooks", [])
        found += [each.grad.clone() for each in model.parameters() if each.grad is not None]
        optimizer.zero_grad()
        if "each" in how:
            how["each"](step + 1)
    # Type checks, which tests switch on, draw Python's random numbers.
    states = random_state()
    return [*found, *(each.clone() for each in model.state_dict().values()), states[0], states[2]]


def seed_all(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002


def same(one: list[Any], other: list[Any]) -> bool:
    """Whether two lists of tensors and other values are equal bit by bit."""
    return len(one) == len(other) and all(
        torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b for a, b in zip(one, other, strict=True)
    )
