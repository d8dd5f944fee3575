"""Captures pre-activations and features in one forward pass of a module."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from dynascope.torch.modules import floating_tensors

__all__ = ["ForwardCapture"]

_FUNCTIONS: dict[Callable[..., Any], str] = {
    each: name.rstrip("_")
    for name in ("relu", "relu_", "leaky_relu", "relu6", "gelu", "silu", "elu", "celu", "selu", "mish", "hardswish")
    for space in (functional, torch, torch.Tensor)
    if callable(each := getattr(space, name, None))
}
_MODULES = nn.ReLU, nn.LeakyReLU, nn.ReLU6, nn.GELU, nn.SiLU, nn.ELU, nn.CELU, nn.SELU, nn.Mish, nn.Hardswish, nn.PReLU


class ForwardCapture(TorchFunctionMode):
    """A context in which the forward pass of a module is captured.

    Activation functions are found as modules, as modules without parameters whose name ends in "Activation" or contains
    "GELU", and as calls of functions such as `torch.nn.functional.relu`. The last linear layer is the last
    `torch.nn.Linear` that runs.

    Args:
        module: The module. Its submodules have hooks while the context is active.
        layers: The names of the submodules whose outputs are features.

    Attributes:
        preactivations: The inputs of the activation functions by name. The names of repeated calls end in #2, #3 and so
            on.
        features: The outputs of the layers by name.
        readout: The name of the last linear layer; empty if there is none.
        readout_input: The input of the last linear layer.
    """

    def __init__(self, module: nn.Module, layers: Collection[str]):
        super().__init__()
        self._module, self._layers = module, layers
        self._path: list[str] = []
        self._inside_activation = 0
        self._hooks: list[RemovableHandle] = []
        self.preactivations: dict[str, tuple[torch.Tensor, bool]] = {}
        self.features: dict[str, torch.Tensor] = {}
        self.readout, self.readout_input = "", torch.empty(0)

    def __enter__(self) -> ForwardCapture:
        for name, inner in self._module.named_modules():
            self._hooks.append(inner.register_forward_pre_hook(self._before(name), with_kwargs=True))
            self._hooks.append(inner.register_forward_hook(self._after(name), always_call=True))
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not self._inside_activation:
            name = _name_of(func)
            if name:
                self._keep(f"{self._path[-1]}.{name}".lstrip(".") if self._path else name, _input(args, kwargs))
        return func(*args, **(kwargs or {}))

    def _before(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self._path.append(name)
            if _is_activation(module):
                self._inside_activation += 1
                self._keep(name, _input(args, kwargs))
            if isinstance(module, nn.Linear):
                self.readout, self.readout_input = name, _input(args, kwargs)

        return hook

    def _after(self, name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            self._path.pop()
            if _is_activation(module):
                self._inside_activation -= 1
            if name in self._layers:
                found = next(floating_tensors(output), None)
                if found is not None and found.ndim > 1:
                    self.features[name] = found.detach().clone()

        return hook

    def _keep(self, name: str, values: Any) -> None:
        if not isinstance(values, torch.Tensor) or not values.is_floating_point() or values.ndim < 2:
            return
        call, number = name, 1
        while call in self.preactivations:
            number += 1
            call = f"{name}#{number}"
        # The activation may work in place. Channels are the second axis of images and the last one of sequences.
        self.preactivations[call] = values.detach().clone(), values.ndim > 3


def _input(args: tuple[Any, ...], kwargs: dict[str, Any] | None) -> Any:
    return args[0] if args else (kwargs or {}).get("input")


def _name_of(func: Any) -> str:
    try:
        return _FUNCTIONS.get(func, "")
    except TypeError:  # not hashable
        return ""


def _is_activation(module: nn.Module) -> bool:
    if isinstance(module, _MODULES):
        return True
    name = type(module).__name__
    small = not any(True for _ in module.parameters()) and not any(True for _ in module.children())
    return small and (name.endswith("Activation") or "GELU" in name)
