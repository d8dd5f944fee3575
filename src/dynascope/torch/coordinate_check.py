"""Coordinate check of PyTorch modules: how changes of layer outputs in training scale with the width."""
# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Ge
from torch import nn

from dynascope.interventions import CoordinateCheck
from dynascope.interventions.width_scaling import coordinates_checked, require_widths
from dynascope.theory.regimes import ABCParametrisation
from dynascope.torch.modules import floating_tensors
from dynascope.validation import calling, require, require_finite_values
from dynascope.validation.bounded import NonNegativeFloat, OpenFraction, PositiveInt

__all__ = ["coordinate_check"]

_LAYERS = nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.Embedding
_Factory = Callable[[nn.Module, int], torch.optim.Optimizer]


def coordinate_check(
    make: Callable[[int, int], nn.Module],
    widths: Sequence[PositiveInt],
    data: Any,
    *,
    optimizer: _Factory,
    steps: PositiveInt = 10,
    loss: Callable[[Any, Any], Any] | None = None,
    parametrisation: ABCParametrisation | None = None,
    seeds: Annotated[int, Ge(2)] = 10,
    confidence: OpenFraction = 0.95,
    tolerance: NonNegativeFloat = 0.2,
) -> CoordinateCheck:
    """Measure how the changes of the outputs of each PyTorch layer scale with the width of the module.

    This is `interventions.coordinate_check` for PyTorch: networks with the same weights have the same changes. The
    layers are the linear, convolutional and embedding layers; their outputs before and after training are computed in
    evaluation mode. Modules are trained in float64 on all samples in every step.

    Args:
        make: Function of a width and a seed that returns a module. It is called after `torch.manual_seed(seed)`, so
            that it may ignore the seed; the state of the generators is restored.
        widths: Widths n, at least two.
        data: Inputs and targets.
        optimizer: Function of the module and its width that returns the optimiser, with the learning rates that the
            parametrisation requires.
        steps: Number of steps.
        loss: Function of outputs and targets that returns the mean loss. The default is the cross-entropy for integer
            targets, and ½‖f − y‖² averaged over samples otherwise.
        parametrisation: Exponents of the parametrisation of the modules, for the expected slopes under SGD.
        seeds: Number of modules at each width.
        confidence: Confidence level of the intervals.
        tolerance: A change counts as constant if the interval of its slope lies within ± this number. The exponents of
            common parametrisations are multiples of ½.

    Returns:
        Changes, slopes with intervals, expected slopes and trends, as in `interventions.coordinate_check`.

    Raises:
        InputError: Under the same conditions as in `interventions.coordinate_check`, or if the data are not a pair of
            inputs and targets.

    References:
        G. Yang et al., Tensor Programs V, arXiv:2203.03466, appendix D.1.

    Example:
        >>> x = torch.linspace(-1, 1, 12).reshape(6, 2)
        >>> def make(width, seed):
        ...     return nn.Sequential(nn.Linear(2, width), nn.ReLU(), nn.Linear(width, 1))
        >>> def optimizer(module, width):
        ...     return torch.optim.SGD(module.parameters(), lr=1 / width)
        >>> found = coordinate_check(make, [64, 256, 1024], (x, x[:, :1]), optimizer=optimizer, steps=3)
        >>> found.layers["trend"].to_dict()
        {'0': 'vanishes', '2': 'constant'}
    """
    widths = [int(width) for width in widths]
    require_widths(widths)
    inputs, targets = _tensors(data)
    names, sizes = (), []
    for width in widths:
        found = [_sizes(make, width, seed, inputs, targets, optimizer, steps, loss) for seed in range(seeds)]
        for each in found:
            names = names or tuple(each)
            require(
                tuple(each) == names and len(names) > 0,
                f"a module of width {width} has the layers {list(each)}, but the first module has {list(names)}",
                argument="make",
                value=list(each),
                remedy="return modules with linear layers that differ only in their widths and weights",
            )
        sizes.append([[each[name] for each in found] for name in names])
    initial, change = np.transpose(sizes, (3, 1, 0, 2))
    return coordinates_checked(
        names, widths, initial, change, parametrisation, confidence=confidence, tolerance=tolerance
    )


def _sizes(
    make: Callable[[int, int], nn.Module],
    width: int,
    seed: int,
    inputs: torch.Tensor,
    targets: torch.Tensor,
    optimizer: _Factory,
    steps: int,
    loss: Callable[[Any, Any], Any] | None,
) -> dict[str, tuple[float, float]]:
    """Root mean squares of the initial outputs of each layer, and of their changes."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        with calling("make", getattr(make, "__name__", "function"), "give a function of a width and a seed"):
            module = make(width, seed)
        require(
            isinstance(module, nn.Module),
            f"make returns an object of type {type(module).__name__}",
            argument="make",
            value=type(module).__name__,
            remedy="return a torch.nn.Module; for JAX networks, use dynascope.interventions.coordinate_check",
        )
        module = module.double()
        device = next(module.parameters()).device
        x, y = inputs.to(device), targets.to(device)
        before = _layer_outputs(module, x)
        with calling(
            "optimizer", getattr(optimizer, "__name__", "function"), "give a function of a module and a width"
        ):
            chosen = optimizer(module, width)
        module.train()
        for _ in range(steps):
            chosen.zero_grad()
            _mean_loss(module(x), y, loss).backward()
            chosen.step()
        after = _layer_outputs(module, x)
    return {name: (_root_mean_square(each), _root_mean_square(after[name] - each)) for name, each in before.items()}


def _layer_outputs(module: nn.Module, x: torch.Tensor) -> dict[str, torch.Tensor]:
    """Outputs of the layers in evaluation mode, by the name of the layer and the number of its call."""
    found: dict[str, torch.Tensor] = {}

    def hook_of(name: str) -> Callable[..., None]:
        def hook(layer: nn.Module, args: Any, output: Any) -> None:
            call, number = name, 1
            while call in found:
                number += 1
                call = f"{name}#{number}"
            found[call] = next(floating_tensors(output)).detach().clone()

        return hook

    layers = [(name, each) for name, each in module.named_modules() if isinstance(each, _LAYERS)]
    hooks = [each.register_forward_hook(hook_of(name)) for name, each in layers]
    module.eval()
    try:
        with torch.no_grad():
            module(x)
    finally:
        for each in hooks:
            each.remove()
    return found


def _mean_loss(outputs: Any, targets: torch.Tensor, loss: Callable[[Any, Any], Any] | None) -> Any:
    if loss is not None:
        return loss(outputs, targets)
    if targets.is_floating_point():
        return ((outputs - targets) ** 2).flatten(1).sum(1).mean() / 2
    return nn.functional.cross_entropy(outputs, targets)


def _root_mean_square(values: torch.Tensor) -> float:
    return float((values**2).mean().sqrt())


def _tensors(data: Any) -> tuple[torch.Tensor, torch.Tensor]:
    require(
        isinstance(data, list | tuple) and len(data) == 2 and len(data[0]) == len(data[1]) > 0,
        "data is not a pair of inputs and targets of equal length",
        argument="data",
        value=type(data).__name__,
        remedy="give (inputs, targets) with one row per sample; integer targets are class labels",
    )
    inputs, targets = (torch.as_tensor(each) for each in data)
    require_finite_values("data", inputs)
    return _in_double_precision(inputs), _in_double_precision(targets)


def _in_double_precision(values: torch.Tensor) -> torch.Tensor:
    return values.double() if values.is_floating_point() else values.long()
