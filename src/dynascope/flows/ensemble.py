"""What every flow shares: the members of an ensemble, the loss they descend, and the record they leave."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jax import Array
from jaxtyping import Float

from dynascope.errors import InputError, require
from dynascope.record import DIMENSIONS, make_record
from dynascope.tasks.task import Task

__all__ = ["Ensemble", "Statistics", "check_statistics", "gather", "measure", "squared_loss"]

Statistics = tuple[tuple[str, Callable[[Any], Any], tuple[str, ...]], ...]

_TAKEN = {"loss", "stop_time", "stop_reason", *DIMENSIONS}


class Ensemble(eqx.Module):
    """Networks of one structure on one task, each with its initial weights and its learning rate.

    Attributes:
        weights: Initial weights; with a leading axis over members if there are dimensions.
        rates: Learning rate, one number or one for each weight array; with the same leading axis.
        frame: The network without its weights.
        inputs: x, shape (n, d), in the precision of the weights.
        targets: y, shape (n, c).
        dimensions: Labels of the members along `seed`, `scale` and `learning_rate`, whichever vary, in this order;
            the last varies fastest.
    """

    weights: Any
    rates: Any
    frame: Any
    inputs: Float[Array | np.ndarray, "n d"]
    targets: Float[Array | np.ndarray, "n c"]
    dimensions: dict[str, np.ndarray]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of members along each dimension; empty for a single network."""
        return tuple(len(labels) for labels in self.dimensions.values())

    def precision(self) -> contextlib.AbstractContextManager:
        """Context in which JAX keeps the precision of the weights."""
        return jax.enable_x64(True) if self.inputs.dtype == np.float64 else contextlib.nullcontext()

    def loss(self, weights: Any) -> Float[Array, ""]:
        """L of one member with the given weights."""
        return squared_loss(eqx.combine(weights, self.frame), self.inputs, self.targets)

    def run(self, member: Callable[[Any, Any], Any]) -> Any:
        """Apply a function of (weights, rates) to every member, batched."""
        return (jax.vmap(member) if self.dimensions else member)(self.weights, self.rates)

    def each_rate(self, weights: Any, rates: Any) -> Any:
        """One learning rate for each weight array of a member."""
        return jax.tree.map(lambda rate, part: jax.tree.map(lambda _: rate, part), rates, weights)

    def label(self, member: int) -> str:
        """Where a member stands, as in "seed 3, scale 0.1"."""
        places = np.unravel_index(member, self.shape)
        return ", ".join(
            f"{name} {labels[place]:g}" for (name, labels), place in zip(self.dimensions.items(), places, strict=True)
        )

    def networks(self, weights: Any) -> Any:
        """The network with the given weights, as NumPy arrays with the ensemble's dimensions in front."""
        shaped = jax.tree.map(lambda w: np.asarray(w).reshape(self.shape + w.shape[bool(self.shape) :]), weights)
        return eqx.combine(shaped, self.frame)

    def record(
        self,
        axis: tuple[str, np.ndarray],
        curves: Mapping[str, Any],
        statistics: Statistics,
        extra: Mapping[str, tuple[tuple[str, ...], Any]],
        task: Task,
        attributes: Mapping[str, Any],
    ) -> xr.Dataset:
        """The record of a run.

        Args:
            axis: Name and labels of the axis along which the curves run.
            curves: `loss` and each statistic, with shape (members, axis, …), or (axis, …) without dimensions.
            statistics: What the curves are.
            extra: Further variables, complete.
            task: The task that was learned.
            attributes: What the flow says of itself.
        """
        members = tuple(self.dimensions)
        names = {"feature": task.feature_names, "target": task.target_names}
        coordinates: dict[str, Any] = {**self.dimensions, axis[0]: axis[1]}
        variables: dict[str, tuple[tuple[str, ...], Any]] = dict(extra)
        for name, _, dimensions in (("loss", None, ()), *statistics):
            values = np.asarray(curves[name])
            values = values.reshape(self.shape + values.shape[bool(self.shape) :])
            own = values.shape[len(self.shape) + 1 :]
            require(
                len(own) == len(dimensions),
                f"the statistic {name!r} has shape {own} and the dimensions {dimensions}",
                argument="statistics",
                value=name,
                remedy="name each of its axes",
            )
            variables[name] = ((*members, axis[0], *dimensions), values)
            for dimension, length in zip(dimensions, own, strict=True):
                labels = np.array(names.get(dimension, ()))
                coordinates.setdefault(dimension, labels if len(labels) == length else np.arange(length))
        network = eqx.combine(self.weights, self.frame)
        return make_record(
            variables, coordinates, attributes={"network": type(network).__name__, **task.attributes(), **attributes}
        )


