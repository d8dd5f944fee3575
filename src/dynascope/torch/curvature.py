"""The sharpest directions of the loss of a PyTorch module."""
# pyright: reportMissingImports=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from curvlinops import GGNLinearOperator
from scipy.sparse.linalg import ArpackError, eigsh

from dynascope.errors import InputError
from dynascope.probes.diffusion.hessian import TopCurvatures
from dynascope.torch.hessian import hessian_operator
from dynascope.torch.modules import require_shapes, unwrapped
from dynascope.torch.repeatable import require_evaluation_mode, require_repeatable, rounding, unchanged
from dynascope.validation import (
    require,
    require_choice,
    require_finite_values,
    require_integer,
    require_seed,
    shown_error,
)

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

    It is `probes.diffusion.top_curvatures`, with the eigenvalues by ARPACK. Products with the Hessian take two backward
    passes; those with the Gauss-Newton matrix are by curvlinops. Directions are in the order of the parameters that
    require a gradient. Cost: some tens of passes over all batches, of about four gradients each, memory for 3k times as
    many numbers as there are weights.

    Every product passes over all batches, so that the loss must be the same function in each pass. Two passes check
    this before the iteration starts. The module and the random numbers of PyTorch are left unchanged.

    Args:
        module: The module, in evaluation mode if it has dropout or batch normalisation.
        loss: A loss of PyTorch that takes outputs and targets, such as `torch.nn.CrossEntropyLoss()`, with the
            reduction "mean" or "sum" (that of the sum is not divided by anything).
        batches: Pairs (inputs, targets) of all the data: a list, or a loader without shuffling and random augmentation.
        count: k, below the number of weights.
        gauss_newton: Whether it is the Gauss-Newton matrix, which has no eigenvalue below zero for convex losses.
        seed: Seed of the vector from which the iteration starts.

    Raises:
        InputError: No module, loss or batches such as these, no weights, weights that are not finite, or as many
            eigenvalues as there are weights. Layers in training mode that draw random numbers or use statistics of the
            batch, a module or loss that gives other numbers when it is called again, or batches that change between
            passes. A loss that is not finite, or that PyTorch cannot differentiate twice.

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
    module = unwrapped(module)
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
    with unchanged(module, parameters[0].device):
        samples = _samples_of_repeatable_loss(module, loss, batches, parameters[0].device)
        operator: Any = (
            GGNLinearOperator(module, loss, parameters, batches, check_deterministic=False).to_scipy()
            if gauss_newton
            else hessian_operator(module, loss, parameters, batches, samples)
        )
        start = np.random.default_rng(seed).normal(size=size).astype(operator.dtype)
        with _differentiating():
            curvature, columns = eigsh(operator, k=count, which="LA", v0=start)
        order = np.argsort(-curvature)
        curvature, directions = curvature[order], columns[:, order].T
        moved = np.stack([operator @ each for each in directions])
    found = curvature, directions, np.linalg.norm(moved - curvature[:, None] * directions, axis=1)
    return TopCurvatures(*(each.astype(np.float64) for each in found))


def require_batched_loss(module: Any, loss: Any, batches: Any) -> None:
    """Raise `InputError` unless a module in evaluation mode has a loss on pairs that can be read again and again."""
    require(
        isinstance(module, torch.nn.Module),
        f"module is a {type(module).__name__}",
        argument="module",
        value=type(module).__name__,
        remedy="give a torch.nn.Module",
    )
    require_shapes("module", module)
    require_evaluation_mode("module", module, purpose="the loss is the same at every call")
    require(
        callable(loss) and getattr(loss, "reduction", None) in ("mean", "sum"),
        f"loss is a {type(loss).__name__} that does not say whether it is a mean or a sum",
        argument="loss",
        value=type(loss).__name__,
        remedy="give a loss of torch.nn with the reduction 'mean' or 'sum'",
    )
    # A loader draws a random number at the start of each pass.
    with torch.random.fork_rng([]):
        again = isinstance(batches, Iterable) and iter(batches) is not batches
        first = next(iter(batches), None) if again else None
    require(
        isinstance(first, list | tuple) and len(first) == 2 and isinstance(first[0], torch.Tensor),
        f"batches is a {type(batches).__name__} that does not begin with a pair of tensors, or can be read only once",
        argument="batches",
        value=type(batches).__name__,
        remedy="give a list or a loader of pairs (inputs, targets)",
    )


def _samples_of_repeatable_loss(module: torch.nn.Module, loss: Any, batches: Any, device: torch.device) -> int:
    """Return the number of samples after checking that every batch and both of two passes have the same loss."""
    passes = []
    for first in (True, False):
        samples, total, dtype = 0, 0.0, torch.float64
        for inputs, targets in batches:
            evaluate = functools.partial(_outputs_and_loss, module, loss, inputs, targets, device)
            with _calling():
                _, value = require_repeatable("module", evaluate, device) if first else evaluate()
            require(
                bool(torch.isfinite(value)),
                f"the loss is {float(value)}",
                argument="batches",
                value=float(value),
                remedy="give batches on which the loss is finite",
            )
            # The mean is over all samples, as batches may differ in size.
            weight = len(inputs) if loss.reduction == "mean" else 1
            samples, total, dtype = samples + len(inputs), total + weight * float(value), value.dtype
        passes.append((samples, total / max(samples, 1) if loss.reduction == "mean" else total))
    (_, one), (_, two) = passes
    require(
        passes[0][0] == passes[1][0] and abs(one - two) <= rounding(dtype) * abs(one),
        f"the loss of all batches is {one:.9g} in one pass and {two:.9g} in the next",
        argument="batches",
        value=[one, two],
        remedy="give the batches of one pass, list(loader): without shuffling and random augmentation",
    )
    return passes[0][0]


def _outputs_and_loss(module: Any, loss: Any, inputs: Any, targets: Any, device: torch.device) -> tuple[Any, Any]:
    with torch.no_grad():
        outputs = module(inputs.to(device))
        return outputs, loss(outputs, targets.to(device))


@contextmanager
def _calling() -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # whatever code of the user's raises
        raise InputError(
            f"the module and the loss fail on a batch with {type(error).__name__}: {shown_error(error)}",
            argument="batches",
            remedy="give pairs of inputs that the module takes and targets that the loss takes",
        ) from error


@contextmanager
def _differentiating() -> Iterator[None]:
    try:
        yield
    except (ArpackError, torch.OutOfMemoryError):
        raise
    except RuntimeError as error:
        raise InputError(
            f"PyTorch cannot differentiate the loss twice ({type(error).__name__}: {shown_error(error)})",
            argument="module",
            remedy="give a module of operations with second derivatives; attention has them within "
            "torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)",
        ) from error
