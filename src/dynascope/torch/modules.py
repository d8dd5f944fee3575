"""Calls of PyTorch modules, and of functions of modules, on user inputs."""
# pyright: reportMissingImports=false

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from dynascope.validation import require

__all__ = ["INSIDE", "Applied", "call_arguments", "floating_tensors", "require_shapes", "uncompiled", "unwrapped"]

INSIDE = "network."  # name prefix of a module inside `Applied`


class Applied(torch.nn.Module):
    """A function of a module and its inputs, wrapped as a module."""

    def __init__(self, network: torch.nn.Module, function: Callable[[Any, Any], Any]):
        super().__init__()
        self.network = network
        self.function = function

    def forward(self, inputs: Any) -> Any:
        """Apply the function to the module and its inputs."""
        return self.function(self.network, inputs)


def unwrapped(module: Any) -> Any:
    """Return the module inside the wrappers of `torch.compile` and of data-parallel training.

    The wrapper of a compiled module hides its layers.
    """
    if isinstance(module, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
        return unwrapped(module.module)
    inner = getattr(module, "_orig_mod", None)
    return module if inner is None else unwrapped(inner)


def uncompiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the original of a function compiled by `torch.compile`."""
    return getattr(function, "_torchdynamo_orig_callable", function)


def call_arguments(module: torch.nn.Module, inputs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and keyword arguments of a forward pass.

    A tuple contains positional arguments. A dictionary contains keyword arguments if all its keys are argument names,
    or if the module accepts its entries as keyword arguments. Any other input is a single argument.

    Example:
        >>> call_arguments(torch.nn.Linear(2, 2), {"input": 1}), call_arguments(torch.nn.Linear(2, 2), {"x": 1})
        (((), {'input': 1}), (({'x': 1},), {}))
    """
    if isinstance(module, Applied):
        return (inputs,), {}
    if isinstance(inputs, dict):
        signature = inspect.signature(module.forward)
        if all(name in signature.parameters for name in inputs) or _accepts(signature, inputs):
            return (), inputs
    return (inputs if isinstance(inputs, tuple) else (inputs,)), {}


def _accepts(signature: inspect.Signature, inputs: dict[Any, Any]) -> bool:
    """Return whether a call with keyword arguments alone matches a signature."""
    try:
        signature.bind(**inputs)
    except TypeError:
        return False
    return True


def floating_tensors(found: Any) -> Iterator[torch.Tensor]:
    """Yield the floating-point tensors in the output of a module.

    Example:
        >>> [each.shape[0] for each in floating_tensors({"a": torch.ones(2), "b": [torch.arange(3), torch.ones(4)]})]
        [2, 4]
    """
    if isinstance(found, torch.Tensor):
        if found.is_floating_point():
            yield found
    elif isinstance(found, Mapping):
        for each in found.values():
            yield from floating_tensors(each)
    elif isinstance(found, list | tuple):
        for each in found:
            yield from floating_tensors(each)


def require_shapes(argument: str, module: torch.nn.Module) -> None:
    """Raise `InputError` if a parameter of a lazy layer has no shape yet."""
    lazy = [name for name, each in module.named_parameters() if isinstance(each, torch.nn.UninitializedParameter)]
    require(
        not lazy,
        f"the module contains uninitialised parameters ({', '.join(lazy)})",
        argument=argument,
        value=lazy,
        remedy="call the module once on a batch of inputs",
    )
