"""Born–Infeld descent with bounces (BBI) for PyTorch."""

from __future__ import annotations

import math
from typing import Any

import torch

from dynascope.torch.optimizers.energy import EnergyOptimizer, bounce, squared_norm
from dynascope.validation import checked
from dynascope.validation.bounded_scalars import (
    FiniteFloat,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

__all__ = ["BBI"]


class BBI(EnergyOptimizer):
    """Born–Infeld descent with bounces, equal to `dynascope.training.bbi` until the first bounce.

        ℋ = √(V (V + ‖Π‖²)),   V = F − F₀
        Π ← Π − ½ ε (V/E + E/V) ∇F,   θ ← θ + ε (V/E) Π

    E is the initial value of ℋ. Norms are those of all parameters together. Bounces use PyTorch's random numbers. Call
    `optimizer.step(lambda: loss)` after `loss.backward()`.

    Args:
        params: Parameters, or parameter groups, which can differ in `weight_decay` only.
        lr: ε > 0.
        target_loss: F₀, below the initial loss; parameters are not updated at losses F ≤ F₀.
        weight_decay: λ ≥ 0; F becomes F + ½ λ‖θ‖².
        excess_energy: δE ≥ 0, which is added to the initial V to obtain E; the initial momentum has the direction of
            steepest descent, and vanishes for δE = 0.
        fixed_bounces: Number of bounces at fixed steps.
        bounce_interval: Number of steps between these bounces.
        patience: Number of steps without a new minimum of the loss before a later bounce.

    Raises:
        InputError: If an argument is outside its domain; in `step`, if there is no closure, or if the initial loss is
            not above F₀.

    References:
        G. B. De Luca, E. Silverstein, Born-Infeld (BI) for AI: Energy-Conserving Descent (ECD) for Optimization,
        arXiv:2201.11137.

    Example:
        >>> weights = torch.tensor([2.0, 0.0], requires_grad=True)
        >>> optimizer = BBI([weights], lr=0.05)
        >>> for _ in range(100):
        ...     optimizer.zero_grad()
        ...     loss = ((weights - 1) ** 2).sum()
        ...     loss.backward()
        ...     _ = optimizer.step(lambda: loss)
        >>> optimizer.settings["lowest_loss"] < 0.05
        True
    """

    @checked
    def __init__(
        self,
        params: Any,
        lr: PositiveFloat,
        *,
        target_loss: FiniteFloat = 0.0,
        weight_decay: NonNegativeFloat = 0.0,
        excess_energy: NonNegativeFloat = 0.0,
        fixed_bounces: NonNegativeInt = 1,
        bounce_interval: PositiveInt = 100,
        patience: PositiveInt = 3000,
    ):
        settings = {"lr": lr, "target_loss": target_loss, "weight_decay": weight_decay, "excess_energy": excess_energy}
        bounces = {"fixed_bounces": fixed_bounces, "bounce_interval": bounce_interval, "patience": patience}
        super().__init__(params, **settings, **bounces)

    def _moved(self, parameters: list[torch.Tensor], gradients: list[torch.Tensor], loss: torch.Tensor) -> None:
        settings = self.settings
        excess = float(loss) - settings["target_loss"]
        if settings["steps"] == 0:
            settings |= {"energy": excess + settings["excess_energy"], "lowest_loss": math.inf, "waited": 0}
        energy = settings["energy"]
        conserved = excess * ((energy / excess) ** 2 - 1)
        momenta = self.momenta(parameters, gradients, max(conserved, 0.0))
        square = float(squared_norm(momenta))
        factor = math.sqrt(conserved / square) if conserved >= 0 and square > 0 else 1.0
        push = settings["lr"] / 2 * (excess / energy + energy / excess)
        for parameter, momentum, gradient in zip(parameters, momenta, gradients, strict=True):
            momentum.mul_(factor).sub_(gradient, alpha=push)
            parameter.add_(momentum, alpha=settings["lr"] * excess / energy)
        settings["waited"] = 0 if float(loss) < settings["lowest_loss"] else settings["waited"] + 1
        settings["lowest_loss"] = min(float(loss), settings["lowest_loss"])
        done, last = settings["steps"] + 1, settings["fixed_bounces"] * settings["bounce_interval"]
        fixed = done % settings["bounce_interval"] == 0 and done <= last
        if fixed or (done > last and settings["waited"] >= settings["patience"]):
            bounce(momenta)
            settings["waited"] = 0
