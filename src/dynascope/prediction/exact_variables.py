"""Gradient flow of solvable networks in variables that are accurate at any initial scale."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from dynascope import flows
from dynascope.flows.exact.few_prompts import explicit_steps, few_prompts
from dynascope.flows.exact.stiff_neurons import work_of_a_step
from dynascope.networks.biased_two_layer import BiasedTwoLayer
from dynascope.networks.deep_linear import linear_layers
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.linear_attention import LinearAttention, MergedAttention
from dynascope.networks.two_layer import TwoLayer
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task

__all__ = ["exact_flow", "in_context", "kinked"]

_EXACT = 1e-7  # tolerance of a step for linear and diagonal networks, far stricter than a verdict requires
_POLAR = 3e-4  # tolerance for directions and log-norms; the error of the loss is below a thousandth of the initial loss
_FEW_STEPS = 1e5  # maximum number of explicit steps for attention; beyond, steps are implicit
_MOST_WORK = 1e10  # maximum operations of an implicit step for attention; beyond, it needs gigabytes of memory
_WORK = 2e9  # operations of an implicit step above which explicit steps are faster

Flow = Callable[[float], xr.Dataset]


def exact_flow(task: Any, network: Any, duration: float, *, normalised: bool, always: bool) -> Flow | None:
    """Return a function of the scale that solves gradient flow in exact variables; None if the weights are preferable.

    | network | variables |
    | --- | --- |
    | linear attention | directions and log-norms for a few prompts, if the weights would take too many steps |
    | two layers with a kinked activation, or of degree above two | directions and log-norms of the neurons |
    | linear | see `flows.linear_flow` |
    | diagonal, with equal weights | see `flows.diagonal_flow` |

    Args:
        task: The task.
        network: The network, with its weights at unit scale.
        duration: Gradient-flow time at which to stop.
        normalised: Whether the flow is homogeneity-normalised.
        always: Whether to use exact variables whenever they exist, even if integrating the weights is better.
    """
    if in_context(task, network):
        return _attention_flow(task, network, duration, normalised=normalised, always=always)
    if not isinstance(task, Task):
        return None
    if isinstance(network, TwoLayer | BiasedTwoLayer) and _has_polar_flow(
        task, network, normalised=normalised, always=always
    ):
        polar = functools.partial(flows.polar_flow, task, network, tolerance=_POLAR, normalised=normalised)
        return lambda scale: polar(scale=scale, duration=duration)
    if normalised:
        return None
    layers = linear_layers(network)
    if layers is not None:
        return lambda scale: flows.linear_flow(task, *layers, scale=scale, duration=duration, tolerance=_EXACT)
    if isinstance(network, DiagonalLinear) and not np.any(network.v) and np.ptp(network.u) == 0:
        size = float(network.u[0])
        return lambda scale: flows.diagonal_flow(task, scale=scale * size, duration=duration, tolerance=_EXACT)
    return None


def kinked(network: Any) -> bool:
    """Whether the activation has a kink, at which the velocity of a neuron is discontinuous."""
    layers = isinstance(network, TwoLayer | BiasedTwoLayer)
    return layers and network.activation.degree == 1 and not network.activation.linear


def in_context(task: Any, network: Any) -> bool:
    """Whether the case is in-context regression by linear attention."""
    return isinstance(task, InContextRegression) and isinstance(network, LinearAttention | MergedAttention)


def _attention_flow(task: Any, network: Any, duration: float, *, normalised: bool, always: bool) -> Flow | None:
    if not (normalised or always) and explicit_steps(task, network, duration) < _FEW_STEPS:
        return None
    prompts = few_prompts(task)
    if not (normalised or always) and work_of_a_step(prompts, network) > _MOST_WORK:
        return None
    options: dict[str, Any] = {"normalised": normalised, "solver": None if normalised else "stiff"}
    return lambda scale: flows.polar_flow(prompts, network, scale=scale, duration=duration, tolerance=_POLAR, **options)


def _has_polar_flow(task: Task, network: TwoLayer | BiasedTwoLayer, *, normalised: bool, always: bool) -> bool:
    if kinked(network):
        return True
    return network.degree > 2 and (normalised or always or work_of_a_step(task, network) < _WORK)
