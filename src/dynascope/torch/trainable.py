"""A PyTorch module as functions of the vector of its weights."""
# pyright: reportMissingImports=false

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import nn

from dynascope.prediction.lazy_or_rich.read_network import ReadNetwork, kernel_samples, samples_of
from dynascope.probes.kernel import neural_tangent_kernel
from dynascope.tasks.as_task import as_task
from dynascope.torch.modules import unwrapped
from dynascope.torch.recorder.forward_capture import ForwardCapture
from dynascope.torch.repeatable import BATCH_NORMS
from dynascope.validation import require, require_finite_values

__all__ = ["TorchNetwork", "read_network"]

_LARGEST_FULL = 2560  # rows of a full kernel; larger kernels are averaged over outputs


class TorchNetwork:
    """A private copy of a module, in float64 and in evaluation mode; see `TrainableNetwork`.

    Args:
        module: The module with its initial weights; weights that do not require a gradient are constant.
        inputs: All inputs, with samples along the first axis.
        loss: "squared", ½‖f − y‖², or "cross_entropy".
        few: Indices of the inputs on which the NTK is computed.
    """

    def __init__(self, module: nn.Module, inputs: torch.Tensor, loss: str, few: np.ndarray):
        self._module = copy.deepcopy(module).double().eval()
        named = [(name, each) for name, each in self._module.named_parameters() if each.requires_grad]
        require(
            named,
            "no parameter of the module requires a gradient",
            argument="network",
            remedy="give a module with trainable parameters",
        )
        self._parameters = [each for _, each in named]
        device = self._parameters[0].device
        self._inputs = (inputs.double() if inputs.is_floating_point() else inputs).to(device)
        self._few = self._inputs[torch.as_tensor(few, device=device)]
        self._loss = loss
        self.start = self._joined(self._parameters)
        owners = [name.rpartition(".")[0] for name, _ in named]
        numbers = {owner: number for number, owner in enumerate(dict.fromkeys(owners))}
        sizes = [each.numel() for each in self._parameters]
        self.layers: np.ndarray | None = np.repeat([numbers[owner] for owner in owners], sizes)

    def _joined(self, tensors: Any) -> Float[np.ndarray, " P"]:
        return torch.cat([each.detach().reshape(-1) for each in tensors]).cpu().numpy()

    def _split(self, vector: Float[np.ndarray, " P"]) -> list[torch.Tensor]:
        sizes = [each.numel() for each in self._parameters]
        parts = torch.as_tensor(vector).split(sizes)
        return [part.reshape(each.shape).to(each.device) for part, each in zip(parts, self._parameters, strict=True)]

    def _set(self, weights: Float[np.ndarray, " P"]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self._parameters, self._split(weights), strict=True):
                parameter.copy_(value)

    def outputs(self, weights: Float[np.ndarray, " P"]) -> Float[np.ndarray, "n c"]:
        """Compute the outputs on all samples."""
        self._set(weights)
        with torch.no_grad():
            return self._module(self._inputs).cpu().numpy()

    def gradient(self, weights: Float[np.ndarray, " P"], targets: Any) -> tuple[float, Float[np.ndarray, " P"]]:
        """Compute the loss on all samples and its gradient."""
        self._set(weights)
        outputs = self._module(self._inputs)
        wanted = torch.as_tensor(targets, device=outputs.device)
        if self._loss == "squared":
            loss = ((outputs - wanted) ** 2).sum() / (2 * len(outputs))
        else:
            loss = nn.functional.cross_entropy(outputs, wanted)
        found = torch.autograd.grad(loss, self._parameters, allow_unused=True, materialize_grads=True)
        return float(loss.detach()), self._joined(found)

    def kernel(self, weights: Float[np.ndarray, " P"], rates: Float[np.ndarray, " P"] | None) -> Any:
        """Compute the NTK on the subset of the samples."""
        self._set(weights)
        names = [name for name, each in self._module.named_parameters() if each.requires_grad]
        speeds = None if rates is None else dict(zip(names, self._split(rates), strict=True))
        with torch.no_grad():
            rows = self._module(self._few).numel()
        contraction = "full" if rows <= _LARGEST_FULL else "trace"
        found = neural_tangent_kernel(self._module, None, self._few, contraction=contraction, rates=speeds)
        return found.values.cpu().numpy()

    def patterns(self, weights: Float[np.ndarray, " P"]) -> Bool[np.ndarray, "m neurons"] | None:
        """Compute which neurons are active on the subset of the samples; None without activation functions."""
        self._set(weights)
        with torch.no_grad(), ForwardCapture(self._module, ()) as found:
            self._module(self._few)
        values = [each.reshape(len(self._few), -1) for each, _ in found.preactivations.values()]
        return (torch.cat(values, dim=1) > 0).cpu().numpy() if values else None


def read_network(network: Any, task: Any, *, scale: float, loss: str) -> ReadNetwork:
    """Read a module and its data; see `prediction.lazy_or_rich.read_network`.

    Inputs of a pair (inputs, targets) can have any shape.
    """
    require(
        isinstance(network, nn.Module),
        f"the data are PyTorch tensors, but the network has type {type(network).__name__}",
        argument="task",
        value=type(task).__name__,
        remedy="give NumPy arrays, or a PyTorch module",
    )
    pair = task if isinstance(task, tuple | list) and len(task) == 2 else samples_of(as_task(task))
    inputs, targets = (_tensor(each) for each in pair)
    require_finite_values("task", inputs)
    embeds = any(isinstance(part, nn.Embedding) for part in network.modules())
    inputs = inputs if inputs.is_floating_point() or embeds else inputs.double()
    module = copy.deepcopy(unwrapped(network))
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.requires_grad:
                parameter.mul_(scale)
    trainable = TorchNetwork(module, inputs, loss, kernel_samples(len(inputs)))
    values = inputs.detach().cpu().numpy(), targets.detach().cpu().numpy()
    return ReadNetwork(trainable, module, *values, _degree(module), _notes(network))


def _tensor(values: Any) -> torch.Tensor:
    if isinstance(values, torch.Tensor):
        found = values.detach()
    else:
        array = np.asarray(values)
        require(
            array.dtype.kind in "fiub",
            f"the data have values of type {array.dtype}",
            argument="task",
            value=str(array.dtype),
            remedy="give numbers",
        )
        found = torch.as_tensor(array)
    require(len(found) > 0, "the data have no samples", argument="task", value=0, remedy="give at least one sample")
    return found


def _notes(module: nn.Module) -> tuple[str, ...]:
    random = [type(part).__name__ for part in module.modules() if isinstance(part, (*BATCH_NORMS, nn.Dropout))]
    if not random or not module.training:
        return ()
    layers = " and ".join(dict.fromkeys(random))
    return (f"The network was trained in evaluation mode, so {layers} did not act as in training.",)


def _degree(module: nn.Module) -> int | None:
    """Return the number of linear layers of a ReLU or linear `Sequential` without biases; None for other modules."""
    parts = [module] if isinstance(module, nn.Linear) else list(module) if isinstance(module, nn.Sequential) else []
    known = nn.Linear, nn.ReLU, nn.LeakyReLU, nn.Identity, nn.Flatten
    if not parts or not all(isinstance(part, known) for part in parts):
        return None
    linear = [part for part in parts if isinstance(part, nn.Linear)]
    if any(part.bias is not None for part in linear):
        return None
    return len(linear) or None
