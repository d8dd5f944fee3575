"""A copy of a module that shares its tensors, for measurements that leave the module itself untouched."""
# pyright: reportMissingImports=false

from __future__ import annotations

import copy
from collections import OrderedDict
from typing import Any

from torch import nn

from dynascope.errors import InputError
from dynascope.validation import shown_error

__all__ = ["private_copy"]

# Pre-hooks are kept, because torch.nn.utils.weight_norm and spectral_norm compute weights in them.
_HOOKS = "_forward_hooks", "_backward_hooks", "_backward_pre_hooks"


def private_copy(module: nn.Module) -> nn.Module:
    """Return a copy in evaluation mode that shares parameters and buffers with the module, but no forward hooks.

    Objects other than modules and containers, such as configurations or trainers, are shared too.

    Raises:
        InputError: The module cannot be copied.

    Example:
        >>> layer = nn.Linear(2, 1)
        >>> copied = private_copy(layer)
        >>> copied is layer, copied.weight is layer.weight, layer.training, copied.training
        (False, True, True, False)
    """
    shared: dict[int, Any] = {}
    for inner in module.modules():
        for value in vars(inner).values():
            if not isinstance(value, nn.Module | dict | list | tuple | set):
                shared[id(value)] = value
        for tensor in [*inner._parameters.values(), *inner._buffers.values()]:
            shared[id(tensor)] = tensor
        for name in _HOOKS:
            shared[id(vars(inner)[name])] = OrderedDict()
    try:
        copied = copy.deepcopy(module, shared)
    except Exception as error:  # Attributes of users' modules can fail to copy in any way.
        raise InputError(
            f"the model cannot be copied ({shown_error(error)})",
            argument="model",
            value=type(module).__name__,
            remedy="make copy.deepcopy(model) work, for example by removing open files from its attributes",
        ) from error
    for inner in copied.modules():
        vars(inner).pop("forward", None)  # A replaced forward method would run the original module.
    return copied.eval()
