"""The outputs in the result of a module."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from dynascope.torch.modules import floating_tensors
from dynascope.validation import require

__all__ = ["outputs_of"]


def outputs_of(found: Any) -> torch.Tensor:
    """Return the outputs in the result of a module: a tensor, `logits`, or the first floating-point tensor."""
    if isinstance(found, torch.Tensor):
        return found
    logits = found.get("logits") if isinstance(found, Mapping) else getattr(found, "logits", None)
    tensors = [logits] if logits is not None else [each for each in floating_tensors(found) if each.ndim > 0]
    require(
        tensors,
        f"the model returns an object of type {type(found).__name__} without floating-point tensors",
        argument="output",
        value=type(found).__name__,
        remedy="pass output, a function that extracts the outputs from this object",
    )
    return tensors[0]
