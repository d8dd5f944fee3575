"""Symmetries of a PyTorch module or function, found in its exported program and verified with its gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynascope.symmetry import SymmetryStructure
from dynascope.symmetry import find_symmetries as find_program_symmetries
from dynascope.torch.symmetry.program import program
from dynascope.validation.bounded_scalars import Seed

__all__ = ["find_symmetries"]


def find_symmetries(
    apply: Callable[..., Any], params: Any, example_inputs: Any, *, seed: Seed = 0
) -> SymmetryStructure:
    """Implement `symmetry.find_symmetries` for a module, or for a function of tensors."""
    return find_program_symmetries(*program(apply, params, example_inputs), seed=seed)
