"""How warm a training run of PyTorch is: its stationary noise along the sharpest directions, before it gets there."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from dynascope.probes.diffusion import gradient_noise
from dynascope.theory import SGD
from dynascope.theory.noise import Thermometer, thermometer
from dynascope.torch.curvature import module_curvatures, require_batched_loss
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
    seed: Seed = 0,
) -> Thermometer:
    """Whether a run of SGD has settled along its sharpest directions, in how many steps it will, and how far it swings.

    Curvatures are those of `probes.diffusion.top_curvatures`, the noise along them that of the gradients of the
    batches, and learning rate, momentum and decay are read from the optimiser. A direction has settled after a few
    times its `relaxation_steps`; directions that are not `stationary` curve downwards, or diverge. The module and the
    random numbers of PyTorch are left unchanged. Cost: that of the curvatures, and a gradient of each batch, which are
    kept together. The batches are read once: a loader that shuffles or augments gives one sample of its batches.

    Args:
        module: The module, in evaluation mode if it has dropout or batch normalisation, as for the curvatures.
        loss: A loss of PyTorch of outputs and targets, a mean over samples.
        batches: Pairs (inputs, targets) of equal sizes, as training draws them, two or more.
        optimizer: `torch.optim.SGD` of the parameters, in one group, without Nesterov's step and dampening.
        count: Number of directions.
        samples: N, where an epoch draws no sample twice; None for batches drawn with replacement.
        seed: Seed of the vector from which the iteration for the curvatures starts.

    Raises:
        InputError: Batches of different sizes, another optimiser, or what `probes.diffusion.top_curvatures` rejects.

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
    require_batched_loss(module, loss, batches)
    # A loader draws random numbers.
    with torch.random.fork_rng([]):
        batches = list(batches)
    sizes = {len(inputs) for inputs, _ in batches}
    require(
        len(batches) >= 2 and len(sizes) == 1,
        f"there are {len(batches)} batches, of {', '.join(map(str, sorted(sizes)))} samples",
        argument="batches",
        value=len(batches),
        remedy="give two or more of one size",
    )
    name = type(optimizer).__name__
    require(
        type(optimizer) is torch.optim.SGD,
        f"optimizer is {name}, and the theory covers SGD only",
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
    # The mean is over these batches alone, which takes a degree of freedom from their noise.
    share = len(batches) / (len(batches) - 1)
    noise = gradient_noise(
        gradients, gradients.mean(axis=0), batch_size=size, samples=samples, directions=directions.directions
    )
    sgd = SGD(float(group["lr"]), float(group["momentum"]), float(group["weight_decay"]), size, samples)
    return thermometer(directions.curvature, share * noise.variance, sgd)


def _gradients(module: torch.nn.Module, loss: Any, batches: Sequence[tuple[Any, Any]]) -> np.ndarray:
    """The gradient of each batch, as a row."""
    parameters = [each for each in module.parameters() if each.requires_grad]
    device, rows = parameters[0].device, []
    with unchanged(module, device):
        for inputs, targets in batches:
            value = loss(module(inputs.to(device)), targets.to(device))
            slopes = torch.autograd.grad(value, parameters, allow_unused=True)
            filled = [torch.zeros_like(p) if g is None else g for p, g in zip(parameters, slopes, strict=True)]
            rows.append(torch.cat([each.reshape(-1) for each in filled]).detach().cpu().numpy())
    return np.stack(rows)
