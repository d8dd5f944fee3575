"""Observe: train a network and measure it, as a record."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from dynascope import flows
from dynascope.arguments import require
from dynascope.errors import InputError
from dynascope.networks.deep_linear import linear_layers
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.kinds import NetworkKind, network_for
from dynascope.networks.two_layer import TwoLayer
from dynascope.prediction import predict
from dynascope.protocols import Learnable, Network
from dynascope.record import training_time
from dynascope.tasks.task import Task

__all__ = ["Probe", "observe"]

_KINKED = 1e-5  # relative tolerance for activations with a kink
_EXACT = 1e-7  # of a step in the variables of linear and diagonal networks, far below what a verdict needs
_POLAR = 3e-4  # the same of directions and log-norms, which keeps the loss within a thousandth of the initial one

Probe = Callable[[Any], Mapping[str, tuple[Sequence[str], Any]]]


def observe(
    task: Learnable,
    network: Network | Sequence[Network] | NetworkKind,
    *,
    scale: float | Sequence[float] | np.ndarray = 1.0,
    flow: Literal["gradient_flow", "descent"] = "gradient_flow",
    probes: Sequence[Probe] = (),
    duration: float | None = None,
    seed: int = 0,
    **options: Any,
) -> xr.Dataset:
    """Train a network on a task and record what it does.

    Args:
        task: The data, or an expectation in closed form.
        network: A module with its weights at unit scale, a sequence of such modules (an ensemble over seeds), or the
            name of a kind ("linear", "diagonal", "relu", "quadratic", "attention").
        scale: Factor on the weights at the start; a sequence makes an ensemble.
        flow: "gradient_flow" (continuous time) or "descent" (an optimiser's steps).
        probes: Functions of the network that return further quantities to record, by name: dimension names and values.
            They are compiled, so they must be written in JAX.
        duration: Gradient-flow time at which to stop. By default a quarter beyond the last jump that theory predicts,
            and more at large scales, where the prediction is rough. Not used by descent, which takes `steps`.
        seed: Seed of the initial weights when the network is given by name, and of the batches of descent.
        **options: Passed on to `flows.gradient_flow` or `flows.descend`.

    Returns:
        Record with `loss` over `time` (over `step` for descent), and each probe.

    Two-layer linear, ReLU and diagonal networks from a single start are followed in variables in which any scale keeps
    its digits (see `flows.linear_flow`, `flows.polar_flow`, `flows.diagonal_flow`), unless probes or options ask for
    the weights. The attribute `variables` says which were used. Otherwise a single network is recorded at 2000 times
    unless `save` is given, and one whose activation has a kink is followed with a relative tolerance of 1e-5.

    Raises:
        InputError: An argument is outside its domain, or no duration is given and no theory suggests one.
        DivergenceError: The run left the finite numbers.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
        >>> run = observe(task, "linear", scale=1e-8)
        >>> float(run["loss"][0].round(6)), float(run["loss"][-1].round(6))
        (8.5, 0.0)
    """
    if isinstance(network, str):
        network = network_for(network, task, seed=seed)
    statistics = _statistics(probes, network)
    if flow == "descent":
        run = flows.descend(network, task, scale=scale, statistics=statistics, seed=seed, **options)
        return _described(run, task, "descent", scale)
    require(
        flow == "gradient_flow",
        f"flow is {flow!r}",
        argument="flow",
        value=flow,
        remedy="choose gradient_flow or descent",
    )
    single = np.ndim(scale) == 0 and not isinstance(network, list | tuple)
    if duration is None:
        duration = _duration(task, network, scale, single, bool(options.get("normalised")))
    if single and isinstance(task, Task) and not probes and not {*options} - {"normalised"} and _kinked(network):
        normalised = bool(options.get("normalised"))
        factor = float(np.asarray(scale))
        assert isinstance(network, TwoLayer)
        run = flows.polar_flow(network, task, scale=factor, duration=duration, tolerance=_POLAR, normalised=normalised)
        return _described(run, task, "gradient flow", scale)
    if single and isinstance(task, Task) and not probes and not options:
        layers, factor = linear_layers(network), float(np.asarray(scale))
        if layers is not None:
            run = flows.linear_flow(task, *layers, scale=factor, duration=duration, tolerance=_EXACT)
            return _described(run, task, "gradient flow", scale)
        if isinstance(network, DiagonalLinear) and np.all(np.asarray(network.v) == 0) and np.ptp(network.u) == 0:
            start = factor * float(network.u[0])
            run = flows.diagonal_flow(task, scale=start, duration=duration, tolerance=_EXACT)
            return _described(run, task, "gradient flow", scale)
    usual = {"save": 2000, **({"relative_tolerance": _KINKED} if _kinked(network) else {})} if single else {}
    options = {**usual, **options}
    run = flows.gradient_flow(network, task, duration=duration, scale=scale, statistics=statistics, **options)
    return _described(run, task, "gradient flow", scale)


def _kinked(network: Any) -> bool:
    """Whether the velocity jumps where a neuron switches a sample on, which no small tolerance gets across."""
    return isinstance(network, TwoLayer) and network.activation.degree == 1 and not network.activation.linear


@dataclasses.dataclass(frozen=True)
class _Reading:
    """One quantity of a probe. Equal readings are equal objects, so that a compiled run is found again."""

    probe: Probe
    name: str

    def __call__(self, network: Any) -> Any:
        return self.probe(network)[self.name][1]


def _statistics(probes: Sequence[Probe], network: Any) -> dict[str, tuple[_Reading, tuple[str, ...]]]:
    first = network[0] if isinstance(network, list | tuple) else network
    return {
        name: (_Reading(probe, name), tuple(dimensions))
        for probe in probes
        for name, (dimensions, _) in probe(first).items()
    }


def _duration(task: Learnable, network: Any, scale: Any, single: bool, normalised: bool) -> float:
    if not single:
        raise InputError("an ensemble has no common duration", argument="duration", remedy="give one")
    try:
        return training_time(predict(task, network, scale=scale, normalised=normalised, curve=False), scale)
    except InputError as error:
        raise InputError(
            f"no duration is given and none can be predicted ({error})", argument="duration", remedy="give one"
        ) from None


def _described(record: xr.Dataset, task: Learnable, flow: str, scale: Any) -> xr.Dataset:
    said = {name: value for name, value in task.attributes().items() if name in ("task", "data_hash")}
    attributes = {"flow": flow, "variables": "weights", **record.attrs, **said}
    if np.ndim(scale) == 0:
        attributes["scale"] = float(scale)
    return record.assign_attrs(attributes)
