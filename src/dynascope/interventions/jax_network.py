"""Reads an equinox module for pruning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Jaxpr

from dynascope.compilation import filter_jit
from dynascope.errors import InputError
from dynascope.interventions.batched_network import accepts, maps_samples
from dynascope.interventions.prunable import Flow, require_classes, require_pairs, unprotected
from dynascope.networks.batch_normalisation import RunningStatistics, trained_weights
from dynascope.symmetry.program_loops import bodies
from dynascope.training import Loss
from dynascope.training.batches import Batch
from dynascope.training.losses import losses
from dynascope.validation import require, require_finite_values

__all__ = ["JaxNetwork"]

# Primitives φ of JAX with φ(z) ≠ φ'(z) z, under the names of the activations that use them.
_INHOMOGENEOUS = {
    **{"tanh": "tanh", "logistic": "sigmoid", "erf": "erf", "exp": "exp", "exp2": "exp2", "expm1": "expm1"},
    **{"log": "log", "log1p": "log1p", "sin": "sin", "cos": "cos", "atan2": "atan2"},
    **{"integer_pow": "integer power", "square": "square", "pow": "power"},
}


class JaxNetwork:
    """Reads an equinox module, or any other callable tree, for pruning; an instance of `Prunable`.

    Args:
        network: The module.
        protect: Names of layers that are not pruned.
        input_shape: Shape of one sample, or None to infer it from the network or the data.
        data: Inputs and targets, or None.
    """

    def __init__(self, network: Any, protect: Sequence[str], input_shape: Sequence[int] | None, data: Any):
        self._trained, self._frame = eqx.partition(network, eqx.is_inexact_array)
        named, self._structure = jax.tree_util.tree_flatten_with_path(self._trained)
        learned = {id(each) for each in jax.tree.leaves(trained_weights(network))}
        self._leaves = [np.asarray(leaf) for _, leaf in named]
        for leaf in self._leaves:
            require_finite_values("network", leaf)
        paths = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in named]
        candidates = [
            name for name, (_, leaf) in zip(paths, named, strict=True) if leaf.ndim > 1 and id(leaf) in learned
        ]
        self.names = unprotected(candidates, protect)
        self._places = [paths.index(name) for name in self.names]
        self.weights = [self._leaves[place].astype(np.float64) for place in self._places]
        self.unit_axes = [_unit_axis(network, named[place][0]) for place in self._places]
        self._data = None if data is None else _batch(data)
        shape = _input_shape(network, self._leaves, input_shape, self._data)
        self._ones = np.ones((1, *shape))
        self._flowing = [np.abs(leaf).astype(np.float64) for leaf in self._without_running_means(network)]
        self._mapped = _is_mapped(network, self._ones)
        if self._data is not None and self._data.targets.dtype.kind == "i":
            call, _ = self._program
            require_classes(self._data.targets, jax.eval_shape(call, self._leaves, self._data.inputs[:1]).shape[-1])

    def flow(self, weights: Sequence[np.ndarray]) -> Flow:
        """Synaptic flow in evaluation mode, with running means of zero, for nonnegative weights of the layers."""
        with jax.enable_x64(True):
            total, gradient = jax.device_get(_flow(list(weights), self._flowing, self._ones, *self._program))
        return Flow(float(total), gradient)

    def source(self, weights: Sequence[np.ndarray]) -> float:
        """Flow from the biases plus ⟨∂R/∂x, x⟩."""
        with jax.enable_x64(True):
            return float(_source(list(weights), self._flowing, self._ones, *self._program))

    def gradient(self, weights: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Gradient of the mean loss on the data."""
        with jax.enable_x64(True):
            return jax.device_get(_gradient(list(weights), self._wide, self._data, *self._program))

    def curvature_product(self, weights: Sequence[np.ndarray], temperature: float) -> list[np.ndarray]:
        """Product of the Hessian and the gradient of the mean loss of outputs divided by a temperature."""
        with jax.enable_x64(True):
            found = _curvature_product(list(weights), self._wide, self._data, temperature, *self._program)
            return jax.device_get(found)

    def inhomogeneous(self) -> tuple[str, ...]:
        """Names of operations of the program that are not homogeneous."""
        call = self._program[0]
        program = jax.make_jaxpr(lambda leaves, x: call(leaves, x))(self._leaves, self._ones.astype(np.float32))
        return tuple(dict.fromkeys(_operations(program.jaxpr)))

    def result(self, masks: Sequence[np.ndarray]) -> tuple[Any, Any]:
        """The mask as a tree, and the network with pruned weights set to zero."""
        every = [np.ones(leaf.shape, bool) for leaf in self._leaves]
        pruned = list(jax.tree.leaves(self._trained))
        for place, mask in zip(self._places, masks, strict=True):
            every[place], pruned[place] = mask, pruned[place] * mask
        mask = jax.tree.unflatten(self._structure, every)
        return mask, eqx.combine(jax.tree.unflatten(self._structure, pruned), self._frame)

    @property
    def _wide(self) -> list[np.ndarray]:
        return [leaf.astype(np.float64) for leaf in self._leaves]

    @property
    def _program(self) -> tuple[Callable[[Any, Any], Any], tuple[int, ...]]:
        return _Call(self._structure, self._frame, self._mapped), tuple(self._places)

    def _without_running_means(self, network: Any) -> list[np.ndarray]:
        def centred(part: Any) -> Any:
            if isinstance(part, RunningStatistics):
                return RunningStatistics(np.zeros_like(part.mean), part.variance)
            return part

        tree = jax.tree.map(centred, network, is_leaf=lambda part: isinstance(part, RunningStatistics))
        return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_inexact_array))]