def squared_loss(network: Any, inputs: Array | np.ndarray, targets: Array | np.ndarray) -> Float[Array, ""]:
    """L = ½ E‖f(x) − y‖²: mean over samples, sum over outputs.

    Raises:
        InputError: The network does not map the inputs (n, d) to outputs of the shape (n, c) of the targets.
    """
    remedy = f"pass a function of a batch of shape {inputs.shape} with outputs of shape {targets.shape}"
    try:
        outputs = network(inputs)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the network cannot be applied to the inputs ({str(error).splitlines()[0].rstrip('.')})",
            argument="network",
            value=type(network).__name__,
            remedy=remedy,
        ) from error
    require(
        jnp.shape(outputs) == targets.shape,
        f"the network's outputs have shape {jnp.shape(outputs)}",
        argument="network",
        value=jnp.shape(outputs),
        remedy=remedy,
    )
    return jnp.sum((outputs - targets) ** 2) / (2 * len(inputs))


def measure(ensemble: Ensemble, weights: Any, statistics: Statistics) -> dict[str, Array]:
    """`loss` and each statistic of one member with the given weights."""
    network = eqx.combine(weights, ensemble.frame)
    values = {name: jnp.asarray(function(network)) for name, function, _ in statistics}
    return {"loss": ensemble.loss(weights), **values}


def check_statistics(statistics: Mapping[str, tuple[Callable[[Any], Any], Sequence[str]]] | None) -> Statistics:
    """The statistics as a hashable tuple, so that a program compiled for them is found again.

    Raises:
        InputError: A name that records use otherwise, or an unknown dimension.
    """
    checked = tuple((name, function, tuple(dimensions)) for name, (function, dimensions) in (statistics or {}).items())
    reserved = {"time", "step", "seed", "scale", "learning_rate"}
    for name, _, dimensions in checked:
        require(
            name not in _TAKEN,
            f"a statistic is called {name!r}",
            argument="statistics",
            value=name,
            remedy="choose a name that records do not use",
        )
        require(
            all(dimension in DIMENSIONS and dimension not in reserved for dimension in dimensions),
            f"the statistic {name!r} has the dimensions {dimensions}",
            argument="statistics",
            value=name,
            remedy=f"use {', '.join(sorted(DIMENSIONS.keys() - reserved))}; time and members are added",
        )
    return checked


