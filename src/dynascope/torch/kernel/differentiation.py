"""Gradients of the outputs of each example, vectorised by `torch.func` or, if this fails, computed one by one."""
# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from dynascope.errors import InputError
from dynascope.probes.kernel.examples import count_rows, rows_of
from dynascope.torch.kernel.model import Model
from dynascope.validation import shown_error

__all__ = ["Function", "outputs_of", "pullback", "pushforward", "quiet", "unit_directions"]

# (differentiated tensors, one example) → (flattened outputs, other tensors).
Function = Callable[[Sequence[torch.Tensor], Any], tuple[torch.Tensor, Sequence[torch.Tensor]]]


@contextmanager
def quiet() -> Iterator[None]:
    """Enable gradients, and silence the warning that `torch.func` runs an operation in a loop."""
    with warnings.catch_warnings(), torch.inference_mode(False), torch.enable_grad():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        yield


def outputs_of(model: Model, examples: Any, *, mapped: bool) -> torch.Tensor:
    """Return the outputs of each example, computed separately, shape (n, c)."""

    def single(example: Any) -> torch.Tensor:
        return model.outputs(model.parameters, example)

    with quiet():
        found = torch.func.vmap(single)(examples) if mapped else torch.stack([single(each) for each in _each(examples)])
    return found.detach()


def pullback(
    function: Function, free: Sequence[torch.Tensor], examples: Any, directions: torch.Tensor, *, mapped: bool
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return vᵀ ∂f(x_i)/∂θ for each direction v of the outputs.

    Args:
        function: f.
        free: θ.
        examples: n examples.
        directions: v, shape (r, c).
        mapped: Whether to use `torch.func`, which is faster but does not support all operations.

    Returns:
        The products for each θ, shape (n, r, *θ.shape); and the other tensors of the function, with a leading axis over
        the examples.
    """
    if not mapped:
        return _one_by_one(function, free, examples, directions)

    def single(example: Any) -> Any:
        _, pull, *others = torch.func.vjp(lambda *values: _as_lists(function(values, example)), *free, has_aux=True)
        return list(torch.func.vmap(pull)(directions)), others[0]

    with quiet():
        return torch.func.vmap(single)(examples)


def unit_directions(model: Model, example: Any) -> torch.Tensor:
    """Return one unit vector for each output."""
    with quiet():
        outputs = model.outputs(model.parameters, example)
    return torch.eye(outputs.numel(), dtype=outputs.dtype, device=outputs.device)


def pushforward(model: Model, directions: Sequence[torch.Tensor], examples: Any) -> torch.Tensor:
    """Return J r for a direction r of the parameters, shape (n, c), computed by `torch.func`."""

    def outputs(*parameters: torch.Tensor) -> torch.Tensor:
        return torch.func.vmap(lambda example: model.outputs(parameters, example))(examples)

    try:
        with quiet():
            return torch.func.jvp(outputs, model.parameters, tuple(directions))[1]
    except (RuntimeError, NotImplementedError) as error:
        raise InputError(
            f"PyTorch cannot compute forward-mode derivatives of apply ({shown_error(error)})",
            argument="algorithm",
            remedy='choose the algorithm "structured" or "layerwise"',
        ) from error


def _one_by_one(
    function: Function, free: Sequence[torch.Tensor], examples: Any, directions: torch.Tensor
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    rows, kept = [], []
    for example in _each(examples):
        leaves = [each.detach().requires_grad_() for each in free]
        with quiet():
            outputs, others = function(leaves, example)
            found = [_gradients(outputs, leaves, direction) for direction in directions]
        rows.append([torch.stack(each) for each in zip(*found, strict=True)])
        kept.append([each.detach() for each in others])
    return [torch.stack(each) for each in zip(*rows, strict=True)], [
        torch.stack(each) for each in zip(*kept, strict=True)
    ]


def _gradients(outputs: torch.Tensor, leaves: list[torch.Tensor], direction: torch.Tensor) -> Sequence[torch.Tensor]:
    if not leaves or not outputs.requires_grad:
        return [torch.zeros_like(each) for each in leaves]
    return torch.autograd.grad(outputs, leaves, direction, retain_graph=True, materialize_grads=True)


def _each(examples: Any) -> Iterator[Any]:
    for row in range(count_rows(examples)):
        yield rows_of(examples, row)


def _as_lists(found: tuple[torch.Tensor, Sequence[torch.Tensor]]) -> tuple[torch.Tensor, list[torch.Tensor]]:
    return found[0], list(found[1])
