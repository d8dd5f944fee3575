"""Energy-conserving descent (ECD) for PyTorch."""

from __future__ import annotations

import math
from typing import Any, Literal

import torch

from dynascope.torch.optimizers.energy import EnergyOptimizer, Tensors, dot, rotate, squared_norm
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import FiniteFloat, NonNegativeFloat, PositiveFloat

__all__ = ["ECD"]


class ECD(EnergyOptimizer):
    """Energy-conserving descent with a Hamiltonian linear in ‖Π‖ (q = 1), equal to `dynascope.training.ecd`.

        ℋ = ‖Π‖ V(θ),   V = (F − F₀)^{ηd/(2(d − 1))}

    The unit vector u = Π/‖Π‖ is the direction of motion, and the step is Δ = lr/√η. Inner products are those of all
    parameters together unless `inner_product` is "per-tensor". Call `optimizer.step(lambda: loss)` after
    `loss.backward()`.

    Args:
        params: Parameters, or parameter groups, which can differ in `weight_decay` only.
        lr: √η times the arc length Δ of a step, > 0.
        eta: η > 0; larger values concentrate the samples at low losses.
        target_loss: F₀, below the initial loss; parameters are not updated at losses F ≤ F₀.
        noise: ν ≥ 0, the size of a random rotation of u after each step.
        weight_decay: λ ≥ 0; F becomes F + ½ λ‖θ‖².
        kick: "measure-preserving", or "euler" for the published kick.
        inner_product: "global", or "per-tensor" as in the published code, with the Euler kick.

    Raises:
        InputError: If an argument is outside its domain; in `step`, if there is no closure, if there is a single
            parameter, or if the initial loss is not above F₀.

    References:
        G. B. De Luca, A. Gatti, E. Silverstein, Improving Energy Conserving Descent for Machine Learning: Theory and
        Practice, arXiv:2306.00352.

    Example:
        >>> weights = torch.tensor([2.0, 0.0], requires_grad=True)
        >>> optimizer = ECD([weights], lr=0.5)
        >>> for _ in range(100):
        ...     optimizer.zero_grad()
        ...     loss = ((weights - 1) ** 2).sum()
        ...     loss.backward()
        ...     _ = optimizer.step(lambda: loss)
        >>> bool(loss < 0.05)
        True
    """

    @checked
    def __init__(
        self,
        params: Any,
        lr: PositiveFloat,
        *,
        eta: PositiveFloat = 100.0,
        target_loss: FiniteFloat = 0.0,
        noise: NonNegativeFloat = 0.0,
        weight_decay: NonNegativeFloat = 0.0,
        kick: Literal["measure-preserving", "euler"] = "measure-preserving",
        inner_product: Literal["global", "per-tensor"] = "global",
    ):
        require(
            inner_product == "global" or kick == "euler",
            "inner_product is 'per-tensor', but kick is 'measure-preserving'",
            argument="inner_product",
            value=inner_product,
            remedy='choose kick="euler", or a global inner product',
        )
        settings = {"lr": lr, "eta": eta, "target_loss": target_loss, "noise": noise, "weight_decay": weight_decay}
        super().__init__(params, **settings, kick=kick, inner_product=inner_product)

    def _moved(self, parameters: Tensors, gradients: Tensors, loss: torch.Tensor) -> None:
        settings, size = self.settings, sum(each.numel() for each in parameters)
        require(
            size > 1,
            "params has a single number",
            argument="params",
            value=size,
            remedy="use ECD for at least two parameters, because the direction of a single one is fixed",
        )
        power, excess = settings["eta"] * size / (2 * (size - 1)), float(loss) - settings["target_loss"]
        length = settings["lr"] / settings["eta"] ** 0.5
        directions = self.momenta(parameters, gradients, 1.0)
        norm = float(squared_norm(directions)) ** 0.5
        for each in directions:
            each.div_(norm if norm > 0 else 1.0)
        log_momentum = settings.get("log_momentum", 0.0)
        settings["energy"] = log_momentum + power * math.log(excess)
        settings.setdefault("initial_energy", settings["energy"])
        kick = self._euler_kick if settings["kick"] == "euler" else self._exact_kick
        settings["log_momentum"] = log_momentum + kick(directions, gradients, power / excess, length)
        for parameter, direction in zip(parameters, directions, strict=True):
            parameter.add_(direction, alpha=length)
        rotate(directions, settings["noise"])

    def _exact_kick(self, directions: Tensors, gradients: Tensors, factor: float, length: float) -> float:
        """Solve u̇ = −(I − u uᵀ) w in place, with w = factor · ∇F; return the growth of log ‖Π‖."""
        norm = float(squared_norm(gradients)) ** 0.5
        # A direction of exact ascent is unstable; the smallest deviation keeps the growth positive.
        most = 1 - torch.finfo(gradients[0].dtype).eps
        along = min(max(float(dot(directions, gradients)) / (norm if norm > 0 else 1.0), -1.0), most)
        turn = length * factor * norm
        # Factors are divided by exp(δ), so that long steps do not overflow.
        rising, falling = (1 - along) / 2, (1 + along) / 2 * math.exp(-2 * turn)
        growth, axis_part = rising + falling, falling - rising - along * math.exp(-turn)
        for direction, gradient in zip(directions, gradients, strict=True):
            direction.mul_(math.exp(-turn) / growth)
            direction.add_(gradient, alpha=axis_part / growth / (norm if norm > 0 else 1.0))
        return turn + math.log(growth)

    def _euler_kick(self, directions: Tensors, gradients: Tensors, factor: float, length: float) -> float:
        """Make one Euler step of u̇ = −(I − u uᵀ) w in place; return the growth of log ‖Π‖."""
        products = [factor * dot([one], [other]) for one, other in zip(directions, gradients, strict=True)]
        total = torch.stack(products).sum()
        if self.settings["inner_product"] == "global":
            products = [total] * len(products)
        for direction, gradient, product in zip(directions, gradients, products, strict=True):
            direction.mul_(1 + length * product).sub_(gradient, alpha=length * factor)
        return -length * float(total)
