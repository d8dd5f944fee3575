"""PyTorch modules and functions as functions of a list of parameters, for kernel algorithms."""
# pyright: reportMissingImports=false

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import torch

from dynascope.errors import InputError
from dynascope.probes.kernel.rates import NO_PARAMETER
from dynascope.torch.devices import buffer_places, parameter_places
from dynascope.torch.modules import INSIDE, Applied, call_arguments, require_shapes, uncompiled, unwrapped
from dynascope.torch.repeatable import BATCH_NORMS, require_evaluation_mode
from dynascope.validation import require, require_finite_values

__all__ = ["Model", "split"]


@dataclasses.dataclass(frozen=True)
class Model:
    """A function and the parameters with respect to which it is differentiated.

    Attributes:
        call: (tensors in place of the parameters, inputs (n, ...)) → outputs (n, ...).
        parameters: The distinct parameters.
        tree: The tree of `params`, or of the parameters of the module. Each leaf is the index of a parameter, or −1 for
            other tensors.
        reduction: None for all outputs, "pseudo" for c^(−1/2) Σ_a f_a, or the indices of selected outputs.
    """

    call: Callable[[Sequence[torch.Tensor], Any], Any]
    parameters: tuple[torch.Tensor, ...]
    tree: Any
    reduction: str | tuple[int, ...] | None = None

    def outputs(self, parameters: Sequence[torch.Tensor], example: Any) -> torch.Tensor:
        """Return the flattened outputs for one example."""
        found = self.call(parameters, jax.tree.map(lambda each: each[None], example)).reshape(-1)
        if self.reduction is None:
            return found
        if self.reduction == "pseudo":
            return found.sum().reshape(1) / found.numel() ** 0.5
        return torch.stack([found[number] for number in self.reduction])


def split(apply: Any, params: Any) -> Model:
    """Return the model of a module, or of a function of a module or a tree of tensors."""
    require(
        callable(apply),
        f"apply is of type {type(apply).__name__}",
        argument="apply",
        value=type(apply).__name__,
        remedy="give a torch.nn.Module, or a function of (params, x)",
    )
    if isinstance(apply, torch.nn.Module):
        return _of_module(unwrapped(apply), params)
    apply = uncompiled(apply)
    if isinstance(params, torch.nn.Module):
        network = unwrapped(params)
        return _of_module(Applied(network, apply), _trained(network, INSIDE), network)
    return _of_tree(apply, params)


def _trained(module: torch.nn.Module, prefix: str = "") -> dict[str, torch.Tensor]:
    return {prefix + name: each for name, each in module.named_parameters() if each.requires_grad}


def _of_module(module: torch.nn.Module, params: Any, network: torch.nn.Module | None = None) -> Model:
    require_shapes("apply", module)
    _require_separate_examples(module if network is None else network)
    chosen = _trained(module) if params is None else params
    # Tied parameters have several names.
    named = dict(module.named_parameters(remove_duplicate=False))
    require(
        params is not None or chosen,
        "no parameter of the module requires a gradient",
        argument="params",
        value=len(named),
        remedy="unfreeze parameters, or give {name: tensor} with names from module.named_parameters()",
    )
    require(
        isinstance(chosen, Mapping) and len(chosen) > 0 and all(name in named for name in chosen),
        "params is not a dictionary of the module's parameters",
        argument="params",
        value=sorted(map(str, chosen)) if isinstance(chosen, Mapping) else type(chosen).__name__,
        remedy="give None for all parameters that require a gradient, or {name: tensor} with names from "
        "module.named_parameters()",
    )
    wrong = [name for name, each in chosen.items() if getattr(each, "shape", None) != named[name].shape]
    require(
        not wrong,
        f"params contains {', '.join(wrong)} with another shape than in the module",
        argument="params",
        value=wrong,
        remedy="give tensors with the shapes of module.named_parameters()",
    )
    tied: dict[int, str] = {}
    for name in chosen:
        first = tied.setdefault(id(named[name]), name)
        require(
            chosen[name] is chosen[first],
            f"{first} and {name} are the same parameter of the module, but different tensors in params",
            argument="params",
            value=[first, name],
            remedy="give this parameter once, under one of its names",
        )
    # The keys are sorted, as in the tree and in the rates.
    names = sorted(chosen)
    parameters, places = _once([chosen[name] for name in names])
    chosen_places = {id(named[name]): place for name, place in zip(names, places, strict=True)}
    held = parameter_places(module)
    kept = {where: each.detach() for where, each in held.items() if id(each) not in chosen_places}
    keys = {where: chosen_places[id(each)] for where, each in held.items() if id(each) in chosen_places}
    # Forward passes write into copies of the buffers.
    buffers = {id(each): each.detach().clone() for each in module.buffers()}
    kept |= {where: buffers[id(each)] for where, each in buffer_places(module).items()}

    def call(values: Sequence[torch.Tensor], inputs: Any) -> Any:
        given = {where: values[place] for where, place in keys.items()}
        return torch.func.functional_call(module, kept | given, *call_arguments(module, inputs), tie_weights=False)

    return Model(
        call, parameters, {name.removeprefix(INSIDE): place for name, place in zip(names, places, strict=True)}
    )


