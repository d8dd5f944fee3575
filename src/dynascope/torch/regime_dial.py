"""The regime dial for PyTorch: a rescaled copy of a module, and parameter groups with matched settings."""
# pyright: reportMissingImports=false

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import torch
from torch import nn

from dynascope.errors import InputError
from dynascope.interventions.dial_match import DialMatch, layer_factors, match_dial, require_target_scale
from dynascope.theory.regimes import OptimizerSettings
from dynascope.torch.modules import require_shapes, unwrapped
from dynascope.validation import require
from dynascope.validation.bounded import PositiveFloat

__all__ = ["RegimeDial", "ScaledOutput", "regime_dial"]

_HOMOGENEOUS = nn.ReLU, nn.LeakyReLU, nn.Identity, nn.Flatten
_CLIPPING = "clipping by torch.nn.utils.clip_grad_norm_, which adds 1e-6 to the norm"


class ScaledOutput(nn.Module):
    """A module whose outputs are multiplied by a factor that is not trained.

    Args:
        network: The module.
        factor: The factor.
    """

    def __init__(self, network: nn.Module, factor: float):
        super().__init__()
        self.network = network
        self.factor = factor

    def forward(self, x: Any) -> Any:
        """Compute the scaled outputs."""
        return self.factor * self.network(x)


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class RegimeDial(DialMatch):
    """A rescaled training problem for PyTorch, with matched settings of the optimiser.

    Attributes:
        inputs: The scaled inputs.
        targets: The scaled targets.
        network: A copy of the module with scaled initial weights and outputs.
        output_scale: α, the effective output scale; training is lazier for α > 1 and richer for α < 1.
        regime: "twin" if α = 1, otherwise "lazier" or "richer".
        settings: Matched settings of each parameter, by its name in `network`.
        clock: Speed of the run under SGD if its learning rate is not matched, relative to the matched run, for small
            learning rates; None if the parameters have different rates, or for Adam.
        clip_norm: Matched threshold of the global gradient norm; None without clipping.
        broken_by: Parts of training that have no exact match.
        summary: One sentence about the regime.
    """

    inputs: torch.Tensor
    targets: torch.Tensor
    network: ScaledOutput

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Return one parameter group for each trained parameter, with the options of `torch.optim.SGD` or `Adam`.

        The weight decay is decoupled if the settings contain decoupled decay; use it with `torch.optim.AdamW`.

        Raises:
            InputError: If the settings contain decoupled decay of SGD, or both kinds of decay, which PyTorch lacks.
        """
        names = dict(self.network.named_parameters())
        return [
            {"params": [names[name]], **_options(each)}
            for name, each in self.settings.items()
            if names[name].requires_grad
        ]

    def optimizer(self) -> torch.optim.Optimizer:
        """Return the matched optimiser: `torch.optim.SGD`, `Adam`, or `AdamW` for decoupled decay.

        Schedulers that multiply the learning rate of every group by the same factor, such as
        `torch.optim.lr_scheduler.LambdaLR` or `CosineAnnealingLR` with `eta_min=0`, keep the twin. Schedulers that set
        the same learning rate in every group, such as `OneCycleLR`, break it.

        Raises:
            InputError: Under the conditions of `parameter_groups`.
        """
        first = next(iter(self.settings.values()))
        groups = self.parameter_groups()
        if first.optimizer == "sgd":
            return torch.optim.SGD(groups)
        return (torch.optim.AdamW if first.decoupled_decay else torch.optim.Adam)(groups)


def regime_dial(
    task: Any,
    network: nn.Module,
    settings: OptimizerSettings,
    *,
    output_scale: PositiveFloat = 1.0,
    init_scale: PositiveFloat = 1.0,
    layer_scales: Sequence[PositiveFloat] | None = None,
    target_scale: PositiveFloat = 1.0,
    input_scale: PositiveFloat = 1.0,
    clip_norm: PositiveFloat | None = None,
    loss: Literal["squared", "cross_entropy"] = "squared",
) -> RegimeDial:
    """Rescale the training problem of a PyTorch module, match the optimiser, and compute the regime.

    This is `interventions.regime_dial` for PyTorch. If two runs have the same effective output scale and their factors
    are powers of two, their losses, divided by the squares of the target scales, are equal bit by bit.

    Args:
        task: A task, or inputs and targets as tensors or arrays.
        network: The module, which is unchanged. Dials other than the scales of outputs and targets require a
            `Sequential` of `Linear`, `ReLU`, `LeakyReLU`, `Identity` and `Flatten` modules.
        settings: Settings of the given run.
        output_scale: o > 0.
        init_scale: Factor > 0 on the weights of all layers.
        layer_scales: Additional factor > 0 for each linear layer.
        target_scale: T > 0. It has no equivalent for cross-entropy.
        input_scale: i > 0.
        clip_norm: Threshold of the global gradient norm of the given run; None without clipping.
        loss: "squared", for any mean of squared errors, or "cross_entropy".

    Returns:
        The rescaled data and module, parameter groups with matched settings, and the regime.

    Raises:
        InputError: Under the same conditions as in `interventions.regime_dial`, or if linear layers share weights.

    References:
        L. Chizat, E. Oyallon, F. Bach, arXiv:1812.07956, for α; the matched settings are derived in
        `theory.regimes.matched_settings`.

    Example:
        >>> module = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> data = torch.eye(2), torch.ones(2, 1)
        >>> dial = regime_dial(data, module, OptimizerSettings("sgd", 0.5), init_scale=2.0)
        >>> dial.regime, dial.output_scale, [group["lr"] for group in dial.optimizer().param_groups]
        ('lazier', 4.0, [0.125, 0.125, 0.125, 0.5])
    """
    require_target_scale(target_scale, loss)
    module = unwrapped(network)
    require_shapes("network", module)
    scales, degrees = _scales(module, init_scale, layer_scales, input_scale)
    alpha = output_scale * degrees / target_scale
    names = {id(each): f"network.{name}" for name, each in module.named_parameters()}
    factors = {name: scales.get(each, 1.0) for each, name in names.items()}
    require(
        len(factors) > 0,
        "the network has no parameters",
        argument="network",
        value=type(module).__name__,
        remedy="give a module with parameters",
    )
    match = match_dial(
        settings, factors, alpha, target_scale=target_scale, clip_norm=clip_norm, inexact_clipping=_CLIPPING
    )
    scaled = ScaledOutput(copy.deepcopy(module), output_scale)
    with torch.no_grad():
        for name, each in scaled.named_parameters():
            each.mul_(factors[name])
    inputs, targets = _tensors(task, next(iter(module.parameters())))
    return RegimeDial(
        **vars(match), inputs=_times(inputs, input_scale), targets=_times(targets, target_scale), network=scaled
    )


def _scales(
    module: nn.Module, init_scale: float, layer_scales: Sequence[float] | None, input_scale: float
) -> tuple[dict[int, float], float]:
    """Return the factor on each parameter, by its identity, and the resulting factor on the outputs."""
    if init_scale == input_scale == 1 and layer_scales is None:
        return {}, 1.0
    parts = list(_parts(module))
    unknown = [type(each).__name__ for each in parts if not isinstance(each, (nn.Linear, *_HOMOGENEOUS))]
    require(
        not unknown,
        f"the degree of the outputs in the weights is not known for a network with {', '.join(unknown)}",
        argument="network",
        value=unknown,
        remedy="use a Sequential of Linear, ReLU, LeakyReLU, Identity and Flatten; or output_scale and target_scale",
    )
    linear = [each for each in parts if isinstance(each, nn.Linear)]
    require(
        len({id(each.weight) for each in linear}) == len(linear) > 0,
        "the network has no linear layers, or layers that share weights",
        argument="network",
        value=type(module).__name__,
        remedy="give each linear layer its own weight",
    )
    scales, product = {}, input_scale
    for layer, factor in zip(linear, layer_factors(len(linear), init_scale, layer_scales), strict=True):
        product *= factor
        scales[id(layer.weight)] = factor
        if layer.bias is not None:
            scales[id(layer.bias)] = product
    return scales, product


def _parts(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the modules of nested `Sequential` modules in their order."""
    if isinstance(module, nn.Sequential):
        for each in module:
            yield from _parts(each)
    else:
        yield module