def gather(
    network: Any,
    task: Task,
    scale: float | Sequence[float] | np.ndarray,
    learning_rate: float | Sequence[float] | np.ndarray | Mapping[str, float],
) -> Ensemble:
    """All combinations of networks, scales and learning rates.

    Args:
        network: One module, or several of the same structure.
        task: What they learn.
        scale: Factor, or factors, on the weights.
        learning_rate: Rate, or rates, or one rate for each named weight array.

    Raises:
        InputError: Networks that differ in more than their weights, weights that are not finite real numbers of one
            precision, a scale or rate that is not positive, or a name that is no weight of the network.
    """
    networks = tuple(network) if isinstance(network, list | tuple) else (network,)
    require(len(networks) > 0, "there is no network", argument="network", value=0, remedy="give at least one")
    parts = [eqx.partition(each, eqx.is_inexact_array) for each in networks]
    frame = parts[0][1]
    shapes = [jax.tree.map(np.shape, weights) for weights, _ in parts]
    alike = all(
        jax.tree.structure(parts[0][0]) == jax.tree.structure(weights)
        and shapes[0] == shape
        and bool(eqx.tree_equal(frame, other))
        for (weights, other), shape in zip(parts, shapes, strict=True)
    )
    require(alike, "the networks differ in structure", argument="network", remedy="let only their weights differ")
    dtype = _precision(parts)

    dimensions: dict[str, np.ndarray] = {}
    if isinstance(network, list | tuple):
        dimensions["seed"] = np.arange(len(networks))
    scales = _positive("scale", scale, dimensions)
    named_rates = isinstance(learning_rate, Mapping)
    rates = np.ones(1) if named_rates else _positive("learning_rate", learning_rate, dimensions)

    members = list(itertools.product(range(len(networks)), scales, rates))
    weights = jax.tree.map(
        lambda *leaves: np.stack([np.asarray(leaves[seed]) * dtype.type(factor) for seed, factor, _ in members]),
        *(weights for weights, _ in parts),
    )
    finite = all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(weights))
    require(finite, "the weights are not finite", argument="network", remedy="choose another initialisation or scale")
    if named_rates:
        by_name = _named_rates(parts[0][0], learning_rate)
        all_rates = jax.tree.map(lambda rate: np.full(len(members), rate, dtype), by_name)
    else:
        all_rates = np.array([rate for _, _, rate in members], dtype)
    if not dimensions:
        weights, all_rates = jax.tree.map(lambda leaf: leaf[0], (weights, all_rates))
    return Ensemble(weights, all_rates, frame, task.inputs.astype(dtype), task.targets.astype(dtype), dimensions)


def _precision(parts: list[tuple[Any, Any]]) -> np.dtype:
    dtypes = {np.dtype(leaf.dtype) for weights, _ in parts for leaf in jax.tree.leaves(weights)}
    require(
        len(dtypes) == 1 and dtypes <= {np.dtype(np.float32), np.dtype(np.float64)},
        f"the weights of the network have the types {sorted(str(dtype) for dtype in dtypes)}",
        argument="network",
        value=sorted(str(dtype) for dtype in dtypes),
        remedy="give all weights as float64 or all as float32 arrays",
    )
    return dtypes.pop()


def _positive(name: str, values: Any, dimensions: dict[str, np.ndarray]) -> np.ndarray:
    array = np.asarray(values, dtype=np.float64)
    require(
        array.ndim <= 1 and array.size > 0 and bool(np.all(np.isfinite(array) & (array > 0))),
        f"{name} is {values}",
        argument=name,
        value=values,
        remedy="give a finite positive number, or a sequence of them",
    )
    if array.ndim == 1:
        dimensions[name] = array
    return np.atleast_1d(array)


def _named_rates(weights: Any, rates: Mapping[str, float]) -> Any:
    leaves, structure = jax.tree_util.tree_flatten_with_path(weights)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    for key, rate in rates.items():
        require(
            any(_within(name, key) for name in names),
            f"learning_rate names {key!r}",
            argument="learning_rate",
            value=key,
            remedy=f"name weights of the network: {', '.join(names)}",
        )
        _positive("learning_rate", float(rate), {})

    def rate_of(name: str) -> float:
        keys = [key for key in rates if _within(name, key)]
        require(
            len(keys) > 0,
            f"learning_rate has none for {name!r}",
            argument="learning_rate",
            value=name,
            remedy=f"give a rate for each of {', '.join(names)}",
        )
        return float(rates[max(keys, key=len)])

    return jax.tree.unflatten(structure, [rate_of(name) for name in names])


def _within(name: str, key: str) -> bool:
    return name == key or name.startswith(f"{key}.")
