"""A copy of a module that shares its weights, for measurements that do not change the module itself."""
# pyright: reportMissingImports=false

from __future__ import annotations

import contextlib
import copy
import functools
import warnings
from collections import OrderedDict, deque
from collections.abc import Iterator
from types import MethodType
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_pre_hook

from dynascope.errors import InputError
from dynascope.validation import require, shown_error

__all__ = ["originals_never_run", "private_copy"]

# PyTorch has no public way to copy a module without its hooks.
_HOOKS = "_forward_hooks", "_backward_hooks", "_backward_pre_hooks"


def private_copy(module: nn.Module) -> nn.Module:
    """Return a copy in evaluation mode that shares the parameters of the module, but has none of the user's hooks.

    Buffers, other tensors, containers and bound methods are copied, so a forward pass of the copy does not change those
    of the module. Other objects, such as configurations and trainers, are shared.

    Raises:
        InputError: If the module cannot be copied.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> copied = private_copy(layer)
        >>> copied is layer, copied.weight is layer.weight, layer.training, copied.training
        (False, True, True, False)
    """
    replaced: dict[int, Any] = {}
    _plan(module, replaced, set())
    try:
        copied = copy.deepcopy(module, replaced)
    except Exception as error:  # Attributes of users' modules can fail to copy in any way.
        raise InputError(
            f"the model cannot be copied ({shown_error(error)})",
            argument="model",
            value=type(module).__name__,
            remedy="make copy.deepcopy(model) succeed, for example by removing the attribute that cannot be copied",
        ) from error
    for inner, original in zip(copied.modules(), module.modules(), strict=True):
        # A forward method that another package has replaced would run the original module.
        if "forward" in vars(inner) and vars(inner)["forward"] is vars(original).get("forward"):
            del inner.forward
    return copied.eval()


@contextlib.contextmanager
def originals_never_run(model: nn.Module) -> Iterator[None]:
    """Raise before a layer of the model itself runs, for example through a closure that refers to it."""
    names = {id(inner): name for name, inner in model.named_modules()}

    def refuse(module: nn.Module, args: Any) -> None:
        require(
            id(module) not in names,
            f"the model reaches its layer {names.get(id(module))!r} through a closure or another object",
            argument="model",
            value=names.get(id(module)),
            remedy="refer to layers only through attributes of the model",
        )

    hook = register_module_forward_pre_hook(refuse)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*when there are global hooks")  # such as this one
            yield
    finally:
        hook.remove()


def _plan(value: Any, replaced: dict[int, Any], seen: set[int]) -> None:
    """Choose the replacement of every object that a value contains: the object itself, a copy, or nothing."""
    if id(value) in replaced or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, nn.Module):
        replaced |= {id(weight): weight for weight in value.parameters(recurse=False)}
        for name in _HOOKS:
            replaced[id(vars(value)[name])] = OrderedDict()
        hooks = vars(value)["_forward_pre_hooks"]
        # torch.nn.utils.weight_norm, spectral_norm and prune compute weights in such hooks.
        kept = {key: hook for key, hook in hooks.items() if type(hook).__module__.startswith("torch.")}
        replaced[id(hooks)] = OrderedDict(kept)
        forward = vars(value).get("forward")
        if forward is not None and not _is_method(forward, value):
            replaced[id(forward)] = forward
        parts = list(vars(value).values())
    elif isinstance(value, dict):
        parts = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | deque):
        parts = list(value)
    elif isinstance(value, functools.partial):
        parts = [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, MethodType) and isinstance(value.__self__, nn.Module):
        parts = [value.__self__]
    else:
        replaced[id(value)] = value.detach().clone() if isinstance(value, torch.Tensor) else value
        return
    for each in parts:
        _plan(each, replaced, seen)


def _is_method(function: Any, module: nn.Module) -> bool:
    """Return whether a function is a method of the class of a module, bound to the module."""
    bound = isinstance(function, MethodType) and function.__self__ is module
    return bound and getattr(type(module), function.__func__.__name__, None) is function.__func__
