"""Alternating gradient flow of a sum of small homogeneous neurons: prediction of its loss staircase."""

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
from dynascope.networks.user_module import at_unit_scale, converted
from dynascope.protocols import Average, Learnable, Network, SumOfNeurons
from dynascope.results import Staircase, make_record, staircase_record
from dynascope.results import staircase_names as names
from dynascope.theory.domain import warn_of_large_scale
from dynascope.theory.papers import ALTERNATING
from dynascope.validation import require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["alternating_flow"]

_MEMORY = 2**30  # bytes available for the intermediate results of a batch
_OF_EACH = (names.INITIAL_LOSS, "stopped", "complete")  # attributes of members, stored as variables of an ensemble


def alternating_flow(
    task: Learnable,
    network: Network | Sequence[Network],
    *,
    scale: PositiveFloat | Sequence[PositiveFloat] | np.ndarray,
    normalised: bool = False,
    jumps: PositiveInt | None = None,
    duration: PositiveFloat | None = None,
    max_steps: PositiveInt = 20_000,
    operations: PositiveFloat | None = None,
    rules: PhaseRules | None = None,
) -> xr.Dataset:
    """Predict the loss staircase (plateaus and jumps) of homogeneous neurons trained from small initial weights.

    The algorithm alternates between two phases and applies to any sum of homogeneous neurons. In the utility phase,
    small neurons are *dormant*: the residual r = y − f(x) of the active neurons is frozen, and each dormant neuron
    ascends its utility, θ' = ∇U(θ) with U(θ) = E⟨f(x; θ), r(x)⟩. A dormant neuron becomes *active* when its norm
    reaches a threshold. In the cost phase, the active neurons descend the loss to a stationary point while the dormant
    neurons are fixed. The cost phase is instantaneous compared with the growth of dormant neurons.

    Args:
        network: A sum of neurons (see `protocols.SumOfNeurons`) of degree κ ≥ 2, with its weights at unit scale; or a
            list of networks that differ only in the weights of their neurons. A single PyTorch or equinox module that
            `networks.user_network` supports is rescaled to unit scale, and `scale` multiplies its original scale.
        task: Samples, or an expectation in closed form (see `tasks.Expectation`).
        scale: Factor α of the initial weights, between 0 and 1, or a list of factors. Values above 0.3 cause a warning.
            Lists of networks and scales form an ensemble of all combinations, for which programs are compiled once. On
            accelerators, the members run in batches.
        normalised: Whether to use the homogeneity-normalised flow, in which the rate of neuron i is ‖θ_i‖^(2−κ).
        jumps: Maximum number of jumps; None for all.
        duration: Gradient-flow time at which to stop; None for no limit.
        max_steps: Maximum number of steps in one phase.
        operations: Number of floating-point operations per member, estimated within a factor of about two, after which
            no further jumps are computed; None for no limit.
        rules: Thresholds at which phases begin and end; by default, `PhaseRules()`.

    Returns:
        A staircase record (see `results.staircase_record`). Its accelerated times are the jump times in units of
        `results.time_unit`, log(1/α) for degree 2. The record also contains, over `jump`: `growth_rate` (κ times the
        utility at activation), `direction` (over `weight`, the direction of the first activated neuron, orthogonal to
        any active neuron with the same function), `settled_direction` (over `weight`, the weights of that neuron on the
        plateau after the jump, orthogonal as above and at unit norm; equal to `direction` if the neuron is dormant
        there, or if its activation is smooth and an active neuron has the same function), `settled_norm` (the norm of
        these weights; NaN if the neuron is dormant, if an active neuron computes the same function, or if the jump
        activates no neuron), `activated` and `returned` (over `neuron`, whether the neuron became active or became
        dormant again), and `unstable_rate` (the largest rate at which the active neurons leave the plateau after the
        jump on their own, zero at a minimum). The attribute `stopped` states why the run ended, `complete` whether
        nothing is left to learn, and `warnings` the limitations of the result.

    Limitations. For degree 2, all neurons at the same maximum of the utility become active together. One neuron
    represents all of them, because the others have no utility in this direction once it is active. For ReLU neurons
    with one output, the other neurons never leave this direction. For degrees above 2, the time and the direction at
    activation depend on the initial direction. If the maxima form a manifold (for example, frequencies with any phase),
    directions depend on the initial weights, but levels do not. A stationary point of the active neurons may be a
    saddle of their loss. The active neurons then leave the saddle at a rate given by the Hessian, and this departure is
    a jump. Neurons whose utility has zero gradient (dead units) never move; `warnings` lists them. Directions have a
    precision of 1e-16. At scales far below 1e-8, a neuron that starts closer than 1e-16 to an unstable direction
    therefore leaves this direction too early.

    Raises:
        InputError: If the network is not a sum of neurons of degree κ ≥ 2 or is not homogeneous, if the weights of a
            neuron are zero, if no neuron moves, or if a number is out of range.

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
    networks, scales, dimensions = _members(*_at_unit_scale(network, scale))
    warn_of_large_scale("alternating.alternating_flow", float(max(scales)))
    settings = (normalised, rules or PhaseRules(), max_steps, operations)
    with jax.enable_x64(True):
        runs = [Alternation(each, task, factor, *settings) for each in networks for factor in scales]
        common = runs[0].network, runs[0].average
        together = min(len(runs), _batch_size(*common))
        ends = [run.alternate(jumps, duration, alone=len(runs) == 1) for run in runs]
        stopped = run_together(ends, common, together=together)
    records = [_record(run, why) for run, why in zip(runs, stopped, strict=True)]
    return _joined(records, dimensions) if dimensions else records[0]


def _at_unit_scale(network: Any, scale: Any) -> tuple[Any, Any]:
    """Convert a single user module to a network at unit scale; return the network and its scales."""
    read: Any = network if isinstance(network, list | tuple) else converted(network)
    if read is network:
        return network, scale
    network, size = at_unit_scale(read)
    return network, np.asarray(scale) * size if np.ndim(scale) else scale * size


def _members(network: Any, scale: Any) -> tuple[Any, Any, dict[str, np.ndarray]]:
    """Return the networks and scales to combine, with a label for each network or scale in a list."""
    several, many = isinstance(network, list | tuple), np.ndim(scale) == 1
    networks, scales = network if several else (network,), scale if many else (scale,)
    for name, each in (("network", networks), ("scale", scales)):
        require(len(each) > 0, f"{name} is empty", argument=name, value=0, remedy=f"give at least one {name}")
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
            remedy="run each network separately",
        )
    dimensions = {"seed": np.arange(len(networks))} if several else {}
    return networks, scales, dimensions | ({"scale": np.asarray(scales, np.float64)} if many else {})


def _batch_size(network: SumOfNeurons, average: Average) -> int:
    """Return the number of members per batch.

    On a CPU, members run one at a time: batches make small networks 1.3 to 1.5 times as fast, but this gain does not
    offset the longer compilation, even with hundreds of members.
    """
    if jax.default_backend() == "cpu":
        return 1
    weights, frame = eqx.partition(network, eqx.is_inexact_array)
    return max(1, _MEMORY // working_memory(Objective(frame, average).loss, weights))


def _record(run: Alternation, stopped: str) -> xr.Dataset:
    """Make the staircase record of one member."""
    jumps = run.jumps.groups
    losses = np.array([run.initial_loss, *(jump[-1].loss for jump in jumps)])
    times = np.array([jump[0].time for jump in jumps])
    neurons = len(run.waiting)

    def marked(name: str) -> np.ndarray:
        rows = [np.isin(np.arange(neurons), [i for event in jump for i in getattr(event, name)]) for jump in jumps]
        return np.array(rows, dtype=bool).reshape(len(jumps), neurons)

    weights = run.active.shape[1]
    settled = [_settled(jump) for jump in jumps]
    staircase = Staircase(
        accelerated_times=times / run.unit,
        times=times,
        levels=losses,
        learned=tuple(map(_phrase, jumps)),
        slow=tuple(names.UNSETTLED if time > run.unsettled_since else "" for time in times),
        features={
            names.GROWTH_RATE: (("jump",), np.array([jump[0].growth for jump in jumps])),
            names.UNSTABLE_RATE: (("jump",), np.array([jump[-1].unstable_rate for jump in jumps])),
            "direction": (("jump", "weight"), np.array([e[0].direction for e in jumps]).reshape(len(jumps), weights)),
            "settled_direction": (
                ("jump", "weight"),
                np.array([direction for direction, _ in settled]).reshape(len(jumps), weights),
            ),
            "settled_norm": (("jump",), np.array([norm for _, norm in settled], dtype=float)),
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
    interrupted = ("out of steps", OUT_OF_TIME, OUT_OF_WORK, "the duration is over")
    complete = stopped not in interrupted and not stopped.endswith(" jumps") and run.unsettled_since == math.inf
    return record.assign_attrs(stopped=stopped, complete=int(complete))


def _settled(jump: list[Event]) -> tuple[np.ndarray, float]:
    """Return the direction of the first activated neuron on the plateau after a jump, and its norm if it is defined."""
    event = next((each for each in jump if each.activated), jump[0])
    if event.settled is None:
        return event.direction, np.nan
    norm = float(np.linalg.norm(event.settled))
    return event.settled / norm, np.nan if event.spent.any() else norm


def _phrase(jump: list[Event]) -> str:
    activated = [i for event in jump for i in event.activated]
    returned = [i for event in jump for i in event.returned]
    words = f"neuron{'s' if len(activated) > 1 else ''} {listed(activated)}" if activated else "active neurons move on"
    return words + (f"; {listed(returned)} dormant again" if returned else "")


def _joined(records: list[xr.Dataset], dimensions: dict[str, np.ndarray]) -> xr.Dataset:
    """Join the staircases of an ensemble, padded to the length of the longest."""
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
    """Join arrays of different lengths, padded with NaN, False or empty strings."""
    longest = max(len(row) for row in rows)
    dtype = np.result_type(*rows)
    filled = np.full((len(rows), longest, *rows[0].shape[1:]), np.nan if dtype.kind == "f" else 0, dtype)
    if dtype.kind == "U":
        filled[:] = ""
    for place, row in enumerate(rows):
        filled[place, : len(row)] = row
    return filled.reshape(*shape, *filled.shape[1:])
