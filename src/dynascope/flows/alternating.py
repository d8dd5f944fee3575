"""Alternating gradient flow: what a sum of small homogeneous neurons learns, in what order and when."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import xarray as xr

from dynascope.errors import require, require_positive
from dynascope.flows.alternation import Alternation, Event, listed
from dynascope.record import make_record
from dynascope.tasks.task import Task

__all__ = ["alternating_flow"]


def alternating_flow(
    network: Any,
    task: Task | Any,
    *,
    scale: float,
    normalised: bool = False,
    threshold: float = 1.0,
    tie: float = 1.0,
    jumps: int | None = None,
    duration: float | None = None,
    least_growth: float = 1e-3,
    level_tolerance: float = 1e-5,
    max_steps: int = 20_000,
) -> xr.Dataset:
    """Predict the staircase of a sum of homogeneous neurons trained from small initialisation.

    Alternates two phases. While a neuron is small it is *dormant*: the residual r = y − f(x) of the others is frozen,
    and the neuron follows its utility U(θ) = E⟨f(x; θ), r(x)⟩, θ' = ∇U(θ). Once the first dormant neuron reaches the
    norm `threshold` it is *active*; the active neurons then descend the loss by themselves until they rest, at once in
    comparison with the growth of the others. Nothing here depends on which network it is.

    Args:
        network: A sum of neurons (see `networks.SumOfNeurons`) of degree κ ≥ 2, with its weights at unit scale.
        task: Samples, or an expectation in closed form (see `tasks.Expectation`).
        scale: α, the factor on the weights at the start, below one.
        normalised: Whether to follow the homogeneity-normalised flow, in which neuron i has the rate ‖θ_i‖^(2−κ).
        threshold: Norm at which a dormant neuron becomes active.
        tie: Neurons that will reach the threshold within this many e-folds, and grow at the same rate, become active
            together unless they compute the same function; and what follows a jump within as many is part of it.
        jumps: Number of jumps after which to stop; None for all.
        duration: Gradient-flow time at which to stop; None for no limit.
        least_growth: Growth rates below this share of the largest at the start are none.
        level_tolerance: A cost phase ends when the loss, at its present slope, would fall by less than this share of
            the initial loss in the time passed since the start; and the whole ends at this share of it.
        max_steps: Steps after which a phase is given up.

    Returns:
        A staircase record: over `jump`, `jump_time` (gradient-flow time at this scale), `accelerated_time` (that over
        the unit of `theory.clock.time_unit`), `loss_before`, `loss_after`, `growth_rate` (κ times the utility at
        activation), `learned`; `direction` (what is new in that of the first neuron activated, over `weight`); over
        `neuron`, whether it was `activated` and whether it `returned` to dormancy; `unstable_rate`, the fastest rate at
        which the active neurons leave the plateau after the jump by themselves, zero at a minimum. The attribute
        `stopped` says why the run ended, `complete` whether nothing is left to learn, `warnings` what limits it.

    Diagnostics. Degree 2: all neurons at one maximum of the utility arrive together, and one stands for all, as the
    others then find no utility in that direction. Degree above 2: the direction at activation, and the time, depend on
    the initial direction. Where the maxima form a manifold (frequencies with any phase), directions depend on the
    start, levels do not. A resting point of the active neurons may be a saddle of their loss; they then leave it at a
    rate that the Hessian tells, and this counts as a jump like any other. Neurons whose utility has no slope (dead
    units) never move; they are named in `warnings`. Directions are held to 1e-16, so a neuron that must leave an
    unstable direction to which it is closer than that, at scales far below 1e-8, leaves too early.

    Raises:
        InputError: The network is no sum of neurons of degree κ ≥ 2 or is not homogeneous, a neuron is zero, no neuron
            moves, or a number is outside its domain.

    References:
        Alternating Gradient Flows: A Theory of Feature Learning in Two-layer Neural Networks, arXiv:2506.06489.

    Example:
        >>> from dynascope.networks import DiagonalLinear
        >>> task = Task(np.eye(2) * 2**0.5, [[2.0 * 2**0.5], [0.5 * 2**0.5]])
        >>> staircase = alternating_flow(DiagonalLinear(2), task, scale=1e-3)
        >>> staircase["loss_after"].to_numpy().round(3), staircase["accelerated_time"].to_numpy().round(2)
        (array([0.125, 0.   ]), array([0.53, 2.1 ]))
    """
    require_positive(
        scale=scale,
        threshold=threshold,
        least_growth=least_growth,
        level_tolerance=level_tolerance,
        max_steps=max_steps,
        **{name: value for name, value in {"jumps": jumps, "duration": duration}.items() if value is not None},
    )
    require(tie >= 0, f"tie is {tie}", argument="tie", value=tie, remedy="choose zero or more e-folds")
    with jax.enable_x64(True):
        run = Alternation(
            network, task, scale, normalised, threshold, tie, least_growth, level_tolerance, int(max_steps)
        )
        stopped = run.alternate(jumps, duration)
        return _record(run, run.jumps(), stopped)


def _record(run: Alternation, jumps: list[list[Event]], stopped: str) -> xr.Dataset:
    """The staircase."""
    losses = np.array([run.initial_loss, *(jump[-1].loss for jump in jumps)])
    times = np.array([jump[0].time for jump in jumps])
    neurons = len(run.waiting)

    def marked(name: str) -> np.ndarray:
        rows = [np.isin(np.arange(neurons), [i for event in jump for i in getattr(event, name)]) for jump in jumps]
        return np.array(rows, dtype=bool).reshape(len(jumps), neurons)

    weights = run.active.shape[1]
    variables = {
        "jump_time": (("jump",), times),
        "accelerated_time": (("jump",), times / run.unit),
        "loss_before": (("jump",), losses[:-1]),
        "loss_after": (("jump",), losses[1:]),
        "learned": (("jump",), np.array([_told(jump) for jump in jumps], dtype=str)),
        "slow": (("jump",), np.zeros(len(jumps), bool)),
        "reason": (("jump",), np.array([""] * len(jumps), dtype=str)),
        "growth_rate": (("jump",), np.array([jump[0].growth for jump in jumps])),
        "unstable_rate": (("jump",), np.array([jump[-1].unstable_rate for jump in jumps])),
        "direction": (("jump", "weight"), np.array([e[0].direction for e in jumps]).reshape(len(jumps), weights)),
        "activated": (("jump", "neuron"), marked("activated")),
        "returned": (("jump", "neuron"), marked("returned")),
    }
    coordinates = {
        "jump": np.arange(1, len(jumps) + 1),
        "neuron": np.arange(neurons),
        "weight": np.arange(weights),
    }
    attributes = {
        "theory": "alternating gradient flow",
        "reference": "arXiv:2506.06489",
        "network": type(run.network).__name__,
        "degree": run.network.degree,
        "normalised": run.normalised,
        "scale": run.scale,
        "initial_loss": run.initial_loss,
        "stopped": stopped,
        "complete": stopped not in ("out of steps", "the duration is over") and not stopped.endswith(" jumps"),
        "warnings": run.warnings,
        **run.task.attributes(),
    }
    return make_record(variables, coordinates, attributes=attributes)


def _told(jump: list[Event]) -> str:
    activated = [i for event in jump for i in event.activated]
    returned = [i for event in jump for i in event.returned]
    words = f"neuron{'s' if len(activated) > 1 else ''} {listed(activated)}" if activated else "active neurons move on"
    return words + (f"; {listed(returned)} dormant again" if returned else "")
