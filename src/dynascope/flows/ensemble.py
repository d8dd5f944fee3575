"""The members of an ensemble: how they are gathered, run together, and recorded."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeAlias

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from dynascope.flows.blocks import equal_parts, members_of
from dynascope.flows.objective import Objective, Samples
from dynascope.networks.batch_normalisation import running_statistics, trained_weights
from dynascope.protocols import Learnable, Network
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["Ensemble", "Rates", "gather"]

Rates: TypeAlias = PositiveFloat | Sequence[float] | np.ndarray | Mapping[str, float]

_compiled: set[Any] = set()  # what programs have been compiled for

_ROUND_OFF = 4096  # in units of the precision, which some hundred terms of mixed signs may add up to


@dataclasses.dataclass(frozen=True)
class Ensemble:
    """Networks of one structure on one task, each with its initial weights and its learning rate.

    Attributes:
        task: What they learn.
        objective: The loss that all descend.
        weights: Initial weights; with a leading axis over members if there are dimensions.
        rates: Learning rate, one number or one for each weight array; with the same leading axis.
        dimensions: Labels of the members along `seed`, `scale` and `learning_rate`, whichever vary, in this order;
            the last varies fastest.
        settings: The scale and the learning rate, whichever are common to all members.
    """

    task: Learnable
    objective: Objective
    weights: Any
    rates: Any
    dimensions: dict[str, np.ndarray]
    settings: dict[str, Any]

    @property
    def dtype(self) -> np.dtype:
        """Precision of the weights."""
        return jax.tree.leaves(self.weights)[0].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of members along each dimension; empty for a single network."""
        return tuple(len(labels) for labels in self.dimensions.values())

    def precision(self) -> contextlib.AbstractContextManager:
        """Context in which JAX keeps the precision of the weights."""
        return jax.enable_x64(True) if self.dtype == np.float64 else contextlib.nullcontext()

    def run(self, program: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
        """Apply a compiled program to all members, one part of them on each core at the same time.

        Args:
            program: Function of (objective, weights, rates, *arguments).
            arguments: Common to all members; arrays, and whatever the program is compiled for.

        Returns:
            The results as NumPy arrays, with the ensemble's dimensions in front.
        """

        def run_part(part: Any) -> dict[str, Any]:
            return jax.device_get(program(self.objective, *part, *arguments))

        parts = self.parts((self.weights, self.rates))
        return self.joined(self.together(program, run_part, parts, (self.objective, *arguments)))

    def parts(self, tree: Any) -> list[Any]:
        """What belongs to the members, one part of them for each core; all for a single network."""
        if not self.dimensions:
            return [tree]
        members = math.prod(self.shape)
        cores = os.cpu_count() or 1 if jax.default_backend() == "cpu" else 1
        return [members_of(tree, rows) for rows in equal_parts(members, min(cores, members))]

    def joined(self, results: Sequence[Any]) -> Any:
        """Results of the parts as NumPy arrays, with the ensemble's dimensions in front."""
        if not self.dimensions:
            return jax.tree.map(np.asarray, results[0])
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: math.prod(self.shape)], *results)
        return jax.tree.map(lambda leaf: leaf.reshape(*self.shape, *leaf.shape[1:]), joined)

    def together(self, program: Any, run_part: Callable[[Any], Any], parts: Sequence[Any], others: Any) -> list[Any]:
        """Run a program on all parts at the same time.

        Args:
            program: What is compiled.
            run_part: Runs it on a part.
            parts: Arguments that differ between parts, of the same shapes.
            others: All other arguments.
        """

        def run(part: Any) -> Any:
            # The context holds for one thread only.
            with self.precision():
                return run_part(part)

        if len(parts) == 1:
            return [run(parts[0])]
        # Threads that ask for a new program would compile it once each, so the first part has to run before the others.
        leaves, structure = jax.tree.flatten((others, parts[0]))
        key = (program, structure, *((x.shape, x.dtype) if eqx.is_array(x) else x for x in leaves))
        alone = 0 if key in _compiled else 1
        results = [run(part) for part in parts[:alone]]
        with ThreadPoolExecutor(len(parts)) as pool:
            results += pool.map(run, parts[alone:])
        _compiled.add(key)
        return results

    def named(self, failed: np.ndarray) -> str:
        """Which members failed, as in " for 1 of 4 members (seed 3, scale 0.1)"; empty for a single network."""
        if not self.dimensions:
            return ""
        names = []
        for member in failed[:5]:
            places = np.unravel_index(member, self.shape)
            labels = zip(self.dimensions, self.dimensions.values(), places, strict=True)
            names.append(", ".join(f"{name} {values[place]:g}" for name, values, place in labels))
        more = "; …" if len(failed) > 5 else ""
        return f" for {len(failed)} of {math.prod(self.shape)} members ({'; '.join(names)}{more})"

    def network(self, weights: Any) -> Any:
        """The network with the given weights."""
        return eqx.combine(weights, self.objective.frame)

    def record(
        self,
        axis: tuple[str, np.ndarray],
        curves: Mapping[str, np.ndarray],
        axes: Mapping[str, Sequence[str]],
        extra: Mapping[str, tuple[tuple[str, ...], Any]],
        attributes: Mapping[str, Any],
        further: Mapping[str, np.ndarray] | None = None,
    ) -> xr.Dataset:
        """The record of a run.

        Args:
            axis: Name and labels of the axis along which the curves run.
            curves: `loss` and each statistic, with the ensemble's dimensions, then the axis, in front.
            axes: Names of the further axes of the curves besides `loss`.
            extra: Further variables, complete.
            attributes: What the flow says of itself.
            further: Labels of further dimensions.

        Raises:
            InputError: A statistic whose value has another number of axes than it has names of dimensions.
        """
        names = {name: getattr(self.task, f"{name}_names", ()) for name in ("feature", "target")}
        first = {"mode": 1, "layer": 1}
        coordinates: dict[str, Any] = {**self.dimensions, axis[0]: axis[1], **(further or {})}
        variables = dict(extra)
        for name, dimensions in {"loss": (), **axes}.items():
            own_shape = curves[name].shape[len(self.dimensions) + 1 :]
            require(
                len(own_shape) == len(dimensions),
                f"the statistic {name!r} has shape {own_shape} and the dimensions {dimensions}",
                argument="statistics",
                value=name,
                remedy="name each of its axes",
            )
            values = _without_round_off(curves[name]) if name == "loss" else curves[name]
            variables[name] = ((*self.dimensions, axis[0], *dimensions), values)
        for dimensions, values in variables.values():
            # A number of axes that does not fit is refused below.
            for dimension, length in zip(dimensions, np.shape(values), strict=False):
                labels = np.array(names.get(dimension, ()))
                numbers = np.arange(length) + first.get(dimension, 0)
                coordinates.setdefault(dimension, labels if len(labels) == length else numbers)
        attributes = {
            "network": type(self.network(self.weights)).__name__,
            **self.task.attributes(),
            **attributes,
            **self.settings,
        }
        return make_record(variables, coordinates, attributes=attributes)


