"""Hessian-vector products of the loss of a PyTorch module."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
import torch
from scipy.sparse.linalg import LinearOperator

from dynascope.torch.devices import parameter_places

__all__ = ["hessian_operator", "scaled_operator"]


def hessian_operator(
    module: torch.nn.Module,
    loss: Any,
    parameters: Sequence[torch.nn.Parameter],
    batches: Iterable[tuple[Any, Any]],
    samples: int,
) -> LinearOperator:
    """Hessian-vector products Hv = ∂(vᵀ ∂L/∂θ)/∂θ, computed with two backward passes over all batches.

    Forward-mode derivatives of the gradient would have the same cost. However, PyTorch lacks these derivatives for some
    layers, and version 2.13 computes wrong values for normalisation with batch statistics.

    Args:
        module: The module.
        loss: A loss with the reduction "mean" or "sum".
        parameters: θ, in the order of the entries of v.
        batches: Pairs (inputs, targets).
        samples: Number of samples in all batches, for the mean.

    Returns:
        The operator, in the precision of the parameters, but at least single precision.

    Example:
        >>> layer, x = torch.nn.Linear(2, 1, bias=False), torch.diag(torch.tensor([2.0, 1.0]))
        >>> batches = [(x, torch.zeros(2, 1))]
        >>> hessian_operator(layer, torch.nn.MSELoss(), [layer.weight], batches, 2) @ np.array([1.0, 1.0])
        array([4., 1.], dtype=float32)
    """
    dtype = np.float64 if any(each.dtype == torch.float64 for each in parameters) else np.float32
    sizes, device = [each.numel() for each in parameters], parameters[0].device
    # Copies, so that no optimiser sees their gradients.
    leaves = {id(each): each.detach().clone().requires_grad_() for each in parameters}
    point = list(leaves.values())
    places = {place: leaves[id(each)] for place, each in parameter_places(module).items() if id(each) in leaves}

    def product(vector: np.ndarray) -> np.ndarray:
        parts = torch.from_numpy(vector.reshape(-1).astype(dtype)).split(sizes)
        along = [part.view(each.shape).to(each) for part, each in zip(parts, point, strict=True)]
        for each in point:
            each.grad = None
        for inputs, targets in batches:
            share = len(inputs) / samples if loss.reduction == "mean" else 1
            with torch.enable_grad():
                arguments = inputs.detach().to(device)
                outputs = torch.func.functional_call(module, places, arguments, tie_weights=False)
                value = share * loss(outputs, targets.to(device))
                slopes = torch.autograd.grad(value, point, create_graph=True, materialize_grads=True)
            curved = [pair for pair in zip(slopes, along, strict=True) if pair[0].requires_grad]
            if curved:
                # Unlike `grad`, `backward` raises an error for functions that are differentiable only once.
                torch.autograd.backward([slope for slope, _ in curved], [each for _, each in curved])
        found = [torch.zeros_like(each) if each.grad is None else each.grad for each in point]
        return torch.cat([each.reshape(-1).cpu().to(torch.float64) for each in found]).numpy().astype(dtype)

    return cast(Any, LinearOperator)((sum(sizes),) * 2, matvec=product, dtype=dtype)


def scaled_operator(operator: LinearOperator, scales: torch.Tensor) -> LinearOperator:
    """Return the operator v → s ∘ H(s ∘ v), for the scales s of the entries of v.

    Example:
        >>> operator = cast(Any, LinearOperator)((2, 2), matvec=lambda vector: 3 * vector, dtype=np.float32)
        >>> scaled_operator(operator, torch.tensor([1.0, 2.0])) @ np.array([1.0, 1.0])
        array([ 3., 12.])
    """
    s = scales.detach().cpu().to(torch.float64).numpy()
    return cast(Any, LinearOperator)(
        operator.shape,
        matvec=lambda vector: s * (operator @ (s * vector.reshape(-1))),
        dtype=operator.dtype,
    )
