"""Describe networks that no theory covers by the names of their layers, and list the nearest theories."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeGuard

import equinox as eqx
import jax
import numpy as np

from dynascope.compilation import filter_jit
from dynascope.errors import InputError
from dynascope.networks.user_module import user_network
from dynascope.protocols import Network, SumOfNeurons
from dynascope.tasks.task import Task

__all__ = [
    "NetworkParts",
    "Rows",
    "is_module",
    "is_user_module",
    "misfit_of",
    "network_parts",
    "readable",
    "unread",
]

_PARTS = (  # layer types, name patterns, and the nearest theories with the reason why they do not apply
    (
        "attention",
        r"attention|transformer",
        (("linear-attention", "its attention is not linear, or is combined with other layers"),),
    ),
    (
        "recurrence",
        r"^(rnn|lstm|gru)|recurrent|(lstm|gru|rnn)cell",
        (("alternating-flow", "its weights are reused at every step, so it is not a sum of neurons"),),
    ),
    (
        "convolutions",
        r"^conv|convolution|^vgg|^resnet",
        (
            (
                "alternating-flow",
                "its weights are shared across positions, so it is not a sum of neurons on all inputs",
            ),
        ),
    ),
    (
        "skip connections",
        r"resnet|residual|basicblock|bottleneck|transformer",
        (("deep-isotropic", "inputs bypass layers, so it is not a product of layers"),),
    ),
    (
        "normalisation",
        r"norm",
        (("alternating-flow", "normalisation layers cancel the scale of the weights, so no initialisation is small"),),
    ),
)
_LINEAR = re.compile(r"^(Linear|LazyLinear|Dense)$")
_ACTIVATION = re.compile(r"relu|gelu|tanh|sigmoid|silu|elu|softplus|mish|swish|erf", re.IGNORECASE)
_MOST = 160  # characters of an error message of a user's module
_PYTORCH = (
    "it is a PyTorch module, but the theory requires a JAX function: implement it in equinox, or measure its NTK "
    "before and after training, as shown at the end"
)
_LIBRARIES = {"torch.nn.": "PyTorch", "equinox.nn.": "equinox"}  # modules with known behaviour
_TO_READ = "give a Linear, an MLP or a Sequential of equinox.nn"
_NEAREST_OF_LINEAR = {1: "linear-model", 2: "linear-staircase"}  # by number of layers
_KERNEL = "probes.kernel.neural_tangent_kernel"


class NetworkParts(NamedTuple):
    """The description of a network.

    Attributes:
        name: The description, such as "PyTorch network with convolutions and normalisation".
        obstacles: Names of the nearest theories, each with the reason why it does not apply.
        observing: Calls that measure the network; replace the words in capitals.
    """

    name: str
    obstacles: tuple[tuple[str, str], ...]
    observing: tuple[str, ...]


class Rows(eqx.Module):
    """An equinox module that takes individual samples, vectorised over rows."""

    module: Any

    def __call__(self, x: Any) -> Any:
        """Compute the outputs of each row."""
        return _mapped(self.module, x)


@filter_jit
def _mapped(module: Any, rows: Any) -> Any:
    return jax.vmap(module)(rows)


def is_module(network: Any) -> bool:
    """Whether the network is a PyTorch or equinox module."""
    return isinstance(network, eqx.Module) or _is_torch(network)


def is_user_module(network: Any) -> TypeGuard[Network]:
    """Whether the network is a user's module, rather than a network of this package or a sum of neurons."""
    return is_module(network) and _is_of_samples(network) and not isinstance(network, SumOfNeurons)


def unread(network: Any) -> str:
    """Explain why a user's module cannot be converted; empty if it can, or if it is not a module."""
    try:
        if isinstance(network, Network):
            user_network(network)
    except InputError as error:
        return str(error)
    return ""


def readable(network: Any) -> Any:
    """Vectorise an equinox module over rows; return other networks unchanged."""
    return Rows(network) if isinstance(network, eqx.Module) and is_user_module(network) else network


def misfit_of(task: Any, network: Any) -> str:
    """Explain why a network does not accept the samples of a task; empty if it does, or if it is a PyTorch module.

    Args:
        task: The data.
        network: A network that takes a batch of inputs in rows, or a PyTorch module.
    """
    if not isinstance(task, Task):
        return "the task has no samples on which to compute a tangent kernel"
    if _is_torch(network):
        return ""
    d, c = task.input_dimension, task.output_dimension
    wanted = (
        f"give a module that maps one sample of shape ({d},) to outputs of shape ({c},); it is vmapped over samples"
    )
    try:
        found: Any = eqx.filter_eval_shape(network, jax.ShapeDtypeStruct((1, d), np.float64))
    except Exception as error:  # a user's module may raise any error for inputs of the wrong shape
        message = next(iter(str(error).strip().splitlines()), "").rstrip(".")
        return f"it does not accept a sample of shape ({d},) ({type(error).__name__}: {message[:_MOST]}); {wanted}"
    shape = getattr(found, "shape", None)
    if shape == (1, c):
        return ""
    answer = type(found).__name__ if shape is None else f"outputs of shape {shape[1:]}"
    return f"it maps a sample of shape ({d},) to {answer}; {wanted}"


