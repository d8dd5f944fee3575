"""Stationary SGD noise ("temperature") of a PyTorch run along its sharpest Hessian directions."""
# pyright: reportMissingImports=false

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch.utils.data import DistributedSampler, RandomSampler, SequentialSampler, SubsetRandomSampler

from dynascope.probes.diffusion import gradient_noise
from dynascope.theory import SGD
from dynascope.theory.noise import Thermometer, thermometer
from dynascope.torch.curvature import module_curvatures, require_batched_loss, with_reduction
from dynascope.torch.repeatable import unchanged
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveInt, Seed

__all__ = ["SamplingWarning", "temperature"]

_CALLER = 4  # stack frames from the warning to the caller of `temperature`, including the argument checks


class SamplingWarning(UserWarning):
    """Issued if a loader does not draw its batches independently, as the prediction of `temperature` assumes."""


def temperature(
    module: torch.nn.Module,
    loss: Callable[[Any, Any], Any],
    batches: Iterable[Sequence[Any]],
    optimizer: torch.optim.SGD,
    count: PositiveInt,
    *,
    reduction: Literal["mean", "sum"] | None = None,
    seed: Seed = 0,
) -> Thermometer:
    """Predict the stationary SGD noise ("temperature") of a run along its sharpest Hessian directions.

    The prediction contains the stationary variance of the weights along each direction, among other quantities. The
    noise becomes stationary after a few multiples of `relaxation_steps`. Directions that are not `stationary` have
    negative curvature or diverge.

    The prediction assumes that training draws the batches independently of each other, from
    `RandomSampler(data, replacement=True)`. A loader with `shuffle=True` instead draws every sample once per epoch, so
    the noise of its batches sums to zero over an epoch. The variances and temperatures are then only upper bounds.
    Along directions whose `relaxation_steps` exceed the number of batches per epoch, the variances can be ten or more
    times smaller. A `SamplingWarning` is issued for such a loader, and for a loader with a fixed order.

    The curvatures are those of `probes.diffusion.top_curvatures`. The noise is measured as the variance of the batch
    gradients along these directions. With b batches, the relative standard error of this variance is about √(2/(b −
    1)): 37 % for 16 batches, 10 % for 200 and 4 % for 1000; the variances and temperatures have the same relative
    error. One epoch without replacement gives the same estimate as batches drawn with replacement.

    The learning rate, momentum and weight decay are read from the optimiser. The batches are read once, so a loader
    with shuffling or augmentation contributes one random pass. The module and the random state of PyTorch are
    unchanged. Cost: the curvatures, and one gradient for each batch. Memory: the gradients of all batches.

    Args:
        module: The module, in evaluation mode if it contains dropout or batch normalisation.
        loss: A PyTorch loss of outputs and targets, such as `torch.nn.MSELoss()`, or a function with `reduction`.
        batches: Two or more pairs (inputs, targets) of equal size, as drawn in training; a list, or a loader with
            `drop_last=True`.
        optimizer: `torch.optim.SGD` of the module with one parameter group, without Nesterov momentum or dampening. The
            optimiser must train all parameters of the module that require a gradient.
        count: Number of directions.
        reduction: "mean" or "sum" over the samples of a batch if the loss is a function; None for a `torch.nn` loss.
        seed: Seed of the initial vector in the iteration for the curvatures.

    Raises:
        InputError: If the batches differ in size, the optimiser is not supported or belongs to another module, or
            `probes.diffusion.top_curvatures` rejects an argument.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133; Kühn, Rosenow,
        arXiv:2306.05300, for epochs without replacement.

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
        drawn = [(inputs, targets) for inputs, targets in batches]
    sizes = {len(inputs) for inputs, _ in drawn}
    require(
        len(drawn) >= 2 and len(sizes) == 1,
        f"batches contains batches of {' and '.join(map(str, sorted(sizes)))} samples"
        if len(sizes) > 1
        else f"batches contains {len(drawn) or 'no'} batch{'es' * (not drawn)}",
        argument="batches",
        value=len(drawn),
        remedy="give at least two batches of equal size, for example from a loader with drop_last=True",
    )
    name = type(optimizer).__name__
    require(
        type(optimizer) is torch.optim.SGD,
        f"optimizer is {name}, but the theory covers only SGD",
        argument="optimizer",
        value=name,
        remedy="use torch.optim.SGD, or measure the curvature with probes.diffusion.top_curvatures",
    )
    groups = optimizer.param_groups
    used = [name for name in ("nesterov", "dampening", "maximize") if groups[0][name]]
    require(
        len(groups) == 1 and not used,
        f"optimizer uses {', '.join(used)}" if used else f"optimizer has {len(groups)} parameter groups",
        argument="optimizer",
        value=len(groups),
        remedy="use torch.optim.SGD with one parameter group, without nesterov, dampening or maximize",
    )
    [group] = groups
    _require_trained(module, group["params"])
    directions = module_curvatures(module, loss, drawn, count, seed=seed)
    gradients, [size] = _gradients(module, loss, drawn), sizes
    # Bessel's correction, because the mean gradient is estimated from the same batches. If they are the batches of an
    # epoch without replacement, it also turns their smaller variance into that of independent batches.
    share = len(drawn) / (len(drawn) - 1)
    noise = gradient_noise(gradients, gradients.mean(axis=0), batch_size=size, directions=directions.directions)
    sgd = SGD(float(group["lr"]), float(group["momentum"]), float(group["weight_decay"]), size)
    _warn_of_dependent_batches(batches, len(drawn))
    return thermometer(directions.curvature, share * noise.variance, sgd)


def _require_trained(module: torch.nn.Module, parameters: Sequence[torch.Tensor]) -> None:
    """Raise `InputError` unless all parameters of the module that require a gradient are among the given ones."""
    trained, required = set(map(id, parameters)), [each for each in module.parameters() if each.requires_grad]
    missing = sum(id(each) not in trained for each in required)
    require(
        not missing,
        "the optimizer belongs to another module"
        if missing == len(required)
        else f"the optimizer does not train {missing} of the {len(required)} parameters that require a gradient",
        argument="optimizer",
        value=missing,
        remedy="give the optimizer that trains this module, and call requires_grad_(False) on frozen ones",
    )


def _warn_of_dependent_batches(batches: Any, count: int) -> None:
    """Warn if a loader draws batches in epochs without replacement, or in a fixed order."""
    groups = getattr(batches, "batch_sampler", None)
    # A loader with a custom `batch_sampler` also has a sampler, but does not use it.
    sampler = getattr(batches if groups is None else groups, "sampler", None)
    fixed = isinstance(sampler, SequentialSampler)
    reshuffled = isinstance(sampler, RandomSampler) and not sampler.replacement
    if fixed or reshuffled or isinstance(sampler, SubsetRandomSampler | DistributedSampler):
        how = "in a fixed order" if fixed else "without replacement in each epoch"
        effect = (
            "the weights end in a cycle without stationary noise"
            if fixed
            else "the variances and temperatures are only upper bounds, far too large along directions whose "
            f"relaxation_steps exceed the {count} batches per epoch"
        )
        warnings.warn(
            f"the loader draws the batches {how} ({type(sampler).__name__}), but the prediction assumes independent "
            f"batches: if you train with this loader, {effect}. To draw independent batches, train with "
            "RandomSampler(data, replacement=True).",
            SamplingWarning,
            stacklevel=_CALLER,
        )


def _gradients(module: torch.nn.Module, loss: Any, batches: Iterable[Sequence[Any]]) -> np.ndarray:
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
