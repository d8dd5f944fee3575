"""Symmetries of a module or function of PyTorch found in its program, and held against its gradients."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynascope.symmetry import SymmetryStructure
from dynascope.symmetry import find_symmetries as find_program_symmetries
from dynascope.torch.symmetry.program import program
from dynascope.validation import require_kind
from dynascope.validation.bounded_scalars import Seed

__all__ = ["find_symmetries"]


def find_symmetries(
    model: torch.nn.Module | Callable[[Any, Any], Any], example_inputs: Any, params: Any = None, *, seed: int = 0
) -> SymmetryStructure:
    """The symmetries of a module or function of PyTorch and the charges that they conserve, read off its program.

    The result is that of `dynascope.symmetry.find_symmetries` for the `program` of the model: functional calls, wiring,
    tied weights and parametrisations are seen as they are, and each symmetry is held against gradients. Paths are those
    of {name: array}, with the names of `named_parameters`; `symmetry.charges` reads their charges off the module.

    The module is read in the mode in which it stands. In training mode batch norm has the statistics of the example
    batch; in evaluation those that it has recorded, which count as constants, as do all buffers and parameters that do
    not require a gradient. A weight that is tied is one parameter; a copy of it is another, with symmetries of its own.

    Args:
        model: A `torch.nn.Module`, whose outputs the loss is computed from; or a function of (params, inputs), such as
            lambda module, x: module(x).log_softmax(-1) for a cross-entropy.
        example_inputs: A tensor, a tuple of the arguments of the forward pass, or a dictionary of arguments by keyword;
            for a function whatever it takes.
        params: None for a module. For a function a module, as which it is called with, or a tree of tensors.
        seed: Seed of the random points.

    Returns:
        The symmetries, those that are broken and by what, and the parameters that nothing depends on.

    Raises:
        InputError: A program that cannot be exported, since it looks at values or draws at random; outputs that change
            when they are computed again; an operation that is not known; outputs or gradients other than PyTorch's, as
            where something is detached.

    References:
        Neural Mechanics, arXiv:2012.04728; Abide by the Law and Follow the Flow, arXiv:2307.00144.

    Example:
        >>> import torch
        >>> layers = torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2)
        >>> print(find_symmetries(torch.nn.Sequential(*layers), torch.ones(5, 3)).table)
        rescale  positive scales for each of 4 units  4  ['0.weight'] ['0.bias'] ['2.weight']
    """
    require_kind(Seed, seed=seed)
    return find_program_symmetries(*program(model, example_inputs, params), seed=seed)
