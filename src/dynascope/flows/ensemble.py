"""Ensembles of networks: construction, parallel execution and records."""

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
from dynascope.flows.recorded_curves import axis_labels, curve_variables
from dynascope.networks.batch_normalisation import running_statistics, trained_weights
from dynascope.protocols import Learnable, Network
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["Ensemble", "Rates", "gather"]

Rates: TypeAlias = PositiveFloat | Sequence[float] | np.ndarray | Mapping[str, float]

_compiled: set[Any] = set()  # arguments for which programs have been compiled

_ROUND_OFF = 4096  # in units of machine precision: rounding of a few hundred terms of mixed signs


@dataclasses.dataclass(frozen=True)
class Ensemble:
    """Networks with the same structure and task, but different initial weights and learning rates.

    Attributes:
        task: The task.
        objective: The loss.
        weights: Initial weights, with a leading axis over members unless there is a single network.
        rates: Learning rates: one number, or one per weight array, with the same leading axis.
        dimensions: Labels of the members along `seed`, `scale` and `learning_rate`, in this order; a dimension is
            omitted if it does not vary. The last dimension varies fastest.
        settings: The scale and the learning rate, if all members share them.
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
        """Context in which JAX uses the precision of the weights."""
        return jax.enable_x64(True) if self.dtype == np.float64 else contextlib.nullcontext()

    def run(self, program: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
        """Apply a compiled program to all members in parallel, with one part of the ensemble per core.

        Args:
            program: Function of (objective, weights, rates, *arguments).
            arguments: Arguments that all members share: arrays and static arguments.

        Returns:
            The results as NumPy arrays, with the ensemble dimensions first.
        """

        def run_part(part: Any) -> dict[str, Any]:
            return jax.device_get(program(self.objective, *part, *arguments))

        parts = self.parts((self.weights, self.rates))
        return self.joined(self.together(program, run_part, parts, (self.objective, *arguments)))

    def parts(self, tree: Any) -> list[Any]:
        """Split arrays over members into one part per core; a single network is a single part."""
        if not self.dimensions:
            return [tree]
        members = math.prod(self.shape)
        cores = os.cpu_count() or 1 if jax.default_backend() == "cpu" else 1
        return [members_of(tree, rows) for rows in equal_parts(members, min(cores, members))]

    def joined(self, results: Sequence[Any]) -> Any:
        """Join the results of all parts as NumPy arrays, with the ensemble dimensions first."""
        if not self.dimensions:
            return jax.tree.map(np.asarray, results[0])
        joined = jax.tree.map(lambda *leaves: np.concatenate(leaves)[: math.prod(self.shape)], *results)
        return jax.tree.map(lambda leaf: leaf.reshape(*self.shape, *leaf.shape[1:]), joined)

    def together(self, program: Any, run_part: Callable[[Any], Any], parts: Sequence[Any], others: Any) -> list[Any]:
        """Run a program on all parts in parallel.

        Args:
            program: The compiled program.
            run_part: Function that runs the program on a part.
            parts: Arguments that differ between parts but have equal shapes.
            others: All other arguments.
        """

        def run(part: Any) -> Any:
            # The context applies to a single thread.
            with self.precision():
                return run_part(part)

        if len(parts) == 1:
            return [run(parts[0])]
        # Parallel threads would each compile a new program, so the first part runs before the others.
        leaves, structure = jax.tree.flatten((others, parts[0]))
        key = (program, structure, *((x.shape, x.dtype) if eqx.is_array(x) else x for x in leaves))
        alone = 0 if key in _compiled else 1
        results = [run(part) for part in parts[:alone]]
        with ThreadPoolExecutor(len(parts)) as pool:
            results += pool.map(run, parts[alone:])
        _compiled.add(key)
        return results

    def named(self, failed: np.ndarray) -> str:
        """Describe failed members, e.g. " for 1 of 4 members (seed 3, scale 0.1)"; empty for a single network."""
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
        """Make a network with the given weights."""
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
        """Make the record of a run.

        Args:
            axis: Name and labels of the axis of the curves.
            curves: `loss` and each statistic; their dimensions are those of the ensemble, followed by the axis.
            axes: Names of the additional dimensions of each statistic.
            extra: Additional variables, with all their dimensions.
            attributes: Attributes of the flow.
            further: Labels of additional dimensions.

        Raises:
            InputError: If a statistic has more or fewer dimensions than names.
        """
        curves = {"loss": _without_round_off(curves["loss"]), **{name: curves[name] for name in axes}}
        variables = {**extra, **curve_variables(curves, (*self.dimensions, axis[0]), axes)}
        given: dict[str, Any] = {**self.dimensions, axis[0]: axis[1], **(further or {})}
        coordinates = axis_labels(self.task, variables) | given
        attributes = {
            "network": type(self.network(self.weights)).__name__,
            **self.task.attributes(),
            **attributes,
            **self.settings,
        }
        return make_record(variables, coordinates, attributes=attributes)


def _without_round_off(loss: np.ndarray) -> np.ndarray:
    """Set slightly negative losses, which arise from rounding in closed-form expectations, to zero."""
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
    """Make an ensemble of all combinations of networks, scales and learning rates.

    Args:
        network: One module, or several modules with the same structure.
        task: The task.
        scale: One or several factors by which the weights are multiplied.
        learning_rate: One or several rates, or a mapping from names of weight arrays to rates.

    Raises:
        InputError: If the networks differ in more than their weights, if the weights are not finite real numbers of one
            precision, if a scale or rate is not positive, or if a rate is given for a name that is not a weight of the
            network.
    """
    several = isinstance(network, list | tuple)
    networks = tuple(network) if several else (network,)
    require(len(networks) > 0, "the list of networks is empty", argument="network", value=0, remedy="give at least one")
    # Ensembles can contain thousands of references to the same initial network.
    distinct = {id(each): each for each in networks}
    place = {own: number for number, own in enumerate(distinct)}
    parts = [eqx.partition(each, eqx.is_inexact_array) for each in distinct.values()]
    dtype = _precision([weights for weights, _ in parts])
    alike = all(_same_structure(part, parts[0]) for part in parts)
    require(
        alike,
        "the networks differ in structure",
        argument="network",
        remedy="give networks that differ only in their weights",
    )

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
    require(
        finite,
        "the network has weights that are not finite",
        argument="network",
        remedy="choose another initialisation or scale",
    )
    all_rates = jax.tree.map(lambda own: np.array([own * rate for _, _, rate in members], dtype), by_name)
    if not dimensions:
        weights, all_rates = members_of((weights, all_rates), 0)
    average = (
        Samples(task.inputs.astype(dtype, copy=False), task.targets.astype(dtype, copy=False))
        if isinstance(task, Task)
        else task
    )
    return Ensemble(task, Objective(parts[0][1], average), weights, all_rates, dimensions, settings)


def _same_structure(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    same_weights = jax.tree.structure(one[0]) == jax.tree.structure(other[0])
    same_shapes = [leaf.shape for leaf in jax.tree.leaves(one[0])] == [leaf.shape for leaf in jax.tree.leaves(other[0])]
    return same_weights and same_shapes and bool(eqx.tree_equal(one[1], other[1]))


def _precision(weights: list[Any]) -> np.dtype:
    found = {str(leaf.dtype) for leaf in jax.tree.leaves(weights)}
    require(
        len(found) == 1 and found <= {"float32", "float64"},
        f"the network has weights of type {' and '.join(sorted(found))}" if found else "the network has no weights",
        argument="network",
        value=sorted(found),
        remedy="give a module whose weights are all float32 or all float64 arrays",
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
        remedy="give a finite positive number, or a sequence of such numbers",
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
            f"learning_rate contains {key!r}, which is not the name of a weight",
            argument="learning_rate",
            value=key,
            remedy=f"choose from {listed}",
        )
        _positive("learning_rate", [rate], {}, {})

    def rate_of(name: str) -> float:
        keys = [key for key in rates if _within(name, key)]
        require(
            len(keys) > 0,
            f"learning_rate has no rate for {name!r}",
            argument="learning_rate",
            value=name,
            remedy=f"give rates for {listed}",
        )
        return float(rates[max(keys, key=len)])

    return jax.tree.unflatten(structure, [rate_of(name) for name in names])


def _within(name: str, key: str) -> bool:
    return name == key or name.startswith(f"{key}.")
