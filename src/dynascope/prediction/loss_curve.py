"""The loss over time at the scale at hand: all neurons followed in real time, no separation of time scales assumed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from dynascope import flows
from dynascope.flows.exact.few_prompts import few_prompts
from dynascope.networks.deep_linear import linear_layers
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.linear_attention import LinearAttention, MergedAttention
from dynascope.protocols import Learnable, Network, SumOfNeurons
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task

__all__ = ["distance_between", "loss_curve"]

# Of a step: in direction and log-norm, of neurons with kinks and without; of linear networks. Then half of it.
_NEURONS, _SMOOTH, _MODES = 3e-3, 1e-3, 1e-5
# What two curves differ by covers how far the better one is off in most cases, and half as much again in nearly all.
_MARGIN, _FLOOR = 1.5, 1e-4
_STEPS, _IMPLICIT_STEPS = 30_000, 3_000  # after which a curve ends, as to follow it further takes too long


def loss_curve(
    task: Learnable, network: Network, *, scale: float, duration: float, normalised: bool = False
) -> xr.Dataset | None:
    """Follow gradient flow from a given scale as closely as a prediction needs, and say how closely that was.

    Two-layer linear networks are followed as bundles of neurons, diagonal ones by the integral of their gradient, and
    any other sum of neurons of degree two or more by directions and log-norms (`flows.linear_flow`,
    `flows.diagonal_flow`, `flows.polar_flow`), attention in expectation over prompts too; each twice.

    Args:
        task: The data.
        network: A module with its weights at unit scale.
        scale: Factor on the weights at the start.
        duration: Gradient-flow time at which to stop.
        normalised: Whether to follow the homogeneity-normalised flow.

    Returns:
        Record with `loss` over `time`, and `rougher_loss`, that of the other time. Its attribute `error` is 1.5 times
        the mean distance of the two over log time, over the initial loss, plus 1e-4. None for networks and tasks that
        no such flow is for.

    Raises:
        DivergenceError: The flow could not be followed so far.

    Example:
        >>> from dynascope.networks import TwoLayer
        >>> task = Task(np.diag([1.0, 1.2, 0.9, 1.1]), [[1.5], [1.0], [-0.8], [-0.9]])
        >>> curve = loss_curve(task, TwoLayer(4, 12, 1, activation="relu"), scale=1e-5, duration=100.0)
        >>> curve.attrs["error"] < 1e-3
        True
    """
    follow = _flow(task, network, scale, normalised)
    if follow is None:
        return None
    rough = follow(1.0, duration)
    better = follow(0.5, min(duration, float(rough["time"][-1])))
    there = np.interp(better["time"], rough["time"], rough["loss"])
    error = _MARGIN * distance_between(rough, better) + _FLOOR
    return better[["loss"]].assign(rougher_loss=("time", there)).assign_attrs(error=error)


def distance_between(one: xr.Dataset, other: xr.Dataset) -> float:
    """The mean distance of two losses over log time, over the initial loss, from when a thousandth of it has fallen.

    Args:
        one: Record with `loss` over `time`.
        other: Another, to the same time.

    Example:
        >>> falling = [xr.Dataset({"loss": ("time", [1.0, rest])}, {"time": [0.0, 1.0]}) for rest in (0.5, 0.5)]
        >>> distance_between(*falling)
        0.0
    """
    times = [each["time"].to_numpy() for each in (one, other)]
    losses = [each["loss"].to_numpy() for each in (one, other)]
    moving = np.flatnonzero(losses[1] < 0.999 * losses[1][0])
    begin = times[1][moving[0]] if len(moving) else times[1][-1] / 10
    shared = np.geomspace(begin / 2, times[1][-1], 1000)
    here, there = (np.interp(shared, *each) for each in zip(times, losses, strict=True))
    return float(np.mean(np.abs(here - there)) / losses[1][0])


def _flow(task: Any, network: Any, scale: float, normalised: bool) -> Callable[[float, float], xr.Dataset] | None:
    """A function of the factor on the tolerance, and of the duration."""
    usual: dict[str, Any] = {"scale": scale, "partial": True, "max_steps": _STEPS}
    stiff = {"solver": "stiff", "max_steps": _IMPLICIT_STEPS}
    if isinstance(task, InContextRegression) and isinstance(network, LinearAttention | MergedAttention):
        task, usual = few_prompts(task), usual | stiff
    if not isinstance(task, Task):
        return None
    layers = linear_layers(network)
    if layers is not None:
        return lambda factor, duration: flows.linear_flow(
            task, *layers, duration=duration, tolerance=_MODES * factor, **usual
        )
    if isinstance(network, DiagonalLinear) and np.all(np.asarray(network.v) == 0) and np.ptp(network.u) == 0:
        usual |= {"scale": scale * float(network.u[0])}
        return lambda factor, duration: flows.diagonal_flow(task, duration=duration, tolerance=_MODES * factor, **usual)
    if isinstance(network, SumOfNeurons) and network.degree >= 2:
        if network.degree > 2 and not normalised:
            usual |= stiff
        tolerance = _SMOOTH if "solver" in usual else _NEURONS
        return lambda factor, duration: flows.polar_flow(
            network, task, duration=duration, tolerance=tolerance * factor, normalised=normalised, **usual
        )
    return None
