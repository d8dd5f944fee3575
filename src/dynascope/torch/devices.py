"""Where the tensors of a module are."""
# pyright: reportMissingImports=false

from __future__ import annotations

import torch

__all__ = ["buffer_places", "parameter_places"]


def parameter_places(module: torch.nn.Module) -> dict[str, torch.nn.Parameter]:
    """The parameters by the name of every place that holds one, for `torch.func.functional_call`, weights not tied.

    A parameter may be in several places, but a module that has several names is one. Under each of its names PyTorch
    would put in the tensors of a call, and put back those of the name before, which would leave them in the module.

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
    """The buffers, likewise."""
    return {
        f"{path}.{name}".lstrip("."): each
        for path, inner in module.named_modules()
        for name, each in inner.named_buffers(recurse=False, remove_duplicate=False)
    }