def network_parts(module: Any, problem: str = "") -> NetworkParts:
    """Describe a PyTorch or equinox module by the names of its layers; custom code is not analysed.

    Args:
        module: Any network.
        problem: Why the module is not a supported two-layer network, if known.

    Example:
        >>> found = network_parts(eqx.nn.MLP(4, 4, 4, 3, key=jax.random.key(0)))
        >>> found.name, found.obstacles[0][0]
        ('equinox network with 4 linear layers and relu', 'alternating-flow')
    """
    torch = _is_torch(module)
    names = list(_names_of_torch(module) if torch else _names(module))
    linear = sum(bool(_LINEAR.match(name)) for name in names)
    functions = list(dict.fromkeys(name for name in names if _ACTIVATION.search(name) and not _LINEAR.match(name)))
    found = [each for each in _PARTS if any(re.search(each[1], name, re.IGNORECASE) for name in names)]
    library = next((library for start, library in _LIBRARIES.items() if type(module).__module__.startswith(start)), "")
    if not (found or problem or library or torch) and _is_of_samples(module):
        problem = f"the code of {type(module).__name__} is not analysed; {_TO_READ}"
    words = [word for word, _, _ in found]
    obstacles = [pair for _, _, pairs in found for pair in pairs]
    if not found and linear:
        words = [f"{linear} linear layer{'s' * (linear > 1)}", *functions[:2]]
        if linear > 2:
            obstacles.append(("alternating-flow", f"it has {linear} linear layers, but the theory covers two"))
            between = f"it has {' and '.join(functions[:2])} between its layers, but the theory covers linear networks"
            obstacles.append(("deep-isotropic", between if functions else problem))
    if problem and linear <= 2 and not found:
        nearest = _NEAREST_OF_LINEAR.get(linear) if library and not functions else None
        obstacles.insert(0, (nearest or "alternating-flow", problem))
    if torch:
        obstacles.append(("kernel-regression", _PYTORCH))
    kind = "PyTorch network" if torch else f"{library} network" if library else type(module).__name__
    name = f"{kind} with {_joined(words)}" if words else kind
    if torch:
        kernel = f"{_KERNEL}(network, None, x)"
    else:
        mapped = "jax.vmap(network)(x)" if _is_of_samples(module) else "network(x)"
        kernel = f"{_KERNEL}(lambda network, x: {mapped}, network, x)"
    observing = (
        *(["network.eval()  # makes outputs independent of the batch"] if _changes_in_training(module) else []),
        "x = INPUTS  # a batch of inputs",
        f"before = {kernel}.values",
        f"after = {kernel}.values  # after training",
        "probes.kernel.kernel_distance(before, after)  # compare with the distance between two random initialisations",
    )
    unique = dict(reversed(obstacles))  # the first reason of each theory
    return NetworkParts(name, tuple((each, unique[each]) for each in dict.fromkeys(k for k, _ in obstacles)), observing)


def _changes_in_training(module: Any) -> bool:
    """Whether a PyTorch module behaves differently in training mode."""
    if not _is_torch(module) or not module.training:
        return False
    return any(re.search(r"norm|dropout", type(part).__name__, re.IGNORECASE) for part in module.modules())


def _is_torch(module: Any) -> bool:
    return any(base.__name__ == "Module" and base.__module__.startswith("torch.nn.") for base in type(module).__mro__)


def _is_of_samples(module: Any) -> bool:
    """Whether the module takes individual samples, as equinox modules do, rather than a batch in rows."""
    return not type(module).__module__.startswith("dynascope.")


def _names_of_torch(module: Any) -> Iterator[str]:
    for part in module.modules():
        yield type(part).__name__


def _names(part: Any) -> Iterator[str]:
    """Yield the type names of equinox modules, and the names of the functions that they contain."""
    if isinstance(part, eqx.Module):
        yield type(part).__name__
        for value in vars(part).values():
            yield from _names(value)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from _names(value)
    elif isinstance(part, dict):
        yield from _names(list(part.values()))
    elif callable(part):
        yield getattr(part, "__name__", type(part).__name__)


def _joined(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
