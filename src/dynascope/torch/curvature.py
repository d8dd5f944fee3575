"""Largest curvatures of the loss of a PyTorch module, and their directions."""
# pyright: reportMissingImports=false

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Literal, TypeAlias, get_args

import numpy as np
import torch
from annotated_types import Interval
from scipy.sparse.linalg import ArpackError, eigsh
from torch.nn.utils import parameters_to_vector

from dynascope.errors import InputError
from dynascope.probes.diffusion.hessian import TopCurvatures
from dynascope.torch.hessian import hessian_operator, scaled_operator
from dynascope.torch.modules import require_shapes, unwrapped
from dynascope.torch.repeatable import require_evaluation_mode, require_repeatable, rounding, unchanged
from dynascope.validation import require, require_choice, require_finite_values, require_kind, shown, shown_error

__all__ = ["module_curvatures", "require_batched_loss", "top_curvatures", "with_reduction"]

Reduction: TypeAlias = Literal["mean", "sum"]


def top_curvatures(
    loss: Any,
    weights: Any,
    count: int,
    *,
    batches: Any = None,
    model: Any = None,
    gauss_newton: bool = False,
    reduction: Reduction | None = None,
    products: Any = None,
    seed: int = 0,
) -> TopCurvatures:
    """Implement `probes.diffusion.top_curvatures` for a module passed as `weights`."""
    for name, value in (("model", model), ("products", products)):
        require(
            value is None,
            f"{name} is given for a PyTorch module",
            argument=name,
            value=shown(value),
            remedy=f"omit {name}, which applies only to JAX functions",
        )
    loss = with_reduction(loss, reduction)
    return module_curvatures(weights, loss, batches, count, gauss_newton=gauss_newton, seed=seed, argument="weights")


def module_curvatures(
    module: torch.nn.Module,
    loss: Any,
    batches: Iterable[tuple[Any, Any]],
    count: int,
    *,
    gauss_newton: bool = False,
    scales: Callable[[torch.Tensor], torch.Tensor] | None = None,
    seed: int = 0,
    argument: str = "module",
) -> TopCurvatures:
    """Return the largest curvatures of a module; `argument` is the name of the module in error messages.

    With `scales`, a function that returns the scale s of each entry of a parameter, the curvatures are those of the
    loss as a function of θ/s: the eigenvalues of diag(s) H diag(s).

    Raises:
        InputError: If `probes.diffusion.top_curvatures` rejects an argument.
        ModuleNotFoundError: If `gauss_newton` is true and curvlinops is missing.
    """
    require_batched_loss(module, loss, batches, argument=argument)
    module = unwrapped(module)
    parameters = [each for each in module.parameters() if each.requires_grad]
    size = sum(each.numel() for each in parameters)
    require(
        size > 1,
        f"{argument} has {size or 'no'} weight{'s' * (size != 1)} that require{'s' * (size == 1)} a gradient",
        argument=argument,
        value=size,
        remedy="give a module with at least two weights that require a gradient",
    )
    for each in parameters:
        require_finite_values(argument, each)
    require_kind(Annotated[int, Interval(ge=1, le=size - 1)], count=count)
    with unchanged(module, parameters[0].device):
        samples = _samples_of_repeatable_loss(module, loss, batches, parameters[0].device, argument)
        operator: Any = (
            _gauss_newton_operator(module, loss, parameters, batches)
            if gauss_newton
            else hessian_operator(module, loss, parameters, batches, samples)
        )
        if scales is not None:
            operator = scaled_operator(operator, parameters_to_vector([scales(each) for each in parameters]))
        start = np.random.default_rng(seed).normal(size=size).astype(operator.dtype)
        with _differentiating(argument):
            curvature, columns = eigsh(operator, k=count, which="LA", v0=start)
        order = np.argsort(-curvature)
        curvature, directions = curvature[order], columns[:, order].T
        moved = np.stack([operator @ each for each in directions])
    found = curvature, directions, np.linalg.norm(moved - curvature[:, None] * directions, axis=1)
    return TopCurvatures(*(each.astype(np.float64) for each in found))


def _gauss_newton_operator(module: torch.nn.Module, loss: Any, parameters: Any, batches: Any) -> Any:
    try:
        from curvlinops import GGNLinearOperator
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "gauss_newton=True requires curvlinops-for-pytorch, which is missing: run python -m pip install '.[torch]' "
            "in a checkout.",
            name="curvlinops",
        ) from None
    return GGNLinearOperator(module, loss, parameters, batches, check_deterministic=False).to_scipy()


class _FunctionLoss(torch.nn.Module):
    """A function of outputs and targets, wrapped as a loss module with a reduction."""

    def __init__(self, function: Any, reduction: Reduction):
        super().__init__()
        self.function, self.reduction = function, reduction

    def forward(self, outputs: Any, targets: Any) -> Any:
        return self.function(outputs, targets)


