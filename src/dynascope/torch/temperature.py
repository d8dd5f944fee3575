"""Stationary SGD noise ("temperature") of a PyTorch run along its sharpest Hessian directions."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import torch

from dynascope.probes.diffusion import gradient_noise
from dynascope.theory import SGD
from dynascope.theory.noise import Thermometer, thermometer
from dynascope.torch.curvature import module_curvatures, require_batched_loss, with_reduction
from dynascope.torch.repeatable import unchanged
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["temperature"]


def temperature(
    module: torch.nn.Module,
    loss: Callable[[Any, Any], Any],
    batches: Sequence[tuple[Any, Any]],
    optimizer: torch.optim.SGD,
    count: PositiveInt,
    *,
    samples: PositiveInt | None = None,
    reduction: Literal["mean", "sum"] | None = None,
    seed: Seed = 0,
) -> Thermometer:
    """Predict the stationary SGD noise ("temperature") of a run along its sharpest Hessian directions.

    The prediction contains the stationary variance of the weights along each direction, among other quantities. The
    noise becomes stationary after a few multiples of `relaxation_steps`. Directions that are not `stationary` have
    negative curvature or diverge.

    The curvatures are those of `probes.diffusion.top_curvatures`. The noise is measured as the variance of the batch
    gradients along these directions. Learning rate, momentum and weight decay are read from the optimiser. The batches
    are read once, so a loader with shuffling or augmentation contributes one random pass. The module and the random
    state of PyTorch are unchanged. Cost: the curvatures, and one gradient for each batch. Memory: the gradients of all
    batches.

    Args:
        module: The module, in evaluation mode if it contains dropout or batch normalisation.
        loss: A PyTorch loss of outputs and targets, such as `torch.nn.MSELoss()`, or a function with `reduction`.
        batches: Two or more pairs (inputs, targets) of equal size, as drawn in training.
        optimizer: `torch.optim.SGD` with one parameter group, without Nesterov momentum and dampening.
        count: Number of directions.
        samples: N, the number of samples in the data, if batches are drawn without replacement; None for batches drawn
            with replacement.
        reduction: "mean" or "sum" over the samples of a batch if the loss is a function; None for a `torch.nn` loss.
        seed: Seed of the initial vector in the iteration for the curvatures.

    Raises:
        InputError: If the batches differ in size, the optimiser is not supported, or `probes.diffusion.top_curvatures`
            rejects an argument.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133.

    Example:
        >>> import torch
        >>> layer = torch.nn.Linear(2, 1, bias=False).double()
        >>> x, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]).double(), torch.tensor([[1.0], [-1.0]]).double()
        >>> sgd = torch.optim.SGD(layer.parameters(), lr=0.1, momentum=0.5)
        >>> found = temperature(layer, torch.nn.MSELoss(), [(x, y), (x, -y)], sgd, 1)
        >>> print(found.stationary, found.relaxation_steps.round(1))
        [ True] [2.9]
    """
    loss = with_reduction(loss, reduction)
    require_batched_loss(module, loss, batches)
    # Iterating over a loader draws random numbers.
    with torch.random.fork_rng([]):
        batches = list(batches)
    sizes = {len(inputs) for inputs, _ in batches}
    require(
        len(batches) >= 2 and len(sizes) == 1,
        f"batches contains {len(batches)} batches of {', '.join(map(str, sorted(sizes)))} samples",
        argument="batches",
        value=len(batches),
        remedy="give at least two batches of equal size",
    )
    name = type(optimizer).__name__
    require(
        type(optimizer) is torch.optim.SGD,
        f"optimizer is {name}, but the theory covers only SGD",
        argument="optimizer",
        value=name,
        remedy="give torch.optim.SGD, or measure the curvature with probes.diffusion.top_curvatures",
    )
    groups = optimizer.param_groups
    require(
        len(groups) == 1 and not any(groups[0][name] for name in ("nesterov", "dampening", "maximize")),
        f"optimizer has {len(groups)} parameter groups, or uses nesterov, dampening or maximize",
        argument="optimizer",
        value=len(groups),
        remedy="give torch.optim.SGD with one group and none of these options",
    )
    [group] = groups
    directions = module_curvatures(module, loss, batches, count, seed=seed)
    gradients, [size] = _gradients(module, loss, batches), sizes
    # Bessel's correction, because the mean gradient is estimated from the same batches.
    share = len(batches) / (len(batches) - 1)
    noise = gradient_noise(
        gradients, gradients.mean(axis=0), batch_size=size, samples=samples, directions=directions.directions
    )
    sgd = SGD(float(group["lr"]), float(group["momentum"]), float(group["weight_decay"]), size, samples)
    return thermometer(directions.curvature, share * noise.variance, sgd)


def _gradients(module: torch.nn.Module, loss: Any, batches: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """Return the gradient of each batch as a row."""
    parameters = [each for each in module.parameters() if each.requires_grad]
    device, rows = parameters[0].device, []
    with unchanged(module, device):
        for inputs, targets in batches:
            value = loss(module(inputs.to(device)), targets.to(device))
            slopes = torch.autograd.grad(value, parameters, allow_unused=True)
            filled = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, slopes, strict=True)]
            rows.append(torch.cat([each.reshape(-1) for each in filled]).detach().cpu().numpy())
    return np.stack(rows)
