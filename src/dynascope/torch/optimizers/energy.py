"""Operations shared by the energy-conserving PyTorch optimisers: loss, initial momentum and random rotations."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from typing import Any

import torch

from dynascope.validation import require

__all__ = ["EnergyOptimizer"]

Tensors = list[torch.Tensor]


class EnergyOptimizer(torch.optim.Optimizer, abc.ABC):
    """Base class: the step depends on the loss, and its norms and inner products are those of all parameters together.

    The state of the motion (`steps`, `energy`, …) is part of the first parameter group, and thus of `state_dict`.
    Groups can differ in `weight_decay` only.
    """

    def __init__(self, params: Any, **settings: Any):
        super().__init__(params, {**settings, "steps": 0})
        for group in self.param_groups[1:]:
            for name in settings.keys() - {"weight_decay"}:
                require(
                    group[name] == self.param_groups[0][name],
                    f"params has groups with different values of {name}",
                    argument="params",
                    value=(self.param_groups[0][name], group[name]),
                    remedy="give all groups the same value, because all parameters share one energy",
                )

    @abc.abstractmethod
    def _moved(self, parameters: Tensors, gradients: Tensors, loss: torch.Tensor) -> None:
        """Move the parameters in place."""

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Make one step.

        Args:
            closure: A function without arguments that returns the loss, and that may compute the gradients; after
                `loss.backward()`, `lambda: loss` is sufficient.

        Returns:
            The loss before the step.

        Raises:
            InputError: If there is no closure, or if the initial loss is not above F₀.
        """
        require(
            closure is not None,
            "closure is missing, but the step depends on the loss",
            argument="closure",
            remedy="call optimizer.step(lambda: loss) after loss.backward()",
        )
        assert closure is not None
        with torch.enable_grad():
            value = closure()
        settings = self.settings
        parameters, gradients, loss = [], [], torch.as_tensor(value).detach()
        for group in self.param_groups:
            decay = group["weight_decay"]
            for each in group["params"]:
                if each.grad is not None:
                    parameters.append(each)
                    gradients.append(each.grad + decay * each if decay else each.grad)
                    loss = loss + decay / 2 * (each**2).sum() if decay else loss
        excess = float(loss) - settings["target_loss"]
        require(
            settings["steps"] > 0 or not excess <= 0,
            f"target_loss is above the initial loss by {-excess:.6g}" if excess else "target_loss is the initial loss",
            argument="target_loss",
            value=settings["target_loss"],
            remedy="choose a target_loss below the initial loss",
        )
        if not excess <= 0:
            self._moved(parameters, gradients, loss)
        settings["steps"] += 1
        return value

    @property
    def settings(self) -> dict[str, Any]:
        """Settings and state of the motion, which all parameter groups share."""
        return self.param_groups[0]

    def momenta(self, parameters: Tensors, gradients: Tensors, squared_length: float) -> Tensors:
        """Return the momenta; at the first step, they have the direction of steepest descent and the given length."""
        if self.settings["steps"] == 0:
            square = float(squared_norm(gradients))
            factor = -math.sqrt(squared_length / (square if square > 0 else 1.0))
            for each, gradient in zip(parameters, gradients, strict=True):
                self.state[each]["momentum"] = factor * gradient
        return [self.state[each].setdefault("momentum", torch.zeros_like(each)) for each in parameters]


def dot(one: Tensors, other: Tensors) -> torch.Tensor:
    """Inner product of two lists of tensors."""
    return torch.stack([torch.vdot(a.flatten(), b.flatten()) for a, b in zip(one, other, strict=True)]).sum()


def squared_norm(tensors: Tensors) -> torch.Tensor:
    """Squared norm of a list of tensors."""
    return dot(tensors, tensors)


def rotate(momenta: Tensors, noise: float) -> None:
    """Turn momenta in a random direction in place, and keep their norm."""
    if noise == 0:
        return
    norm, size = squared_norm(momenta).sqrt(), sum(each.numel() for each in momenta)
    turned = [each / norm + noise / size**0.5 * torch.randn_like(each) for each in momenta]
    factor = norm / squared_norm(turned).sqrt()
    for each, new in zip(momenta, turned, strict=True):
        each.copy_(factor * new)


def bounce(momenta: Tensors) -> None:
    """Draw a uniformly random direction in place, and keep the norm of the momenta."""
    draws = [torch.randn_like(each) for each in momenta]
    factor = (squared_norm(momenta) / squared_norm(draws)).sqrt()
    for each, draw in zip(momenta, draws, strict=True):
        each.copy_(factor * draw)