class _Call(eqx.Module):
    """The network as a function of its floating-point arrays and a batch."""

    structure: Any = eqx.field(static=True)
    frame: Any
    mapped: bool = eqx.field(static=True)

    def __call__(self, leaves: Any, x: Any) -> Any:
        network = eqx.combine(jax.tree.unflatten(self.structure, leaves), self.frame)
        return jax.vmap(network)(x) if self.mapped else network(x)


def _with(leaves: Sequence[Any], weights: Sequence[Any], places: Sequence[int]) -> list[Any]:
    found = list(leaves)
    for place, weight in zip(places, weights, strict=True):
        found[place] = weight
    return found


@filter_jit
def _flow(weights: Any, leaves: Any, ones: Any, call: Any, places: tuple[int, ...]) -> Any:
    return jax.value_and_grad(lambda weights: jnp.sum(call(_with(leaves, weights, places), ones)))(weights)


@filter_jit
def _source(weights: Any, leaves: Any, ones: Any, call: Any, places: tuple[int, ...]) -> Any:
    def total(x: Any) -> Any:
        return jnp.sum(call(_with(leaves, weights, places), x))

    return total(0 * ones) + jnp.sum(jax.grad(total)(ones) * ones)


@filter_jit
def _gradient(weights: Any, leaves: Any, data: Any, call: Any, places: tuple[int, ...]) -> Any:
    return jax.grad(_mean_loss)(weights, leaves, data, 1.0, call, places)


@filter_jit
def _curvature_product(
    weights: Any, leaves: Any, data: Any, temperature: Any, call: Any, places: tuple[int, ...]
) -> Any:
    def slope(weights: Any) -> Any:
        return jax.grad(_mean_loss)(weights, leaves, data, temperature, call, places)

    return jax.jvp(slope, (weights,), (slope(weights),))[1]


def _mean_loss(weights: Any, leaves: Any, data: Any, temperature: Any, call: Any, places: tuple[int, ...]) -> Any:
    outputs = call(_with(leaves, weights, places), data.inputs) / temperature
    labels = jnp.issubdtype(data.targets.dtype, jnp.integer)
    return jnp.mean(losses(Loss("cross_entropy" if labels else "squared"), outputs, data))


def _batch(data: Any) -> Batch:
    """Inputs and targets from a task or a pair of arrays; integer targets are class labels."""
    if hasattr(data, "inputs"):
        data = data.inputs, data.labels if hasattr(data, "labels") else data.targets
    require(
        isinstance(data, list | tuple) and len(data) == 2,
        "data is not a pair of inputs and targets",
        argument="data",
        value=type(data).__name__,
        remedy="give a task, or (inputs, targets) with one row per sample; integer targets are class labels",
    )
    inputs, targets = np.asarray(data[0], np.float64), np.asarray(data[1])
    require_pairs(inputs, targets)
    require_finite_values("data", inputs)
    return Batch(inputs, targets.astype(int if targets.dtype.kind in "iub" else np.float64))


def _input_shape(network: Any, leaves: Sequence[np.ndarray], given: Sequence[int] | None, data: Any) -> tuple[int, ...]:
    """Shape of one sample: given, or that of the data or of the network's images, or the width of the first matrix."""
    if given is not None:
        return tuple(given)
    if data is not None:
        return data.inputs.shape[1:]
    if (image := getattr(network, "image_shape", None)) is not None:
        return (int(np.prod(image)),)
    matrix = next((leaf for leaf in leaves if leaf.ndim == 2), None)
    for width in () if matrix is None or any(leaf.ndim > 2 for leaf in leaves) else matrix.shape:
        if accepts(network, (1, width)) or accepts(network, (width,)):
            return (width,)
    raise InputError(
        "the shape of an input is unknown",
        argument="input_shape",
        remedy="give the shape of one sample, such as input_shape=(784,)",
    )


def _is_mapped(network: Any, ones: np.ndarray) -> bool:
    """Whether the network maps single samples instead of batches."""
    mapped = maps_samples(network, ones.shape)
    require(
        mapped is not None,
        f"the network cannot be applied to a sample of shape {ones.shape[1:]}",
        argument="input_shape",
        value=ones.shape[1:],
        remedy="give the shape of one sample, and a network that maps a batch or a sample to its outputs",
    )
    return bool(mapped)


def _unit_axis(network: Any, path: Any) -> int:
    """The axis of output units: the first for layers of equinox, the last for all others."""
    owner = network
    for key in path[:-1]:
        owner = getattr(owner, key.name) if hasattr(key, "name") else owner[getattr(key, "idx", getattr(key, "key", 0))]
    return 0 if isinstance(owner, eqx.nn.Linear | eqx.nn.Conv) else -1


def _operations(program: Jaxpr) -> Iterator[str]:
    for equation in program.eqns:
        if equation.primitive.name in _INHOMOGENEOUS:
            yield _INHOMOGENEOUS[equation.primitive.name]
        for body in bodies(equation):
            yield from _operations(body)
