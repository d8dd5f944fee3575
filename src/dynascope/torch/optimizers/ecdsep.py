"""Energy-conserving descent with a separable Hamiltonian (ECDSep) for PyTorch."""

from __future__ import annotations

import math
from typing import Any

import torch

from dynascope.torch.optimizers.energy import EnergyOptimizer, rotate, squared_norm
from dynascope.validation import checked
from dynascope.validation.bounded_scalars import FiniteFloat, NonNegativeFloat, PositiveFloat

__all__ = ["ECDSep"]

_LARGEST = 700.0  # exponents above this overflow


class ECDSep(EnergyOptimizer):
    """Energy-conserving descent with a separable Hamiltonian, equal to `dynascope.training.ecdsep`.

        ℋ = log(s + ‖Π‖²) + η log(F − F₀)
        Π ← Π − ε η ∇F/(F − F₀),   θ ← θ + 2ε Π/(s + ‖Π‖²)

    Norms are those of all parameters together. Call `optimizer.step(lambda: loss)` after `loss.backward()`.

    Args:
        params: Parameters, or parameter groups, which can differ in `weight_decay` only.
        lr: ε > 0.
        eta: η > 0.
        target_loss: F₀, below the initial loss; parameters are not updated at losses F ≤ F₀.
        noise: ν ≥ 0, the size of a random rotation of Π after each step.
        weight_decay: λ ≥ 0; F becomes F + ½ λ‖θ‖².
        softening: s > 0.
        excess_energy: Squared norm of the initial momentum, which has the direction of steepest descent.

    Raises:
        InputError: If an argument is outside its domain; in `step`, if there is no closure, or if the initial loss is
            not above F₀.

    References:
        G. B. De Luca, A. Gatti, E. Silverstein, Improving Energy Conserving Descent for Machine Learning: Theory and
        Practice, arXiv:2306.00352.

    Example:
        >>> weights = torch.tensor([2.0, 0.0], requires_grad=True)
        >>> optimizer = ECDSep([weights], lr=0.1)
        >>> for _ in range(100):
        ...     optimizer.zero_grad()
        ...     loss = ((weights - 1) ** 2).sum()
        ...     loss.backward()
        ...     _ = optimizer.step(lambda: loss)
        >>> bool(loss < 0.5)
        True
    """

    @checked
    def __init__(
        self,
        params: Any,
        lr: PositiveFloat,
        *,
        eta: PositiveFloat = 1.0,
        target_loss: FiniteFloat = 0.0,
        noise: NonNegativeFloat = 0.0,
        weight_decay: NonNegativeFloat = 0.0,
        softening: PositiveFloat = 1.0,
        excess_energy: NonNegativeFloat = 0.0,
    ):
        settings = {"lr": lr, "eta": eta, "target_loss": target_loss, "noise": noise, "weight_decay": weight_decay}
        super().__init__(params, **settings, softening=softening, excess_energy=excess_energy)

    def _moved(self, parameters: list[torch.Tensor], gradients: list[torch.Tensor], loss: torch.Tensor) -> None:
        settings = self.settings
        rate, eta, softening = settings["lr"], settings["eta"], settings["softening"]
        excess = float(loss) - settings["target_loss"]
        if settings["steps"] == 0:
            settings["energy"] = math.log(softening + settings["excess_energy"]) + eta * math.log(excess)
        momenta = self.momenta(parameters, gradients, settings["excess_energy"])
        square, exponent = float(squared_norm(momenta)), settings["energy"] - eta * math.log(excess)
        conserved = math.exp(exponent) - softening if exponent < _LARGEST else -1.0
        factor = math.sqrt(conserved / square) if conserved >= 0 and square > 0 else 1.0
        for momentum, gradient in zip(momenta, gradients, strict=True):
            momentum.mul_(factor).sub_(gradient, alpha=rate * eta / excess)
        step = 2 * rate / (softening + float(squared_norm(momenta)))
        for parameter, momentum in zip(parameters, momenta, strict=True):
            parameter.add_(momentum, alpha=step)
        rotate(momenta, settings["noise"])
