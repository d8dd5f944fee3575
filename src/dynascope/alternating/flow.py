"""Alternating gradient flow: what a sum of small homogeneous neurons learns, in what order and when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import numpy as np
import xarray as xr

from dynascope.alternating.events import Event, listed
from dynascope.alternating.lockstep import run_together
from dynascope.alternating.phase_rules import PhaseRules
from dynascope.alternating.phases import OUT_OF_TIME, OUT_OF_WORK, Alternation
from dynascope.flows.blocks import working_memory
from dynascope.flows.objective import Objective
from dynascope.protocols import Average, Learnable, SumOfNeurons
from dynascope.results import Staircase, make_record, staircase_record
from dynascope.results import staircase_names as names
from dynascope.theory.domain import warn_of_large_scale
from dynascope.theory.papers import ALTERNATING
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["alternating_flow"]

_MEMORY = 2**30  # bytes that the intermediate results of a batch may take
_OF_EACH = (names.INITIAL_LOSS, "stopped", "complete")  # attributes of a member that are variables of an ensemble


def alternating_flow(
    task: Learnable,
    network: SumOfNeurons | Sequence[SumOfNeurons],
    *,
    scale: PositiveFloat | Sequence[PositiveFloat] | np.ndarray,
    normalised: bool = False,
    jumps: PositiveInt | None = None,
    duration: PositiveFloat | None = None,
    max_steps: PositiveInt = 20_000,
    operations: PositiveFloat | None = None,
    rules: PhaseRules | None = None,
) -> xr.Dataset:
    """Predict the staircase of a sum of homogeneous neurons trained from small initialisation.

    Alternates two phases. While a neuron is small it is *dormant*: the residual r = y − f(x) of the others is frozen,
    and the neuron follows its utility U(θ) = E⟨f(x; θ), r(x)⟩, θ' = ∇U(θ). Once the first dormant neuron reaches a
    threshold norm it is *active*; the active neurons then descend the loss by themselves until they rest, at once in
    comparison with the growth of the others. Nothing here depends on which network it is.

    Args:
        network: A sum of neurons (see `protocols.SumOfNeurons`) of degree κ ≥ 2, with its weights at unit scale; or a
            list of such networks that differ only in the weights of their neurons.
        task: Samples, or an expectation in closed form (see `tasks.Expectation`).
        scale: α, the factor on the weights at the start, below one, or several; beyond 0.3 with a warning. Lists of
            networks and of scales make an ensemble of all combinations, for which programs are compiled once;
            accelerators run them in batches.
        normalised: Whether to follow the homogeneity-normalised flow, in which neuron i has the rate ‖θ_i‖^(2−κ).
        jumps: Number of jumps after which to stop; None for all.
        duration: Gradient-flow time at which to stop; None for no limit.
        max_steps: Steps after which a phase is given up.
        operations: Floating-point operations, counted to within a factor of two or so, after which no further jump is
            looked for; None for no limit. Of an ensemble each member has as many.
        rules: The thresholds at which phases begin and end; by default `PhaseRules()`.

    Returns:
        A staircase record (see `results.staircase_record`), with times over the unit of `results.time_unit` as the
        accelerated ones. Over `jump` it has further `growth_rate` (κ times the utility at activation); `direction`
        (what is new in that of the first neuron activated, over `weight`); over `neuron`, whether it was `activated`
        and whether it `returned` to dormancy; `unstable_rate`, the fastest rate at which the active neurons leave the
        plateau after the jump by themselves, zero at a minimum. The attribute `stopped` says why the run ended,
        `complete` whether nothing is left to learn, `warnings` what limits it.

    Diagnostics. Degree 2: all neurons at one maximum of the utility arrive together, and one stands for all, as the
    others then find no utility in that direction; of ReLU neurons with one output none of them ever leaves. Degree
    above 2: the direction at activation, and the time, depend on the initial direction. Where the maxima form a
    manifold (frequencies with any phase), directions depend on the start, levels do not. A resting point of the active
    neurons may be a saddle of their loss; they then leave it at a rate that the Hessian tells, and this counts as a
    jump like any other. Neurons whose utility has no slope (dead units) never move; they are named in `warnings`.
    Directions are held to 1e-16, so a neuron that must leave an unstable direction to which it is closer than that, at
    scales far below 1e-8, leaves too early.

    Raises:
        InputError: The network is no sum of neurons of degree κ ≥ 2 or is not homogeneous, a neuron is zero, no neuron
            moves, or a number is outside its domain.

    References:
        Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks, arXiv:2506.06489.

    Example:
        >>> from dynascope.networks import DiagonalLinear
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2) * 2**0.5, [[2.0 * 2**0.5], [0.5 * 2**0.5]])
        >>> staircase = alternating_flow(task, DiagonalLinear(2), scale=1e-3)
        >>> staircase["loss_after"].to_numpy().round(3), staircase["accelerated_time"].to_numpy().round(2)
        (array([0.125, 0.   ]), array([0.53, 2.1 ]))
    """
    networks, scales, dimensions = _members(network, scale)
    warn_of_large_scale("alternating.alternating_flow", float(max(scales)))
    settings = (normalised, rules or PhaseRules(), max_steps, operations)
    with jax.enable_x64(True):
        runs = [Alternation(each, task, factor, *settings) for each in networks for factor in scales]
        common = runs[0].network, runs[0].average
        together = min(len(runs), _together(*common))
        ends = [run.alternate(jumps, duration, alone=len(runs) == 1) for run in runs]
        stopped = run_together(ends, common, together=together)
    records = [_record(run, why) for run, why in zip(runs, stopped, strict=True)]
    return _joined(records, dimensions) if dimensions else records[0]


def _members(network: Any, scale: Any) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """The networks and the scales to combine, and the labels of those that were given as lists."""
    several, many = isinstance(network, list | tuple), np.ndim(scale) == 1
    networks, scales = network if several else (network,), scale if many else (scale,)
    for name, each in (("network", networks), ("scale", scales)):
        require(len(each) > 0, f"there is no {name}", argument=name, value=0, remedy="give one, or a list of them")
    if several and all(isinstance(each, SumOfNeurons) for each in networks):
        first = networks[0]
        alike = all(
            np.shape(each.neurons) == np.shape(first.neurons)
            and bool(eqx.tree_equal(each.with_neurons(first.neurons), first.with_neurons(first.neurons)))
            for each in networks
        )
        require(
            alike,
            "the networks differ in more than the weights of their neurons",
            argument="network",
            remedy="run them one by one",
        )
    dimensions = {"seed": np.arange(len(networks))} if several else {}
    return networks, scales, dimensions | ({"scale": np.asarray(scales, np.float64)} if many else {})


def _together(network: SumOfNeurons, average: Average) -> int:
    """Members that are computed at once.

    On a processor batches of small networks were 1.3 to 1.5 times as fast, which hundreds of members do not make up for
    the longer compilation, so they take turns in the same programs.
    """
    if jax.default_backend() == "cpu":
        return 1
    weights, frame = eqx.partition(network, eqx.is_inexact_array)
    return max(1, _MEMORY // working_memory(Objective(frame, average).loss, weights))


def _record(run: Alternation, stopped: str) -> xr.Dataset:
    """The staircase of one member."""
    jumps = run.jumps.groups
    losses = np.array([run.initial_loss, *(jump[-1].loss for jump in jumps)])
    times = np.array([jump[0].time for jump in jumps])
    neurons = len(run.waiting)

    def marked(name: str) -> np.ndarray:
        rows = [np.isin(np.arange(neurons), [i for event in jump for i in getattr(event, name)]) for jump in jumps]
        return np.array(rows, dtype=bool).reshape(len(jumps), neurons)

    weights = run.active.shape[1]
    staircase = Staircase(
        accelerated_times=times / run.unit,
        times=times,
        levels=losses,
        learned=tuple(map(_told, jumps)),
        slow=tuple(names.UNSETTLED if time > run.unsettled_since else "" for time in times),
        features={
            names.GROWTH_RATE: (("jump",), np.array([jump[0].growth for jump in jumps])),
            names.UNSTABLE_RATE: (("jump",), np.array([jump[-1].unstable_rate for jump in jumps])),
            "direction": (("jump", "weight"), np.array([e[0].direction for e in jumps]).reshape(len(jumps), weights)),
            "activated": (("jump", "neuron"), marked("activated")),
            "returned": (("jump", "neuron"), marked("returned")),
        },
        theory="alternating gradient flow",
        reference=ALTERNATING,
        warnings=tuple(run.warnings),
        degree=run.network.degree,
        normalised=run.normalised,
    )
    record = staircase_record(staircase, run.task, scale=run.scale, network=type(run.network).__name__)
    given_up = ("out of steps", OUT_OF_TIME, OUT_OF_WORK, "the duration is over")
    complete = stopped not in given_up and not stopped.endswith(" jumps") and run.unsettled_since == math.inf
    return record.assign_attrs(stopped=stopped, complete=int(complete))


def _told(jump: list[Event]) -> str:
    activated = [i for event in jump for i in event.activated]
    returned = [i for event in jump for i in event.returned]
    words = f"neuron{'s' if len(activated) > 1 else ''} {listed(activated)}" if activated else "active neurons move on"
    return words + (f"; {listed(returned)} dormant again" if returned else "")


def _joined(records: list[xr.Dataset], dimensions: dict[str, np.ndarray]) -> xr.Dataset:
    """The staircases of an ensemble, filled up to the length of the longest."""
    lead, shape = tuple(dimensions), tuple(len(labels) for labels in dimensions.values())
    counts = [record.sizes["jump"] for record in records]
    variables = {
        str(name): ((*lead, *map(str, first.dims)), _filled([record[name].to_numpy() for record in records], shape))
        for name, first in records[0].data_vars.items()
    }
    members = {"jumps": counts} | {name: [record.attrs[name] for record in records] for name in _OF_EACH}
    variables |= {name: (lead, np.array(values).reshape(shape)) for name, values in members.items()}
    common = {name: value for name, value in records[0].attrs.items() if name not in (*_OF_EACH, *lead)}
    warnings = []
    for place, record in enumerate(records):
        labels = zip(dimensions, np.unravel_index(place, shape), strict=True)
        member = ", ".join(f"{name} {dimensions[name][own]:g}" for name, own in labels)
        warnings += [f"{member}: {sentence}" for sentence in record.attrs["warnings"]]
    coordinates = {**dimensions, "jump": np.arange(1, max(counts) + 1)}
    coordinates |= {name: records[0][name].to_numpy() for name in ("neuron", "weight")}
    return make_record(variables, coordinates, attributes={**common, "warnings": warnings})


def _filled(rows: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Arrays of different lengths as one, in which what the shorter ones lack is NaN, false or no text."""
    longest = max(len(row) for row in rows)
    dtype = np.result_type(*rows)
    filled = np.full((len(rows), longest, *rows[0].shape[1:]), np.nan if dtype.kind == "f" else 0, dtype)
    if dtype.kind == "U":
        filled[:] = ""
    for place, row in enumerate(rows):
        filled[place, : len(row)] = row
    return filled.reshape(*shape, *filled.shape[1:])