def _of_tree(apply: Callable[[Any, Any], Any], params: Any) -> Model:
    found, structure = jax.tree.flatten(params)
    tensors = [i for i, each in enumerate(found) if isinstance(each, torch.Tensor) and _differentiable(each)]
    parameters, numbers = _once([found[i] for i in tensors])
    places = [NO_PARAMETER] * len(found)
    for i, number in zip(tensors, numbers, strict=True):
        places[i] = number
    modules = [type(each).__name__ for each in found if isinstance(each, torch.nn.Module)]
    require(
        not modules,
        f"params contains modules ({', '.join(modules)}) in a {type(params).__name__}",
        argument="params",
        value=modules,
        remedy="combine them in a torch.nn.ModuleDict or a torch.nn.ModuleList",
    )
    require(
        tensors,
        "params contains no floating-point tensors",
        argument="params",
        value=len(found),
        remedy="give the tree of tensors that is the first argument of apply, or None if apply is a module",
    )
    fixed = [each.detach() if isinstance(each, torch.Tensor) else each for each in found]

    def call(values: Sequence[torch.Tensor], inputs: Any) -> Any:
        merged = [each if place == NO_PARAMETER else values[place] for each, place in zip(fixed, places, strict=True)]
        return apply(jax.tree.unflatten(structure, merged), inputs)

    return Model(call, parameters, jax.tree.unflatten(structure, places))


def _once(tensors: Sequence[torch.Tensor]) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
    """Return the distinct tensors, detached, and the index of each given tensor among them."""
    places: dict[int, int] = {}
    parameters = []
    for each in tensors:
        require(
            isinstance(each, torch.Tensor) and _differentiable(each),
            "params contains a parameter that is not a floating-point tensor",
            argument="params",
            value=str(getattr(each, "dtype", type(each).__name__)),
            remedy="give floating-point tensors",
        )
        require(
            each.device == tensors[0].device,
            f"params contains tensors on {tensors[0].device} and on {each.device}",
            argument="params",
            value=str(each.device),
            remedy="move all parameters to one device",
        )
        require_finite_values("params", each)
        if id(each) not in places:
            places[id(each)] = len(parameters)
            parameters.append(each.detach())
    return tuple(parameters), tuple(places[id(each)] for each in tensors)


def _differentiable(tensor: torch.Tensor) -> bool:
    if tensor.is_complex():
        raise InputError(
            "params contains a complex parameter",
            argument="params",
            value=str(tensor.dtype),
            remedy="give the real and imaginary parts as separate parameters",
        )
    return tensor.is_floating_point()


def _require_separate_examples(module: torch.nn.Module) -> None:
    """Raise `InputError` if a layer draws random numbers or mixes the examples of its batch."""
    untracked = [
        f"{type(each).__name__} {name!r}"
        for name, each in module.named_modules()
        if isinstance(each, BATCH_NORMS) and each.running_mean is None
    ]
    require(
        not untracked,
        f"eval() does not turn off the batch statistics of {', '.join(untracked[:3])}, because track_running_stats is "
        "False",
        argument="apply",
        value=untracked,
        remedy="use track_running_stats=True and train again, or assign running_mean and running_var",
    )
    require_evaluation_mode("apply", module, purpose="the outputs of each example do not depend on the other examples")
