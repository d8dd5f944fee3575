"""Names under which the parameters and buffers of a module can be reached."""
# pyright: reportMissingImports=false

from __future__ import annotations

import torch

__all__ = ["buffer_places", "parameter_places"]


def parameter_places(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """Return the parameters under all names that `torch.func.functional_call` must replace.

    Call `functional_call` with `tie_weights=False`. A parameter may have several names, but if a whole submodule has
    several names, its parameters are listed once. If these parameters were listed under every name, PyTorch would
    replace each tensor several times, and finally restore a replacement instead of the original.

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
    """Return the buffers under all names that `torch.func.functional_call` must replace, as in `parameter_places`."""
    return {
        f"{path}.{name}".lstrip("."): each
        for path, inner in module.named_modules()
        for name, each in inner.named_buffers(recurse=False, remove_duplicate=False)
    }
