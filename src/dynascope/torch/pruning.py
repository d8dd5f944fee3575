"""Pruning of PyTorch modules, with masks in the format of `torch.nn.utils.prune`."""
# pyright: reportMissingImports=false

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Ge
from torch import nn
from torch.nn.utils import parametrize
from torch.nn.utils.prune import is_pruned

from dynascope.errors import InputError
from dynascope.interventions import CriticalCompression, Pruned
from dynascope.interventions.prunable import Flow, require_classes, require_pairs, unprotected
from dynascope.interventions.prune import prune_network, require_data, scan_compressions
from dynascope.interventions.pruning_scores import Method
from dynascope.torch.modules import floating_tensors, require_shapes, unwrapped
from dynascope.torch.repeatable import BATCH_NORMS
from dynascope.validation import require, require_finite_values, shown_error
from dynascope.validation.bounded import PositiveInt, Seed

__all__ = ["critical_compression", "prune"]

_HOMOGENEOUS = 1e-9  # relative rounding error of one layer


def prune(
    network: nn.Module,
    method: Method = "synflow",
    *,
    compression: Annotated[float, Ge(1)],
    rounds: PositiveInt | None = None,
    data: Any = None,
    protect: Sequence[str] = (),
    input_shape: Sequence[PositiveInt] | None = None,
    allow_collapse: bool = False,
    seed: Seed = 0,
) -> Pruned:
    """Remove the weights of a PyTorch module with the lowest scores until a fraction 1/ρ is left.

    This is `interventions.prune` for PyTorch, with the same methods, ranking and rounds. Networks with the same weights
    therefore get the same masks. Scores are computed on a private copy of the module in float64 and in evaluation mode.
    The module is unchanged: apply the masks with `torch.nn.utils.prune.custom_from_mask`, and then train as usual.

    Args:
        network: The module, which maps a batch to outputs, shape (n, c).
        method: "synflow", "snip", "grasp", "magnitude" or "random".
        compression: ρ ≥ 1, the number of prunable weights divided by the number of kept weights.
        rounds: Number of rounds; the default is 100 for SynFlow, and 1 for the other methods.
        data: Tensors of inputs and targets for SNIP and GraSP; about ten samples per class. The loss is the
            cross-entropy for integer targets, and ½‖f − y‖² otherwise.
        protect: Names, or parts of names, of layers that are not pruned, such as "downsample".
        input_shape: Shape of one sample, such as (3, 32, 32). The default is the shape of the data, or the input width
            of a leading linear layer.
        allow_collapse: Whether layers may lose all weights.
        seed: Seed of the random scores.

    Returns:
        The result of pruning, with the masks {name of a parameter: tensor of zeros and ones} as `mask`.

    Raises:
        InputError: Under the same conditions as in `interventions.prune`.

    Warns:
        UserWarning: If the module contains layers that are not homogeneous, because SynFlow then does not conserve the
            flow.

    References:
        H. Tanaka et al., arXiv:2006.05467; N. Lee et al., arXiv:1810.02340; C. Wang et al., arXiv:2002.07376.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> model = nn.Sequential(nn.Linear(8, 20), nn.ReLU(), nn.Linear(20, 3))
        >>> pruned = prune(model, compression=10.0)
        >>> list(pruned.mask), sum(int(mask.sum()) for mask in pruned.mask.values())
        (['0.weight', '2.weight'], 22)
    """
    require_data(method, data)
    read = TorchNetwork(network, protect, input_shape, data)
    return prune_network(read, method, compression, rounds, allow_collapse, seed)


def critical_compression(
    network: nn.Module,
    method: Method = "synflow",
    *,
    compressions: Sequence[Annotated[float, Ge(1)]] | None = None,
    rounds: PositiveInt | None = None,
    data: Any = None,
    protect: Sequence[str] = (),
    input_shape: Sequence[PositiveInt] | None = None,
    seed: Seed = 0,
) -> CriticalCompression:
    """Find the highest compression at which a method leaves a weight in every layer of a PyTorch module.

    This is `interventions.critical_compression` for PyTorch.

    Args:
        network: As in `prune`.
        method: Name of the method.
        compressions: Increasing compressions; by default, steps of 0.25 in log₁₀ ρ up to ρ_max.
        rounds: As in `prune`.
        data: As in `prune`.
        protect: As in `prune`.
        input_shape: As in `prune`.
        seed: As in `prune`.

    Raises:
        InputError: Under the same conditions as in `prune`, except that layers may lose all weights.
    """
    require_data(method, data)
    return scan_compressions(TorchNetwork(network, protect, input_shape, data), method, compressions, rounds, seed)


