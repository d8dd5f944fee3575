"""The kernel of PyTorch code column by column, and its sketch by random directions."""
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import torch

from dynascope.probes.kernel.conventions import Contraction
from dynascope.torch.kernel.differentiation import moved, pulled, unit_directions
from dynascope.torch.kernel.model import Model, count_rows, rows_of

__all__ = ["kernel_columns", "projected_outputs"]

Rates = tuple[torch.Tensor, ...] | None


def kernel_columns(
    model: Model, rates: Rates, x: Any, other: Any, contraction: Contraction, *, mapped: bool
) -> torch.Tensor:
    """J (η Jᵀe) for every e: the gradient of one output for one example, pushed through all examples."""
    columns = x if other is None else other
    found = []
    for row in range(count_rows(columns)):
        example = rows_of(columns, slice(row, row + 1))
        unit = unit_directions(model, rows_of(example, 0))
        for a, direction in enumerate(unit):
            gradient, _ = pulled(_only_outputs(model), model.parameters, example, direction[None], mapped=mapped)
            scales = [1.0] * len(gradient) if rates is None else rates
            column = moved(model, [rate * each[0, 0] for rate, each in zip(scales, gradient, strict=True)], x)
            found.append(column if contraction == "full" else column[:, a])
    stacked = torch.stack(found, dim=-1).unflatten(-1, (count_rows(columns), -1))
    return stacked.mean(-1) if contraction == "trace" else stacked


def projected_outputs(model: Model, rates: Rates, x: Any, *, draws: int, seed: int) -> torch.Tensor:
    """J √η r for Gaussian directions r that depend only on the seed and the shapes, shape (n, c, draws)."""
    generator = torch.Generator(model.parameters[0].device).manual_seed(seed)
    found = []
    for _ in range(draws):
        direction = [
            torch.randn(each.shape, generator=generator, dtype=each.dtype, device=each.device)
            for each in model.parameters
        ]
        if rates is not None:
            direction = [rate.sqrt() * each for rate, each in zip(rates, direction, strict=True)]
        found.append(moved(model, direction, x))
    return torch.stack(found, dim=-1)


def _only_outputs(model: Model) -> Any:
    return lambda parameters, example: (model.outputs(parameters, example), [])
