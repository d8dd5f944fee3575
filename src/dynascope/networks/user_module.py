"""Conversion of PyTorch and equinox networks to networks that the theory covers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from dynascope.errors import InputError
from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.networks.deep_linear import DeepLinear
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.mlp import MLP
from dynascope.networks.two_layer import HomogeneousActivation, TwoLayer
from dynascope.protocols import Network
from dynascope.validation import require

__all__ = ["at_unit_scale", "converted", "user_network"]

_SUPPORTED = (
    "two linear layers separated by a homogeneous activation, such as ReLU or LeakyReLU, or of linear layers only"
)
_WRAPPED = ("_orig_mod", "module")  # by torch.compile and by parallel training
_SKIPPED = ("Identity", "Flatten")
_RANDOM = ("Dropout", "Dropout1d", "Dropout2d", "AlphaDropout", "RReLU")
_DEGREES = (1, 2, 3, 4)
_POINTS = np.array([0.1, 1.0, 2.0, 30.0])
_CLOSE = 1e-4  # tolerance for weights in single precision


@dataclasses.dataclass(frozen=True)
class _Layer:
    """A linear layer or a function in a network.

    Attributes:
        name: Name of the type.
        weight: W, shape (out, in), of a linear layer; None for a function.
        bias: Bias of a linear layer.
        frozen: Whether the weights of a linear layer are not trainable.
        stateful: Whether the function has parameters or buffers.
        apply: The function, applied to a row of numbers.
    """

    name: str
    weight: Float[np.ndarray, "out in"] | None = None
    bias: Float[np.ndarray, " out"] | None = None
    frozen: bool = False
    stateful: bool = False
    apply: Callable[[np.ndarray], np.ndarray] | None = None


def user_network(module: Network) -> TwoLayer | BiasedTwoLayer | DeepLinear | MLP | None:
    """Convert a PyTorch or equinox network to a dynascope network with the same weights; return None for other types.

    Supported types are `torch.nn.Sequential`, `equinox.nn.Sequential` and `equinox.nn.MLP`, and a single `Linear`
    layer. Sequential modules and MLPs must have either two linear layers separated by a homogeneous activation, or
    any number of linear layers without activation. Layers can have biases (see `BiasedTwoLayer`). The activation is
    identified by evaluating it. PyTorch modules are recognised by the names of their types, and their weights are
    copied.

    Args:
        module: Any network.

    Raises:
        InputError: If the network is a PyTorch module, or one of the supported equinox modules, and the theory does not
            cover the network. The message states the reason.

    Example:
        >>> import jax
        >>> perceptron = eqx.nn.MLP(3, 2, 8, 1, use_bias=False, use_final_bias=False, key=jax.random.key(0))
        >>> network = user_network(perceptron)
        >>> network.first.shape, network.second.shape, network.activation.name
        ((3, 8), (8, 2), 'relu')
    """
    if isinstance(module, eqx.nn.MLP | eqx.nn.Sequential | eqx.nn.Linear):
        layers = list(_of_equinox(module))
    elif _is_torch(module):
        layers = list(_of_torch(module))
    else:
        return None
    layers = [layer for layer in layers if layer.name not in _SKIPPED]
    places = [place for place, layer in enumerate(layers) if layer.weight is not None]
    if len(places) > 2 and any(
        layer.weight is None and (layer.stateful or not _is_identity(layer)) for layer in layers
    ):
        # Changing a single layer would not make the network supported.
        raise InputError(
            f"the network has {len(places)} linear layers with activations or other layers between them",
            argument="network",
            value=len(places),
            remedy=f"give a network of {_SUPPORTED}",
        )
    for layer in layers:
        _require_plain(layer)
    if places and len(places) != 2 and all(layer.weight is not None or _is_identity(layer) for layer in layers):
        return _linear([layer for layer in layers if layer.weight is not None])
    require(
        len(places) == 2,
        f"the network has {len(places)} linear layer{'' if len(places) == 1 else 's'}",
        argument="network",
        value=len(places),
        remedy=f"give a network of {_SUPPORTED}",
    )
    outside = [layer.name for layer in (*layers[: places[0]], *layers[places[1] + 1 :]) if not _is_identity(layer)]
    require(
        not outside,
        f"the network has layers before its first or after its last linear layer ({', '.join(outside)})",
        argument="network",
        value=outside,
        remedy="remove these layers, and train with a squared loss",
    )
    (first, hidden_bias), (second, bias) = ((layers[place].weight, layers[place].bias) for place in places)
    assert first is not None
    assert second is not None
    activation = _activation(layers[places[0] + 1 : places[1]])
    if activation.linear and (hidden_bias is not None or bias is not None):
        outer = dataclasses.replace(layers[places[1]], weight=activation.positive * second)
        return _linear([layers[places[0]], outer])
    if activation.linear:
        second, activation = activation.positive * second, HomogeneousActivation(1, 1.0, -1.0, "linear")
    if hidden_bias is not None:
        first = np.column_stack([first, hidden_bias])
    network = TwoLayer(first.shape[1], len(first), len(second))
    network = eqx.tree_at(
        lambda net: (net.first, net.second, net.activation), network, (first.T.copy(), second.T.copy(), activation)
    )
    if hidden_bias is None and bias is None:
        return network
    return BiasedTwoLayer(network, bias, has_hidden_biases=hidden_bias is not None)


def _linear(layers: list[_Layer]) -> DeepLinear | MLP:
    """Return a linear network with the weights and any biases of the given linear layers."""
    weights = [layer.weight.T.copy() for layer in layers if layer.weight is not None]
    widths = (weights[0].shape[0], *(weight.shape[1] for weight in weights))
    if all(layer.bias is None for layer in layers):
        return eqx.tree_at(lambda net: net.weights, DeepLinear(widths), tuple(weights))
    biases = (
        np.zeros(width) if layer.bias is None else layer.bias for layer, width in zip(layers, widths[1:], strict=True)
    )
    network = MLP(widths, activation="linear")
    return eqx.tree_at(lambda net: (net.weights, net.biases), network, (tuple(weights), tuple(biases)))


def converted(network: Any) -> Any:
    """Convert a module that `user_network` supports, or each one in a list; return other networks unchanged.

    Raises:
        InputError: If a PyTorch module is not supported.
    """
    if isinstance(network, list | tuple):
        return [converted(each) for each in network]
    try:
        read = user_network(network)
    except InputError:
        if _is_torch(network):
            raise
        return network  # An equinox module may map batches itself.
    return network if read is None else read


def at_unit_scale(network: Network) -> tuple[TwoLayer | BiasedTwoLayer | DiagonalLinear | DeepLinear | MLP, float]:
    """Rescale the weights of a network to unit scale, and return the factor that restores them.

    The factor is the norm of the weights divided by the root mean square norm of weights drawn at unit scale. The root
    mean square norm is √(d + c) for `TwoLayer`, √d for `DiagonalLinear`, and √(d + the sum of the hidden widths) for
    `DeepLinear`. In a `BiasedTwoLayer`, the hidden biases count as the weights of one more input. The output bias does
    not count, but is also divided by the factor.

    Args:
        network: A `TwoLayer`, `BiasedTwoLayer`, `DiagonalLinear` or `DeepLinear` network.

    Raises:
        InputError: If the type of the network is not supported, or if its weights are zero or not finite.

    Example:
        >>> network, scale = at_unit_scale(TwoLayer(3, 1000, 2, scale=1e-3))
        >>> round(scale, 4), round(float(np.sum(network.first**2) + np.sum(network.second**2)), 6)
        (0.001, 5.0)
    """
    if isinstance(network, BiasedTwoLayer):
        inner, scale = at_unit_scale(network.inner)
        bias = None if network.bias is None else np.asarray(network.bias, np.float64) / scale
        require(
            bias is None or bool(np.isfinite(bias).all()),
            "the output bias is not finite",
            argument="network",
            value=str(bias),
            remedy="give a network whose weights and biases are finite",
        )
        return BiasedTwoLayer(cast("TwoLayer", inner), bias, has_hidden_biases=network.has_hidden_biases), scale
    if isinstance(network, TwoLayer):
        places, size = (lambda net: (net.first, net.second)), network.first.shape[0] + network.second.shape[1]
    elif isinstance(network, DiagonalLinear):
        places, size = (lambda net: (net.u, net.v)), len(network.u)
    elif isinstance(network, DeepLinear) or (isinstance(network, MLP) and network.activation == "linear"):
        places, size = (lambda net: net.weights), sum(len(weight) for weight in network.weights)
    else:
        raise InputError(
            f"a network of type {type(network).__name__} has no default scale",
            argument="scale",
            remedy="pass scale=1 to use the given initial weights, or another factor to multiply all weights",
        )
    weights = tuple(np.asarray(each, np.float64) for each in places(network))
    scale = float(np.sqrt(sum(np.sum(each**2) for each in weights) / size))
    if scale == 0 and len(weights) == 1:  # a linear model can be trained from zero
        return network, 1.0
    require(
        0 < scale < np.inf,
        f"the norm of the weights is {scale:g}",
        argument="network",
        value=scale,
        remedy="give weights that are finite and not all zero",
    )
    unit = eqx.tree_at(places, network, tuple(each / scale for each in weights))
    if isinstance(unit, MLP):
        unit = eqx.tree_at(lambda net: net.biases, unit, tuple(each / scale for each in unit.biases))
    return unit, scale


def _is_torch(module: Any) -> bool:
    return any(base.__name__ == "Module" and base.__module__.startswith("torch.nn.") for base in type(module).__mro__)


def _of_torch(module: Any, weight: Any = None) -> Iterator[_Layer]:
    """Yield the layers of a PyTorch module. Tensors are created from a weight, so that PyTorch is not imported here."""
    name, parts = type(module).__name__, module._modules
    weight = next(module.parameters(), None) if weight is None else weight
    if len(parts) == 1 and next(iter(parts)) in _WRAPPED:
        yield from _of_torch(next(iter(parts.values())), weight)
    elif name == "Sequential":
        for part in module:
            yield from _of_torch(part, weight)
    elif name == "Linear":
        own = module.weight
        bias = None if module.bias is None else module.bias.detach().cpu().double().numpy()
        frozen = any(not each.requires_grad for each in module.parameters())
        yield _Layer(name, own.detach().cpu().double().numpy(), bias, frozen)
    elif type(module).__module__.startswith("torch.nn."):
        yield _Layer(
            name,
            stateful=bool([*module.parameters(), *module.buffers()]),
            # In half precision, homogeneity holds only approximately.
            apply=lambda values: module(_at_least_single(weight).new_tensor(values)).detach().cpu().double().numpy(),
        )
    else:
        parts_to_try = [f"its part {part!r}" for part, each in parts.items() if type(each).__name__ == "Sequential"]
        raise InputError(
            f"the network is an instance of {name!r}, whose custom code cannot be analysed",
            argument="network",
            value=name,
            remedy=f"give {' or '.join(parts_to_try) or 'a torch.nn.Sequential'}, which must consist of {_SUPPORTED}",
        )


def _at_least_single(weight: Any) -> Any:
    return weight if weight.element_size() >= 4 else weight.float()


def _of_equinox(module: Any) -> Iterator[_Layer]:
    if isinstance(module, eqx.nn.MLP):
        last = len(module.layers) - 1
        for place, layer in enumerate(module.layers):
            yield from _of_equinox(layer)
            yield from _of_equinox(module.final_activation if place == last else module.activation)
    elif isinstance(module, eqx.nn.Sequential):
        for layer in module.layers:
            yield from _of_equinox(layer)
    elif isinstance(module, eqx.nn.Linear):
        bias = None if module.bias is None else np.asarray(module.bias, np.float64)
        yield _Layer("Linear", np.asarray(module.weight, np.float64), bias)
    elif isinstance(module, eqx.nn.Lambda):
        yield from _of_equinox(module.fn)
    else:
        function: Any = module
        name = type(module).__name__ if isinstance(module, eqx.Module) else getattr(module, "__name__", "function")
        yield _Layer(
            name,
            stateful=bool(jax.tree.leaves(eqx.filter(module, eqx.is_array))),
            apply=lambda values: np.asarray(function(jnp.asarray(values)), np.float64),
        )


def _require_plain(layer: _Layer) -> None:
    require(
        not layer.frozen,
        f"the weights of a {layer.name} layer are not trainable",
        argument="network",
        value=layer.name,
        remedy="give a network whose weights are all trainable",
    )
    require(
        not layer.stateful and layer.name not in _RANDOM,
        f"the theory does not cover networks with {layer.name} layers",
        argument="network",
        value=layer.name,
        remedy=f"give a network of {_SUPPORTED}",
    )


def _is_identity(layer: _Layer) -> bool:
    both = np.append(_POINTS, -_POINTS)
    return layer.apply is not None and bool(np.allclose(layer.apply(both), both, rtol=_CLOSE))


def _activation(layers: list[_Layer]) -> HomogeneousActivation:
    """Identify a composition of functions as a homogeneous activation."""

    def value(numbers: np.ndarray) -> np.ndarray:
        for layer in layers:
            assert layer.apply is not None
            numbers = layer.apply(numbers)
        return numbers

    high, low = value(_POINTS), value(-_POINTS)
    one = list(_POINTS).index(1.0)
    for degree in _DEGREES:
        positive, negative = (round(float(values[one]), 6) for values in (high, low))
        powers = _POINTS**degree
        fits = [np.allclose(*pair, rtol=_CLOSE) for pair in ((high, positive * powers), (low, negative * powers))]
        if all(fits) and (positive or negative):
            return HomogeneousActivation(degree, positive, negative, _named(degree, positive, negative))
    name = " and ".join(layer.name for layer in layers)
    raise InputError(
        f"the activation {name} is not homogeneous (its value is {high[2]:.4g} at 2 and {high[one]:.4g} at 1)",
        argument="network",
        value=name,
        remedy="use ReLU, LeakyReLU, the identity or a power instead",
    )


def _named(degree: int, positive: float, negative: float) -> str:
    if positive == 1 and negative == 0:
        return "relu" if degree == 1 else f"relu-power-{degree}"
    if positive == 1 and negative == (-1) ** degree:
        return {1: "linear", 2: "quadratic"}.get(degree, f"power-{degree}")
    if degree == 1 and positive == 1:
        return f"leaky-relu-{-negative:g}"
    return f"homogeneous-{degree}"
