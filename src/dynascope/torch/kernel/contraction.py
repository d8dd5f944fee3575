"""The kernel between two blocks of examples, by each algorithm."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynascope.probes.kernel.conventions import Contraction
from dynascope.probes.kernel.layers import contract_signals, dense_layer_kernel
from dynascope.probes.kernel.structured import forms_gradients
from dynascope.torch.kernel.dense_tracing import Use, layer_signals
from dynascope.torch.kernel.differentiation import jacobians, moved, pulled, unit_directions
from dynascope.torch.kernel.model import Model, count_rows, rows_of

__all__ = ["contract_jacobians", "contract_structured", "kernel_columns", "projected_outputs"]

Rates = tuple[torch.Tensor, ...] | None


def contract_jacobians(
    model: Model, rates: Rates, x: Any, other: Any, contraction: Contraction, *, together: bool, mapped: bool
) -> torch.Tensor:
    """J diag(η) J'ᵀ from Jacobians of all parameters together or of one after the other; `other` may be None for x."""
    count = len(model.parameters)
    total: Any = 0.0
    for places in [range(count)] if together else [[place] for place in range(count)]:
        one = jacobians(model, places, x, mapped=mapped)
        two = one if other is None else jacobians(model, places, other, mapped=mapped)
        total = total + contract_signals(one, _weighted(two, model, rates, places), contraction)
    return total


def contract_structured(
    model: Model, uses: Sequence[Use], rates: Rates, x: Any, other: Any, contraction: Contraction, *, mapped: bool
) -> torch.Tensor:
    """The same from the uses of dense weights, and Jacobians of the other parameters."""
    layers, rest = layer_signals(model, uses, x, mapped=mapped)
    other_layers, other_rest = (layers, rest) if other is None else layer_signals(model, uses, other, mapped=mapped)
    total: Any = 0.0
    for place in list(layers):
        part = _layer(*layers[place], *other_layers[place], contraction)
        total = total + (part if rates is None else rates[place] * part)
        # What a layer held is not needed for the next.
        del layers[place]
        other_layers.pop(place, None)
    for place, jacobian in rest.items():
        total = total + contract_signals(jacobian, _weighted(other_rest[place], model, rates, [place]), contraction)
    return total


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


def _weighted(jacobian: torch.Tensor, model: Model, rates: Rates, places: Sequence[int]) -> torch.Tensor:
    if rates is None:
        return jacobian
    return jacobian * torch.cat([rates[place].expand(model.parameters[place].shape).flatten() for place in places])


def _layer(
    h: torch.Tensor, d: torch.Tensor, h_other: torch.Tensor, d_other: torch.Tensor, contraction: Contraction
) -> torch.Tensor:
    """The kernel of one weight from h (n, p, g, k) and D (n, c, p, g, m)."""
    (_, positions, groups, inputs), (classes, outputs) = h.shape, (d.shape[1], d.shape[-1])
    if groups > 1 or forms_gradients(positions, inputs, outputs, classes, contraction):
        one = _gradients(h, d)
        return contract_signals(one, one if h is h_other else _gradients(h_other, d_other), contraction)
    total: Any = 0.0
    for p in range(positions):
        for q in range(positions):
            pair = h[:, p, 0], d[:, :, p, 0], h_other[:, q, 0], d_other[:, :, q, 0]
            total = total + dense_layer_kernel(*pair, contraction)
    return total


def _gradients(h: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    return torch.einsum("npgk,ncpgm->ncgkm", h, d).flatten(2)
