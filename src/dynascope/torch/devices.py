"""Names of all places in a module that hold its parameters and buffers."""
# pyright: reportMissingImports=false

from __future__ import annotations

import torch

__all__ = ["buffer_places", "parameter_places"]


def parameter_places(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Return the parameters by the name of every place that holds one, for `torch.func.functional_call`.

    Call it with `tie_weights=False`. A parameter may have several places, but a module with several names is listed
    once. If it were listed under every name, PyTorch would replace its tensors several times and restore a replacement
    instead of the original.

    Example:
        >>> layer = torch.nn.Linear(2, 2, bias=False)
        >>> list(parameter_places(torch.nn.Sequential(layer, layer)))
        ['0.weight']
    """
    return {
        f"{path}.{name}".lstrip("."): each
        for path, inner in module.named_modules()
        for name, each in inner.named_parameters(recurse=False, remove_duplicate=False)
    }


def buffer_places(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the buffers by the name of every place that holds one, as `parameter_places` does."""
    return {
        f"{path}.{name}".lstrip("."): each
        for path, inner in module.named_modules()
        for name, each in inner.named_buffers(recurse=False, remove_duplicate=False)
    }