def with_reduction(loss: Any, reduction: Reduction | None) -> Any:
    """Return the loss, as a module with this reduction if one is given.

    Raises:
        InputError: If the reduction is neither "mean" nor "sum", or contradicts that of the loss.

    Example:
        >>> with_reduction(lambda outputs, targets: (outputs - targets).square().mean(), "mean").reduction
        'mean'
    """
    if reduction is None:
        return loss
    require_choice("reduction", reduction, get_args(Reduction))
    stated = getattr(loss, "reduction", reduction)
    require(
        stated == reduction,
        f"reduction is {reduction!r}, but the loss has reduction {stated!r}",
        argument="reduction",
        value=reduction,
        remedy="omit reduction, which a torch.nn loss already defines",
    )
    return _FunctionLoss(loss, reduction) if not hasattr(loss, "reduction") else loss


def require_batched_loss(module: Any, loss: Any, batches: Any, *, argument: str = "module") -> None:
    """Raise `InputError` unless the module is in evaluation mode and the batches can be read repeatedly."""
    require(
        isinstance(module, torch.nn.Module),
        f"{argument} is of type {type(module).__name__}",
        argument=argument,
        value=type(module).__name__,
        remedy="give a torch.nn.Module",
    )
    require_shapes(argument, module)
    require_evaluation_mode(argument, module, purpose="the loss is the same in every call")
    require(
        callable(loss) and getattr(loss, "reduction", None) in ("mean", "sum"),
        f"loss, of type {type(loss).__name__}, does not have the reduction 'mean' or 'sum'",
        argument="loss",
        value=type(loss).__name__,
        remedy="give a torch.nn loss with one of these reductions, or a function together with reduction='mean'",
    )
    # A loader draws a random number at the start of each pass.
    with torch.random.fork_rng([]):
        again = isinstance(batches, Iterable) and iter(batches) is not batches
        first = next(iter(batches), None) if again else None
    kind = type(batches).__name__
    if batches is None:
        problem = "batches is missing"
    elif not again:
        problem = f"batches, of type {kind}, cannot be read repeatedly"
    elif isinstance(first, torch.Tensor):
        problem = f"batches, of type {kind}, contains tensors instead of pairs"
    else:
        problem = f"batches, of type {kind}, is empty, or its first item is not a pair of tensors"
    require(
        isinstance(first, list | tuple) and len(first) == 2 and isinstance(first[0], torch.Tensor),
        problem,
        argument="batches",
        value=kind,
        remedy="give a list or a loader of pairs (inputs, targets), such as [(inputs, targets)]",
    )


def _samples_of_repeatable_loss(
    module: torch.nn.Module, loss: Any, batches: Any, device: torch.device, argument: str
) -> int:
    """Return the number of samples, after checking that the losses of all batches are reproducible."""
    passes = []
    for first in (True, False):
        samples, total, dtype = 0, 0.0, torch.float64
        for inputs, targets in batches:
            evaluate = functools.partial(_outputs_and_loss, module, loss, inputs, targets, device)
            with _calling():
                _, value = require_repeatable(argument, evaluate, device) if first else evaluate()
            require(
                bool(torch.isfinite(value)),
                f"the loss is {float(value)}",
                argument="batches",
                value=float(value),
                remedy="give batches on which the loss is finite",
            )
            # The mean is over all samples, because batches may differ in size.
            weight = len(inputs) if loss.reduction == "mean" else 1
            samples, total, dtype = samples + len(inputs), total + weight * float(value), value.dtype
        passes.append((samples, total / max(samples, 1) if loss.reduction == "mean" else total))
    (_, one), (_, two) = passes
    require(
        passes[0][0] == passes[1][0] and abs(one - two) <= rounding(dtype) * abs(one),
        f"the loss of all batches is {one:.9g} in one pass and {two:.9g} in the next",
        argument="batches",
        value=[one, two],
        remedy="give list(loader), or a loader without shuffling or random augmentation",
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
    except Exception as error:  # user code may raise anything
        raise InputError(
            f"the module or the loss raised {type(error).__name__} on a batch ({shown_error(error)})",
            argument="batches",
            remedy="give batches (inputs, targets) that the module and the loss accept",
        ) from error


@contextmanager
def _differentiating(argument: str) -> Iterator[None]:
    try:
        yield
    except (ArpackError, torch.OutOfMemoryError):
        raise
    except RuntimeError as error:
        raise InputError(
            f"PyTorch cannot differentiate the loss twice ({type(error).__name__}: {shown_error(error)})",
            argument=argument,
            remedy="use operations that support double backward; for attention, call this function within "
            "torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)",
        ) from error
