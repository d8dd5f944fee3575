"""Charges of the weights of a PyTorch module."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import torch

from dynascope.symmetry import Charge
from dynascope.symmetry import charges as charges_of_arrays
from dynascope.torch.modules import unwrapped
from dynascope.validation import require

__all__ = ["charges"]


def charges(params: Any, symmetries: Sequence[Charge]) -> Any:
    """Implement `symmetry.charges` for a module or a tree of tensors, with symmetries from `find_symmetries`."""
    # Otherwise a module in place of the symmetries would be dispatched to this function again.
    require(
        isinstance(symmetries, Sequence) and all(isinstance(each, Charge) for each in symmetries),
        f"symmetries is of type {type(symmetries).__name__}",
        argument="symmetries",
        value=type(symmetries).__name__,
        remedy="call charges(params, symmetries) with the symmetries that find_symmetries found",
    )
    params = unwrapped(params)
    tree = dict(params.named_parameters()) if isinstance(params, torch.nn.Module) else params
    return charges_of_arrays(jax.tree.map(_array, tree), symmetries)


def _array(value: Any) -> Any:
    """Return a tensor as a NumPy array; bfloat16, which NumPy lacks, becomes float32."""
    if not isinstance(value, torch.Tensor):
        return value
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy(force=True)