def _without_round_off(loss: np.ndarray) -> np.ndarray:
    """The loss with zero where a difference of large numbers, as an expectation in closed form is, rounds below it."""
    loss = np.asarray(loss)
    largest = np.max(np.abs(loss), axis=-1, keepdims=True, initial=0.0, where=np.isfinite(loss))
    least = -_ROUND_OFF * np.finfo(loss.dtype).eps * largest
    return np.where((loss < 0) & (loss >= least), 0.0, loss).astype(loss.dtype, copy=False)


def gather(
    task: Learnable,
    network: Network | Sequence[Network],
    scale: float | Sequence[float] | np.ndarray,
    learning_rate: Rates,
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
    several = isinstance(network, list | tuple)
    networks = tuple(network) if several else (network,)
    require(len(networks) > 0, "there is no network", argument="network", value=0, remedy="give at least one")
    # Thousands of runs on batches of their own begin with one and the same network.
    distinct = {id(each): each for each in networks}
    place = {own: number for number, own in enumerate(distinct)}
    parts = [eqx.partition(each, eqx.is_inexact_array) for each in distinct.values()]
    dtype = _precision([weights for weights, _ in parts])
    alike = all(_alike(part, parts[0]) for part in parts)
    require(alike, "the networks differ in structure", argument="network", remedy="let only their weights differ")

    dimensions: dict[str, np.ndarray] = {"seed": np.arange(len(networks))} if several else {}
    settings: dict[str, Any] = {}
    scales = _positive("scale", scale, dimensions, settings)
    if isinstance(learning_rate, Mapping):
        fixed = jax.tree.map(lambda _: 0.0, running_statistics(parts[0][0]))
        by_name = eqx.combine(_named_rates(trained_weights(parts[0][0]), learning_rate), fixed)
        settings["learning_rate"] = {name: float(rate) for name, rate in learning_rate.items()}
        rates = np.ones(1)
    else:
        by_name = 1.0
        rates = _positive("learning_rate", learning_rate, dimensions, settings)

    members = list(itertools.product([place[id(each)] for each in networks], scales, rates))

    def of_members(leaves: Sequence[Any], *, scaled: bool) -> np.ndarray:
        own = [dtype.type(factor) if scaled else dtype.type(1) for _, factor, _ in members]
        return np.stack([np.asarray(leaves[start]) * factor for (start, *_), factor in zip(members, own, strict=True)])

    weights = eqx.combine(
        jax.tree.map(lambda *each: of_members(each, scaled=True), *(trained_weights(one) for one, _ in parts)),
        jax.tree.map(lambda *each: of_members(each, scaled=False), *(running_statistics(one) for one, _ in parts)),
    )
    finite = all(bool(np.isfinite(leaf).all()) for leaf in jax.tree.leaves(weights))
    require(finite, "the weights are not finite", argument="network", remedy="choose another initialisation or scale")
    all_rates = jax.tree.map(lambda own: np.array([own * rate for _, _, rate in members], dtype), by_name)
    if not dimensions:
        weights, all_rates = members_of((weights, all_rates), 0)
    average = (
        Samples(task.inputs.astype(dtype, copy=False), task.targets.astype(dtype, copy=False))
        if isinstance(task, Task)
        else task
    )
    return Ensemble(task, Objective(parts[0][1], average), weights, all_rates, dimensions, settings)


def _alike(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    same_weights = jax.tree.structure(one[0]) == jax.tree.structure(other[0])
    same_shapes = [leaf.shape for leaf in jax.tree.leaves(one[0])] == [leaf.shape for leaf in jax.tree.leaves(other[0])]
    return same_weights and same_shapes and bool(eqx.tree_equal(one[1], other[1]))


def _precision(weights: list[Any]) -> np.dtype:
    found = {str(leaf.dtype) for leaf in jax.tree.leaves(weights)}
    require(
        len(found) == 1 and found <= {"float32", "float64"},
        f"the weights of the network have the types {', '.join(sorted(found)) or 'none'}",
        argument="network",
        value=sorted(found),
        remedy="give a module whose weights are all float64 or all float32 arrays",
    )
    return np.dtype(found.pop())


def _positive(name: str, values: Any, dimensions: dict[str, np.ndarray], settings: dict[str, Any]) -> np.ndarray:
    array = np.array(np.nan)
    with contextlib.suppress(TypeError, ValueError):
        array = np.asarray(values, dtype=np.float64)
    require(
        array.ndim <= 1 and array.size > 0 and bool(np.all(np.isfinite(array) & (array > 0))),
        f"{name} is {values}",
        argument=name,
        value=values,
        remedy="give a finite positive number, or a sequence of them",
    )
    kept: dict[str, Any] = dimensions if array.ndim else settings
    kept[name] = array if array.ndim else float(array)
    return np.atleast_1d(array)


def _named_rates(weights: Any, rates: Mapping[str, float]) -> Any:
    leaves, structure = jax.tree_util.tree_flatten_with_path(weights)
    names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in leaves]
    listed = ", ".join(names)
    for key, rate in rates.items():
        require(
            any(_within(name, key) for name in names),
            f"learning_rate names {key!r}",
            argument="learning_rate",
            value=key,
            remedy=f"name weights of the network: {listed}",
        )
        _positive("learning_rate", [rate], {}, {})

    def rate_of(name: str) -> float:
        keys = [key for key in rates if _within(name, key)]
        require(
            len(keys) > 0,
            f"learning_rate has none for {name!r}",
            argument="learning_rate",
            value=name,
            remedy=f"give a rate for each of {listed}",
        )
        return float(rates[max(keys, key=len)])

    return jax.tree.unflatten(structure, [rate_of(name) for name in names])


def _within(name: str, key: str) -> bool:
    return name == key or name.startswith(f"{key}.")
