"""Learning rates of the parameters of PyTorch code."""
# pyright: reportMissingImports=false

from __future__ import annotations

from typing import Any

import jax
import torch

from dynascope.torch.kernel.model import NONE, Model
from dynascope.validation import require

__all__ = ["layer_rates"]


def layer_rates(model: Model, rates: Any) -> tuple[torch.Tensor, ...] | None:
    """One rate, or a tensor of rates, for each parameter, from a tree that is a prefix of the tree of parameters."""
    if rates is None:
        return None
    places = jax.tree.leaves(model.tree)
    try:
        spread = jax.tree.leaves(jax.tree.broadcast(rates, model.tree))
    except ValueError:
        spread = []
    found: dict[int, torch.Tensor] = {}
    fits = len(spread) == len(places)
    for rate, place in zip(spread, places, strict=False):
        if place == NONE:
            continue
        parameter = model.parameters[place]
        try:
            each = torch.as_tensor(rate, dtype=parameter.dtype, device=parameter.device).detach()
        except (TypeError, ValueError, OverflowError, RuntimeError):
            fits = False
            break
        fits = fits and each.shape in ((), parameter.shape) and bool(((each >= 0) & torch.isfinite(each)).all())
        # A parameter in two places has one rate.
        fits = fits and (place not in found or torch.equal(found[place], each))
        found[place] = each
    require(
        fits,
        "rates do not fit the parameters",
        argument="rates",
        value=type(rates).__name__,
        remedy="give a finite number from zero, or one for each branch or tensor of params, or tensors of their shapes",
    )
    return tuple(found[place] for place in range(len(model.parameters)))