def _tensors(task: Any, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs and targets; floating-point numbers have the precision and the device of a weight."""
    pair = (task.inputs, task.targets) if hasattr(task, "inputs") else task
    require(
        isinstance(pair, list | tuple) and len(pair) == 2,
        "task is not a task or a pair of inputs and targets",
        argument="task",
        value=type(task).__name__,
        remedy="give a task, or (inputs, targets)",
    )
    inputs, targets = (torch.as_tensor(each) for each in pair)
    return _converted(inputs, weight), _converted(targets, weight)


def _converted(values: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return values.to(weight) if values.is_floating_point() else values.to(weight.device)


def _times(values: torch.Tensor, factor: float) -> torch.Tensor:
    return values if factor == 1 else values * factor


def _options(settings: OptimizerSettings) -> dict[str, Any]:
    """Options of a parameter group."""
    coupled, decoupled = settings.coupled_decay, settings.decoupled_decay
    if decoupled and (settings.optimizer == "sgd" or coupled):
        raise InputError(
            f"decoupled_decay is {decoupled:g}, which PyTorch supports only for Adam without coupled decay",
            argument="decoupled_decay",
            value=decoupled,
            remedy="set coupled_decay for SGD, or only one of both for Adam",
        )
    common = {"lr": settings.learning_rate, "weight_decay": coupled or decoupled}
    if settings.optimizer == "adam":
        return {**common, "betas": settings.betas, "eps": settings.epsilon}
    return {
        **common,
        "momentum": settings.momentum,
        "dampening": settings.dampening,
        "nesterov": settings.nesterov,
    }
