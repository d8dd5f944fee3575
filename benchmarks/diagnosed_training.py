"""The parts of a training run, and the sharpness of its loss, from which learning rates are chosen."""
# pyright: reportMissingImports=false

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable

import torch
from torch import nn

__all__ = ["Training", "next_token_loss", "sharpness", "squared_error"]


@dataclasses.dataclass(kw_only=True)
class Training:
    """One training run, ready to start.

    Attributes:
        model: The initialised model.
        inputs: Inputs of all examples.
        targets: Their labels, as they are used in training.
        true_targets: Their labels before any of them was flipped.
        optimizer: The optimiser.
        criterion: The mean loss of outputs and targets.
        steps: Number of steps.
        batch: Number of examples per step; None for all examples.
        clip: Changes the gradients of the model in place before each step.
        flipped_known: Whether the diagnosis may use which labels were flipped.
    """

    model: nn.Module
    inputs: torch.Tensor
    targets: torch.Tensor
    true_targets: torch.Tensor
    optimizer: torch.optim.Optimizer
    criterion: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
    steps: int
    batch: int | None = None
    clip: Callable[[nn.Module], object] = lambda model: None
    flipped_known: bool = False

    @property
    def flipped(self) -> torch.Tensor:
        """Whether the label of each example was flipped."""
        return (self.targets != self.true_targets).reshape(len(self.targets), -1).any(dim=1)


def next_token_loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy over all positions."""
    return nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten())


def squared_error(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return half the mean squared distance between the outputs and the unit vectors of the labels."""
    return (outputs - torch.eye(outputs.shape[1])[labels]).square().sum(dim=1).mean() / 2


def sharpness(training: Training, *, iterations: int = 50) -> float:
    """Return the largest absolute eigenvalue of the Hessian of the loss, by power iteration."""
    model = copy.deepcopy(training.model)
    weights = list(model.parameters())
    loss = training.criterion(model(training.inputs), training.targets)
    gradients = torch.autograd.grad(loss, weights, create_graph=True)
    draw = torch.Generator().manual_seed(0)
    vector = [torch.randn(each.shape, generator=draw) for each in weights]
    size = 1.0
    for _ in range(iterations):
        vector = [each / size for each in vector]
        vector = list(torch.autograd.grad(gradients, weights, vector, retain_graph=True))
        size = float(sum((each**2).sum() for each in vector)) ** 0.5
    return size
