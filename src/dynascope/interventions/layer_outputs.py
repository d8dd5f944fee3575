"""Outputs of the layers of a JAX network."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name
from jax.extend.core import ClosedJaxpr, DebugInfo, jaxpr_as_fun

from dynascope.errors import InputError
from dynascope.interventions.batched_network import BatchedNetwork
from dynascope.networks import DeepLinear
from dynascope.protocols import OneHiddenLayer

__all__ = ["layer_outputs"]

_LAYERS = eqx.nn.Linear | eqx.nn.Conv | eqx.nn.Embedding


def layer_outputs(network: Any, x: Any) -> dict[str, Any]:
    """Compute the outputs of each layer, before the activation, for a batch.

    The layers of an `MLP`, `DeepLinear` or `TwoLayer` network are its weight matrices. The layers of any other equinox
    module are its `Linear`, `Conv` and `Embedding` layers, without those inside loops of JAX. A network without such
    layers has the layers "features" and "outputs" if it has a method `features`.

    Args:
        network: A network that maps a batch to outputs; the paths of a `BatchedNetwork` are those inside it.
        x: The batch.

    Returns:
        {path of the layer in the network: array of any shape}, in the order of the computation.

    Raises:
        InputError: If the network has no layers of these kinds.

    Example:
        >>> import numpy as np
        >>> from dynascope.networks import MLP
        >>> {name: each.shape for name, each in layer_outputs(MLP((3, 8, 2)), np.ones((5, 3))).items()}
        {'weights.0': (5, 8), 'weights.1': (5, 2)}
    """
    mapped = isinstance(network, BatchedNetwork)
    inner, over = (network.network, jax.vmap) if mapped else (network, _unchanged)
    if hasattr(inner, "preactivations"):
        return {f"weights.{layer}": each for layer, each in enumerate(over(inner.preactivations)(x))}
    if isinstance(inner, DeepLinear):
        products = list(itertools.accumulate(inner.weights, jnp.matmul, initial=x))[1:]
        return {f"weights.{layer}": each for layer, each in enumerate(products)}
    if isinstance(inner, OneHiddenLayer):
        return {"first": x @ inner.first, "second": inner(x)}
    if any(map(_is_layer, jax.tree.leaves(inner, is_leaf=_is_layer))):
        return _named_outputs(inner, over, x)
    if hasattr(inner, "features"):
        return {"features": over(inner.features)(x), "outputs": over(inner)(x)}
    raise InputError(
        f"the {type(inner).__name__} has no layers whose outputs can be read",
        argument="network",
        value=type(inner).__name__,
        remedy="give an MLP, an equinox module with Linear, Conv or Embedding layers, or a network with features",
    )


class _NamedLayer(eqx.Module):
    """A layer whose outputs have a name in the traced program."""

    layer: Any
    name: str = eqx.field(static=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return checkpoint_name(self.layer(*args, **kwargs), self.name)

    def __getattr__(self, attribute: str) -> Any:
        if attribute == "layer":
            raise AttributeError(attribute)
        return getattr(self.layer, attribute)


def _unchanged(function: Any) -> Any:
    return function


def _is_layer(part: Any) -> bool:
    return isinstance(part, _LAYERS)


def _named_outputs(network: Any, over: Callable[[Any], Any], x: Any) -> dict[str, Any]:
    """Trace the network with named layers, and evaluate the program up to the named arrays."""

    def named(path: Any, part: Any) -> Any:
        return _NamedLayer(part, jax.tree_util.keystr(path, simple=True, separator=".")) if _is_layer(part) else part

    weights, frame = eqx.partition(
        jax.tree_util.tree_map_with_path(named, network, is_leaf=_is_layer), eqx.is_inexact_array
    )

    # Arrays stored while tracing would leak from the maps over samples inside the network. Without `jit`, all layers
    # are equations of the outermost program.
    def applied(weights: Any, x: Any) -> Any:
        return over(eqx.combine(weights, frame))(x)

    with jax.disable_jit():
        program = jax.make_jaxpr(applied)(weights, x)
    jaxpr, found = program.jaxpr, {}
    for equation in jaxpr.eqns:
        if equation.primitive.name == "name":
            name = call = equation.params["name"]
            number = 1
            while call in found:
                number += 1
                call = f"{name}#{number}"
            found[call] = equation.outvars[0]
    names = DebugInfo("layer outputs", "layer outputs", ("",) * len(jaxpr.invars), ("",) * len(found))
    outputs = jaxpr.replace(outvars=list(found.values()), debug_info=names)
    values = jaxpr_as_fun(ClosedJaxpr(outputs, program.consts))(*jax.tree.leaves((weights, x)))
    return dict(zip(found, values, strict=True))
