"""The sharpest directions of the loss of a PyTorch module, by curvlinops."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from curvlinops import GGNLinearOperator, HessianLinearOperator
from scipy.sparse.linalg import eigsh

from dynascope.arguments import require, require_choice, require_finite_values, require_integer, require_seed
from dynascope.probes.diffusion.hessian import TopCurvatures

__all__ = ["require_batched_loss", "top_curvatures"]


def top_curvatures(
    module: torch.nn.Module,
    loss: Callable[[Any, Any], Any],
    batches: Iterable[tuple[Any, Any]],
    count: int,
    *,
    gauss_newton: bool = False,
    seed: int = 0,
) -> TopCurvatures:
    """The largest eigenvalues ρ of the Hessian of a loss, or of its Gauss-Newton matrix, for a module of PyTorch.

    It is `probes.diffusion.top_curvatures`, with products by curvlinops and the eigenvalues by ARPACK. Directions are
    in the order of the parameters that require a gradient. Cost: some tens of passes over all batches, of about four
    gradients each, memory for 3k times as many numbers as there are weights.

    Args:
        module: In evaluation, where dropout and running statistics are fixed, unless training itself is meant.
        loss: A loss of PyTorch that takes outputs and targets, such as `torch.nn.CrossEntropyLoss()`, with the
            reduction "mean" or "sum" (that of the sum is not divided by anything).
        batches: Pairs (inputs, targets) of all the data, a list or a loader without shuffling.
        count: k, below the number of weights.
        gauss_newton: Whether it is the Gauss-Newton matrix, which has no eigenvalue below zero for convex losses.
        seed: Seed of the vector from which the iteration starts.

    Raises:
        InputError: No module, loss or batches such as these, no weights, weights that are not finite, or as many
            eigenvalues as there are weights.

    References:
        F. Dangel et al., Position: curvature matrices should be democratized via linear operators, arXiv:2501.19183.

    Example:
        >>> import torch
        >>> layer, x = torch.nn.Linear(2, 1, bias=False), torch.diag(torch.tensor([2.0, 1.0]))
        >>> found = top_curvatures(layer, torch.nn.MSELoss(), [(x, torch.zeros(2, 1))], 1)
        >>> print(found.curvature.round(4), np.abs(found.directions).round(4))
        [4.] [[1. 0.]]
    """
    require_batched_loss(module, loss, batches)
    require_choice("gauss_newton", gauss_newton, (True, False))
    parameters = [each for each in module.parameters() if each.requires_grad]
    size = sum(each.numel() for each in parameters)
    require(
        size > 1,
        f"module has {size} weights that require a gradient",
        argument="module",
        value=size,
        remedy="give a module with two or more",
    )
    for each in parameters:
        require_finite_values("module", each)
    require_integer(most=size - 1, count=count)
    require_seed(seed)
    kind = GGNLinearOperator if gauss_newton else HessianLinearOperator
    operator: Any = kind(module, loss, parameters, batches, check_deterministic=False).to_scipy()
    start = np.random.default_rng(seed).normal(size=size).astype(operator.dtype)
    curvature, columns = eigsh(operator, k=count, which="LA", v0=start)
    order = np.argsort(-curvature)
    curvature, directions = curvature[order], columns[:, order].T
    moved = np.stack([operator @ each for each in directions])
    return TopCurvatures(curvature, directions, np.linalg.norm(moved - curvature[:, None] * directions, axis=1))


def require_batched_loss(module: Any, loss: Any, batches: Any) -> None:
    """Raise `InputError` unless a module has a loss on pairs that can be gone through again and again."""
    require(
        isinstance(module, torch.nn.Module),
        f"module is a {type(module).__name__}",
        argument="module",
        value=type(module).__name__,
        remedy="give a torch.nn.Module",
    )
    require(
        callable(loss) and getattr(loss, "reduction", None) in ("mean", "sum"),
        f"loss is a {type(loss).__name__} that does not say whether it is a mean or a sum",
        argument="loss",
        value=type(loss).__name__,
        remedy="give a loss of torch.nn with the reduction 'mean' or 'sum'",
    )
    again = isinstance(batches, Iterable) and iter(batches) is not batches
    first = next(iter(batches), None) if again else None
    require(
        isinstance(first, list | tuple) and len(first) == 2,
        f"batches is a {type(batches).__name__} that does not begin with a pair, or can be read only once",
        argument="batches",
        value=type(batches).__name__,
        remedy="give a list or a loader of pairs (inputs, targets)",
    )
