"""Charges of the weights of a module of PyTorch."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import torch

from dynascope.symmetry import Charge
from dynascope.symmetry import charges as charges_of_arrays
from dynascope.torch.modules import unwrapped

__all__ = ["charges"]


def charges(params: Any, symmetries: Sequence[Charge]) -> Any:
    """`symmetry.charges` of a module or a tree of tensors, which `find_symmetries` of this room was given."""
    params = unwrapped(params)
    tree = dict(params.named_parameters()) if isinstance(params, torch.nn.Module) else params
    return charges_of_arrays(jax.tree.map(_array, tree), symmetries)


def _array(value: Any) -> Any:
    """A tensor as an array of NumPy, which has no numbers of bfloat16."""
    if not isinstance(value, torch.Tensor):
        return value
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy(force=True)
