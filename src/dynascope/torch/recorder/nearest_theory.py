"""The solvable model that is nearest to a module and its reference batch, as an attribute of the record."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn

from dynascope.diagnosis.lines.nearest_model import solvable_model

__all__ = ["nearest_theory"]

_EXAMPLES = 256  # most examples on which assumptions are measured


def nearest_theory(
    module: nn.Module, inputs: Any, targets: Any, rates: Sequence[float], batch_size: int | None, criterion: Any
) -> dict[str, str]:
    """Return the attribute `solvable_model`; empty if inputs or targets are not single tensors.

    Args:
        module: The module with its initial weights.
        inputs: Inputs of the reference batch.
        targets: Targets of the reference batch; None if there are none.
        rates: Learning rates of the parameter groups.
        batch_size: The batch size; None for all samples.
        criterion: The loss; None if unknown.
    """
    if not isinstance(inputs, torch.Tensor) or not isinstance(targets, torch.Tensor) or len(inputs) != len(targets):
        return {}
    x, y = inputs[:_EXAMPLES], targets[:_EXAMPLES]
    x = x.reshape(len(x), -1)  # images are read by the names of the layers alone
    if isinstance(criterion, nn.MSELoss) or criterion is nn.functional.mse_loss:
        squared = True
    else:
        squared = criterion is None and y.is_floating_point()
    if y.ndim == 1 and not y.is_floating_point():
        y = nn.functional.one_hot(y.clamp(min=0)).to(x.dtype if x.is_floating_point() else torch.float32)
    rate = max(rates) if rates else None
    with torch.random.fork_rng([]):
        found = solvable_model(x, y, module, learning_rate=rate, batch_size=batch_size, squared=squared)
    return {"solvable_model": found} if found else {}
