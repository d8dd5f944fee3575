"""PyTorch modules and functions as functions of lists of tensors."""
# pyright: reportMissingImports=false

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import torch

from dynascope.errors import InputError
from dynascope.torch.devices import buffer_places, parameter_places
from dynascope.torch.modules import (
    INSIDE,
    Applied,
    call_arguments,
    floating_tensors,
    require_shapes,
    uncompiled,
    unwrapped,
)
from dynascope.validation import require, shown

__all__ = ["Network", "copied", "network"]


@dataclasses.dataclass(frozen=True)
class Network:
    """A network as a function of lists of tensors, for export.

    Attributes:
        call: (parameters, buffers, input tensors) → all floating-point tensors that the network returns.
        parameters: The distinct trained tensors.
        buffers: All other tensors of the network.
        inputs: The input tensors.
        params: The tree of parameters as NumPy arrays; {name: array} for a module.
        example_inputs: The tree of inputs as NumPy arrays.
    """

    call: Callable[[Sequence[torch.Tensor], Sequence[torch.Tensor], Sequence[torch.Tensor]], list[torch.Tensor]]
    parameters: list[torch.Tensor]
    buffers: list[torch.Tensor]
    inputs: list[torch.Tensor]
    params: Any
    example_inputs: Any


def network(model: Any, example_inputs: Any, params: Any) -> Network:
    """Return the network of a module, or of a function of (params, inputs) with its parameters.

    Raises:
        InputError: If `find_symmetries` does not accept an argument.
    """
    require(
        callable(model),
        f"apply is {shown(model)}",
        argument="apply",
        value=type(model).__name__,
        remedy="give a torch.nn.Module, or a function of (params, inputs) together with params",
    )
    leaves, tree = jax.tree.flatten(example_inputs)
    tensors = [_input(each) for each in leaves]
    require(
        bool(tensors),
        "example_inputs is empty",
        argument="example_inputs",
        remedy="give the inputs of the model: a tensor, a tuple of arguments, or a dictionary",
    )
    arrays = jax.tree.unflatten(tree, [copied(each).numpy() for each in tensors])

    def inputs_of(given: Sequence[torch.Tensor]) -> Any:
        return jax.tree.unflatten(tree, list(given))

    if isinstance(model, torch.nn.Module) or isinstance(params, torch.nn.Module):
        module = unwrapped(model if isinstance(model, torch.nn.Module) else params)
        require(
            module is not unwrapped(model) or params is None,
            "params is given for a module, which has its own parameters",
            argument="params",
            value=type(params).__name__,
            remedy="omit params, and call requires_grad_(False) on parameters that are not trained",
        )
        return _of_module(module, None if module is unwrapped(model) else uncompiled(model), inputs_of, tensors, arrays)
    function = uncompiled(model)
    found, structure = jax.tree.flatten(params)
    parameters = [_parameter(f"number {place}", each) for place, each in enumerate(found)]
    _require_some(parameters)

    def call(values: Sequence[torch.Tensor], _: Sequence[torch.Tensor], given: Sequence[torch.Tensor]) -> Any:
        return list(floating_tensors(function(jax.tree.unflatten(structure, list(values)), inputs_of(given))))

    named = jax.tree.unflatten(structure, [copied(each).numpy() for each in parameters])
    return Network(call, parameters, [], tensors, named, arrays)


def copied(tensor: torch.Tensor, *, wide: bool = True) -> torch.Tensor:
    """Return a copy of a tensor on the CPU; floating-point tensors become float64 if `wide` is true."""
    kind = torch.float64 if wide and tensor.is_floating_point() else tensor.dtype
    return tensor.detach().to("cpu", kind, copy=True)


def _of_module(
    module: torch.nn.Module,
    function: Callable[[Any, Any], Any] | None,
    inputs_of: Callable[[Sequence[torch.Tensor]], Any],
    tensors: list[torch.Tensor],
    arrays: Any,
) -> Network:
    require_shapes("apply", module)
    # A tied weight is one tensor, or two tensors that share memory.
    trained: dict[Any, str] = {}
    first: dict[str, str] = {}
    named = parameter_places(module)
    for name, each in named.items():
        if each.requires_grad:
            first[name] = trained.setdefault((each.data_ptr() or id(each), each.shape, each.stride()), name)
    kept = {name: each.detach() for name, each in named.items() if not each.requires_grad}
    kept |= buffer_places(module)
    # The tree of a dictionary has sorted keys.
    names = sorted(trained.values())
    parameters = [_parameter(name, named[name]) for name in names]
    _require_some(parameters)
    applied = module if function is None else Applied(module, function)
    prefix = "" if function is None else INSIDE

    def call(
        values: Sequence[torch.Tensor], buffers: Sequence[torch.Tensor], given: Sequence[torch.Tensor]
    ) -> list[torch.Tensor]:
        by_name = dict(zip(names, values, strict=True))
        state = {name: by_name[other] for name, other in first.items()} | dict(zip(kept, buffers, strict=True))
        positional, named = call_arguments(applied, inputs_of(given))
        state = {prefix + name: each for name, each in state.items()}
        return list(floating_tensors(torch.func.functional_call(applied, state, positional, named, tie_weights=False)))

    named_arrays = {name: copied(each).numpy() for name, each in zip(names, parameters, strict=True)}
    return Network(call, parameters, list(kept.values()), tensors, named_arrays, arrays)


def _input(leaf: Any) -> torch.Tensor:
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "iufb":
        leaf = torch.from_numpy(np.array(leaf))
    if not isinstance(leaf, torch.Tensor) or leaf.is_complex():
        raise InputError(
            f"example_inputs contains {shown(leaf) if not isinstance(leaf, torch.Tensor) else 'complex numbers'}",
            argument="example_inputs",
            value=type(leaf).__name__,
            remedy="give real tensors, alone or in dictionaries, lists and tuples; wrap other arguments in a function",
        )
    require(
        leaf.numel() > 0 and bool(torch.isfinite(leaf).all()),
        "example_inputs contains a tensor that is empty or not finite",
        argument="example_inputs",
        value=tuple(leaf.shape),
        remedy="give a batch like those used in training",
    )
    return leaf.detach()


def _parameter(name: str, leaf: Any) -> torch.Tensor:
    require(
        isinstance(leaf, torch.Tensor) and leaf.is_floating_point() and bool(torch.isfinite(leaf).all()),
        f"the parameter {name} is {shown(leaf) if not isinstance(leaf, torch.Tensor) else 'not real and finite'}",
        argument="params",
        value=str(getattr(leaf, "dtype", type(leaf).__name__)),
        remedy="give tensors of finite real numbers",
    )
    return leaf


def _require_some(parameters: list[torch.Tensor]) -> None:
    require(
        sum(each.numel() for each in parameters) > 0,
        "the model has no trainable parameters",
        argument="params",
        value=len(parameters),
        remedy="give a module with parameters that require a gradient, or a function with a tree of tensors",
    )