class TorchNetwork:
    """Reads a PyTorch module for pruning; an instance of `interventions.prunable.Prunable`."""

    def __init__(self, network: nn.Module, protect: Sequence[str], input_shape: Sequence[int] | None, data: Any):
        module: nn.Module = unwrapped(network)
        require_shapes("network", module)
        _require_plain(module)
        self._module = copy.deepcopy(module).double().eval()
        self._original = dict(module.named_parameters())
        self._trained = {name: each.detach() for name, each in self._module.named_parameters()}
        floating = [name for name, each in self._trained.items() if each.ndim > 1 and each.is_floating_point()]
        self.names = unprotected(floating, protect)
        _require_untied(module, self.names)
        self.weights = [self._trained[name].cpu().numpy() for name in self.names]
        for name, each in self._trained.items():
            require(
                bool(torch.isfinite(each).all()),
                f"{name} contains values that are not finite",
                argument="network",
                value=name,
                remedy="give finite weights",
            )
        self.unit_axes = [self._unit_axis(name) for name in self.names]
        self._device = next(iter(self._trained.values())).device
        self._data = None if data is None else self._tensors(data)
        self._ones = torch.ones(1, *self._input_shape(input_shape), dtype=torch.float64, device=self._device)
        self._flowing = {name: each.abs() for name, each in self._trained.items()}
        self._centred = {
            f"{name}.running_mean" if name else "running_mean": torch.zeros_like(each.running_mean)
            for name, each in self._module.named_modules()
            if isinstance(each, BATCH_NORMS) and each.running_mean is not None
        }
        try:
            self._total({}, self._ones)
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            raise InputError(
                f"the network cannot be applied to a batch of shape {tuple(self._ones.shape)} ({shown_error(error)})",
                argument="input_shape",
                value=tuple(self._ones.shape[1:]),
                remedy="give the shape of one sample, such as (3, 32, 32); if the network takes integers, such as "
                "tokens, prune the part after the embedding",
            ) from error
        if self._data is not None and not self._data[1].is_floating_point():
            require_classes(self._data[1], self._module(self._data[0][:1]).shape[1])

    def flow(self, weights: Sequence[np.ndarray]) -> Flow:
        """Synaptic flow in evaluation mode, with running means of zero, for nonnegative weights of the layers."""
        given = self._given(weights)
        total = self._total(given, self._ones)
        return Flow(float(total.detach()), self._slopes(total, given))

    def source(self, weights: Sequence[np.ndarray]) -> float:
        """Flow from the biases plus ⟨∂R/∂x, x⟩."""
        given, ones = self._given(weights), self._ones.clone().requires_grad_()
        (entering,) = torch.autograd.grad(self._total(given, ones), ones)
        return float(self._total(given, 0 * self._ones).detach() + entering.sum())

    def gradient(self, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Gradient of the mean loss on the data."""
        given = self._given(weights)
        return self._slopes(self._loss(given, 1.0), given)

    def curvature_product(self, weights: Sequence[np.ndarray], temperature: float) -> list[np.ndarray]:
        """Product of the Hessian and the gradient of the mean loss of outputs divided by a temperature."""
        given = self._given(weights)
        slopes = torch.autograd.grad(self._loss(given, temperature), list(given.values()), create_graph=True)
        product: Any = sum((each * each.detach()).sum() for each in slopes)
        return self._slopes(product, given)

    def inhomogeneous(self) -> tuple[str, ...]:
        """Names of layers with f(2x) ≠ 2 f(x), for absolute weights without biases."""
        found: list[str] = []
        module = copy.deepcopy(self._module)
        with torch.no_grad():
            for name, each in module.named_parameters():
                each.copy_(torch.zeros_like(each) if name.rpartition(".")[2] == "bias" else each.abs())
            for name, each in module.named_buffers():
                if name in self._centred:
                    each.zero_()
            leaves = [(name, each) for name, each in module.named_modules() if not list(each.children())]
            for name, each in leaves:
                each.register_forward_hook(lambda layer, x, y, name=name: self._note(found, name, layer, x, y))
            module(self._ones)
        return tuple(dict.fromkeys(found)) or ("a function in the forward method",)

    def result(self, masks: Sequence[np.ndarray]) -> tuple[dict[str, torch.Tensor], None]:
        """The mask of each parameter by name, in the precision and on the device of the parameter."""
        pairs = zip(self.names, masks, strict=True)
        return {name: torch.as_tensor(mask).to(self._original[name]) for name, mask in pairs}, None

    def _note(self, found: list[str], name: str, layer: nn.Module, inputs: Any, outputs: Any) -> None:
        doubled = [2 * each if isinstance(each, torch.Tensor) else each for each in inputs]
        again = list(floating_tensors(layer.forward(*doubled)))
        for one, other in zip(floating_tensors(outputs), again, strict=True):
            if not torch.allclose(2 * one, other, rtol=_HOMOGENEOUS, atol=0.0):
                found.append(f"{name} ({type(layer).__name__})")

    def _given(self, weights: Sequence[np.ndarray]) -> dict[str, torch.Tensor]:
        pairs = zip(self.names, weights, strict=True)
        return {name: torch.as_tensor(each, device=self._device).requires_grad_() for name, each in pairs}

    def _slopes(self, value: torch.Tensor, given: dict[str, torch.Tensor]) -> list[np.ndarray]:
        found = torch.autograd.grad(value, list(given.values()), allow_unused=True)
        pairs = zip(found, given.values(), strict=True)
        return [(torch.zeros_like(w) if slope is None else slope).cpu().numpy() for slope, w in pairs]

    def _total(self, given: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        outputs = torch.func.functional_call(self._module, {**self._flowing, **self._centred, **given}, (x,))
        total: Any = sum(each.sum() for each in floating_tensors(outputs))
        return total

    def _loss(self, given: dict[str, torch.Tensor], temperature: float) -> torch.Tensor:
        assert self._data is not None
        inputs, targets = self._data
        outputs = torch.func.functional_call(self._module, {**self._trained, **given}, (inputs,)) / temperature
        if targets.is_floating_point():
            return ((outputs - targets) ** 2).flatten(1).sum(1).mean() / 2
        return nn.functional.cross_entropy(outputs, targets)

    def _tensors(self, data: Any) -> tuple[torch.Tensor, torch.Tensor]:
        require(
            isinstance(data, list | tuple) and len(data) == 2,
            "data is not a pair of inputs and targets",
            argument="data",
            value=type(data).__name__,
            remedy="give (inputs, targets) with one row per sample; integer targets are class labels",
        )
        inputs, targets = (torch.as_tensor(each, device=self._device) for each in data)
        require_pairs(inputs, targets)
        require_finite_values("data", inputs)
        return inputs.double(), targets.double() if targets.is_floating_point() else targets.long()

    def _input_shape(self, given: Sequence[int] | None) -> tuple[int, ...]:
        if given is not None:
            return tuple(given)
        if self._data is not None:
            return tuple(self._data[0].shape[1:])
        first = next(each for each in self._module.modules() if next(each.parameters(recurse=False), None) is not None)
        if isinstance(first, nn.Linear):
            return (first.in_features,)
        raise InputError(
            "the shape of an input is unknown",
            argument="input_shape",
            remedy="give the shape of one sample, such as input_shape=(3, 32, 32)",
        )

    def _unit_axis(self, name: str) -> int:
        owner = self._module.get_submodule(name.rpartition(".")[0])
        transposed = nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d
        return 1 if isinstance(owner, transposed) else 0


def _require_plain(module: nn.Module) -> None:
    """Raise `InputError` if weights are computed from other parameters, by masks or by a normalisation of weights."""
    require(
        not is_pruned(module),
        "the network contains masks from torch.nn.utils.prune",
        argument="network",
        remedy="make them permanent with torch.nn.utils.prune.remove before you prune again",
    )
    computed = [name for name, each in module.named_modules() if parametrize.is_parametrized(each)]
    require(
        not computed,
        f"the weights of {', '.join(computed)} are parametrised, for example by weight or spectral normalisation",
        argument="network",
        value=computed,
        remedy="make the weights permanent with torch.nn.utils.parametrize.remove_parametrizations before you prune",
    )


def _require_untied(module: nn.Module, names: Sequence[str]) -> None:
    """Raise `InputError` if a prunable weight has several names."""
    first: dict[int, str] = {}
    for name, each in module.named_parameters(remove_duplicate=False):
        other = first.setdefault(id(each), name)
        require(
            other == name or other not in names,
            f"{other} and {name} are the same weight, but the conservation of synaptic flow requires separate weights",
            argument="network",
            value=(other, name),
            remedy=f"give the layers separate weights, or pass protect=[{other!r}]",
        )
