"""Observe: train a network on a task and measure it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import xarray as xr

from dynascope import flows, training
from dynascope.arguments import checked, require_choice
from dynascope.errors import InputError
from dynascope.flows.deadline import is_limited, overdue, stopping_after
from dynascope.flows.exact.few_prompts import explicit_steps, few_prompts
from dynascope.flows.exact.stiff_neurons import work_of_a_step
from dynascope.networks.deep_linear import DeepLinear, linear_layers
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.kinds import NetworkKind
from dynascope.networks.linear_attention import LinearAttention, MergedAttention
from dynascope.networks.two_layer import TwoLayer
from dynascope.networks.user_module import at_unit_scale, user_network
from dynascope.prediction.initial_weights import with_weights
from dynascope.prediction.prediction import predict
from dynascope.protocols import Learnable, Network
from dynascope.results import Observation, is_staircase, training_time, variables_of
from dynascope.tasks.as_task import as_task
from dynascope.tasks.in_context import InContextRegression
from dynascope.tasks.task import Task
from dynascope.theory.assumptions import SMALL_START

__all__ = ["Probe", "observe"]

_LOOSE = 1e-5  # relative tolerance, which keeps times within some 1e-4, and gets across the kinks of ReLU
_EXACT = 1e-7  # of a step in the variables of linear and diagonal networks, far below what a verdict needs
_TIMES, _EARLIEST = 1000, 1e-7  # at which to record: so many evenly, and as many by factors, from this share on
_UNCOUNTED = 10**9  # steps, where the clock ends a run
_POLAR = 3e-4  # the same of directions and log-norms, which keeps the loss within a thousandth of the initial one
_FEW_STEPS = 1e5  # explicit ones, beyond which attention is followed by implicit ones
_MOST_WORK = 1e10  # of such a step of attention, beyond which its memory is some gigabytes
_WORK = 2e9  # floating-point operations of an implicit step, beyond which explicit ones are better after all
_STOPPED = "What was due until then is judged. More time: --minutes, or seconds= in Python."

Probe = Callable[[Any], Mapping[str, tuple[Sequence[str], Any]]]


@checked
def observe(
    task: Learnable | Sequence[Any] | Mapping[str, Any],
    network: Network | Sequence[Network] | NetworkKind,
    *,
    scale: float | Sequence[float] | np.ndarray | None = None,
    flow: Literal["gradient_flow", "descent"] = "gradient_flow",
    probes: Sequence[Probe] = (),
    duration: float | None = None,
    seconds: float | None = None,
    seed: int = 0,
    **options: Any,
) -> Observation:
    """Train a network on a task and record what it does.

    Args:
        task: The data, or an expectation in closed form; a pair (inputs, targets), or a data set of
            scikit-learn, is what `Task` makes of it.
        network: A module with its weights at unit scale, a sequence of such modules (an ensemble over seeds), the name
            of a kind ("linear", "diagonal", "relu", "quadratic", "attention"), a `TwoLayer` without dimensions, or a
            module of yours, of PyTorch or equinox, as `predict` takes it.
        scale: Factor on the initial weights; a sequence makes an ensemble. By default as for `predict`: a module starts
            from its weights, a network that is given by name or without dimensions at `prediction.default_scale`.
        flow: "gradient_flow" (continuous time) or "descent" (an optimiser's steps).
        probes: Functions of the network that return further quantities to record: the result of a function of
            `dynascope.probes`, or for each name the dimension names and the values. They are compiled, so they must be
            written in JAX.
        duration: Gradient-flow time at which to stop. By default a quarter beyond the last jump that theory predicts,
            and more at large scales, where the prediction is rough; or where a predicted loss has come to rest. Not
            used by descent, which takes `steps`.
        seconds: How long it may take; as long as it needs if not said. A run that is stopped then is recorded as far as
            it got, and its attribute `stopped` says how far that is.
        seed: Seed of the initial weights when the network is given by name or without dimensions, and of the batches of
            descent.
        **options: Passed on to `flows.gradient_flow` or `training.descend`.

    Returns:
        An observation, whose record has `loss` over `time` (over `step` for descent), and each probe.

    Two-layer networks, diagonal ones and linear attention from a single start are followed in variables in which any
    scale keeps its digits (see `flows.linear_flow`, `flows.polar_flow`, `flows.diagonal_flow`), unless probes or
    options ask for the weights. The attribute `variables` says which were used. Otherwise a single network is recorded
    at 1000 even times and at 1000 by even factors. With `seconds` it is followed with a relative tolerance of 1e-5 by
    the solver "automatic"; without, one whose activation has a kink with that tolerance. Options that are given come
    first.

    Raises:
        InputError: An argument is outside its domain, or no duration is given and no theory suggests one.
        DivergenceError: The run left the finite numbers.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
        >>> run = observe(task, "linear", scale=1e-8)
        >>> float(run["loss"][0].round(6)), float(run["loss"][-1].round(6))
        (8.5, 0.0)
    """
    task = as_task(task)
    network, scale = with_weights(task, network, scale, seed=seed, normalised=bool(options.get("normalised")))
    assert not isinstance(network, str)
    scale = 1.0 if scale is None else scale  # a module starts from its weights
    read = user_network(network) if isinstance(network, Network) else None
    if read is not None:
        network, size = at_unit_scale(read)
        scale = scale * np.asarray(size)
    require_choice("flow", flow, ("gradient_flow", "descent"))
    if flow == "gradient_flow" and duration is None:
        single = np.ndim(scale) == 0 and not isinstance(network, list | tuple)
        duration = _duration(task, network, scale, single, bool(options.get("normalised")))
    with contextlib.nullcontext() if seconds is None else stopping_after(seconds):
        if flow == "descent":
            statistics = _statistics(probes, network)
            run = training.descend(network, task, scale=scale, statistics=statistics, seed=seed, **options)
        else:
            assert duration is not None
            run = _followed(task, network, scale, duration, probes, options)
            if overdue() and run["time"][-1] < duration:
                run = run.assign_attrs(stopped=f"at t = {float(run['time'][-1]):.4g} of {duration:.4g}")
    if seconds is not None and "stopped" in run.attrs:
        told = f"The training was stopped {run.attrs['stopped']}, after {seconds:.4g} s. {_STOPPED}"
        run = run.assign_attrs(warnings=[told])
    return Observation.of(_described(run, task, flow.replace("_", " "), scale))


def _followed(
    task: Any, network: Any, scale: Any, duration: float, probes: Sequence[Probe], options: dict[str, Any]
) -> xr.Dataset:
    """Gradient flow in the variables that suit the network."""
    single = np.ndim(scale) == 0 and isinstance(network, Network)
    normalised = bool(options.get("normalised"))
    if single and not probes and not {*options} - {"normalised"}:
        factor, layers = float(np.asarray(scale)), linear_layers(network)
        polar = _polar(task, network, duration, normalised)
        if polar is not None:
            return polar(scale=factor, duration=duration)
        if isinstance(task, Task) and layers is not None and not normalised:
            return flows.linear_flow(task, *layers, scale=factor, duration=duration, tolerance=_EXACT)
        start = network.u if isinstance(network, DiagonalLinear) and not np.any(network.v) else np.arange(2)
        if isinstance(task, Task) and np.ptp(start) == 0 and not normalised:
            return flows.diagonal_flow(task, scale=factor * float(start[0]), duration=duration, tolerance=_EXACT)
    usual: dict[str, Any] = {}
    if single:
        even, by_factor = np.linspace(0, duration, _TIMES), np.geomspace(_EARLIEST * duration, duration, _TIMES)
        usual["save"] = np.unique(np.append(even, by_factor[:-1]))
    if single and (is_limited() or _kinked(network)):
        usual["relative_tolerance"] = _LOOSE
    if single and (is_limited() or _in_context(task, network)):
        usual |= {"solver": "automatic", "max_steps": _UNCOUNTED}
    statistics = _statistics(probes, network)
    return flows.gradient_flow(
        network, task, duration=duration, scale=scale, statistics=statistics, **{**usual, **options}
    )


def _kinked(network: Any) -> bool:
    """Whether the velocity jumps where a neuron switches a sample on, which no small tolerance gets across."""
    return isinstance(network, TwoLayer) and network.activation.degree == 1 and not network.activation.linear


def _in_context(task: Any, network: Any) -> bool:
    return isinstance(task, InContextRegression) and isinstance(network, LinearAttention | MergedAttention)


def _polar(task: Any, network: Any, duration: float, normalised: bool) -> Callable[..., xr.Dataset] | None:
    """The flow of directions and log-norms of scale and duration, for networks that it is the best for."""
    if _in_context(task, network):
        if not normalised and explicit_steps(task, network, duration) < _FEW_STEPS:
            return None
        prompts = few_prompts(task)
        if not normalised and work_of_a_step(network, prompts) > _MOST_WORK:
            return None
        solver = None if normalised else "stiff"
        return functools.partial(
            flows.polar_flow, network, prompts, tolerance=_POLAR, normalised=normalised, solver=solver
        )
    if not (isinstance(task, Task) and isinstance(network, TwoLayer)):
        return None
    if _kinked(network) or (network.degree > 2 and (normalised or work_of_a_step(network, task) < _WORK)):
        return functools.partial(flows.polar_flow, network, task, tolerance=_POLAR, normalised=normalised)
    return None


@dataclasses.dataclass(frozen=True)
class _Reading:
    """One quantity of a probe. Equal readings are equal objects, so that a compiled run is found again."""

    probe: Probe
    name: str

    def __call__(self, network: Any) -> Any:
        return variables_of(self.probe(network))[self.name][1]


def _statistics(probes: Sequence[Probe], network: Any) -> dict[str, tuple[_Reading, tuple[str, ...]]]:
    first = network[0] if isinstance(network, list | tuple) else network
    return {
        name: (_Reading(probe, name), tuple(dimensions))
        for probe in probes
        for name, (dimensions, _) in variables_of(probe(first)).items()
    }


def _duration(task: Learnable, network: Any, scale: Any, single: bool, normalised: bool) -> float:
    if not single:
        raise InputError("an ensemble has no common duration", argument="duration", remedy="give one")
    try:
        return _until_learned(task, network, scale, normalised)
    except InputError as error:
        if scale == 1 and isinstance(network, TwoLayer | DiagonalLinear | DeepLinear):
            unit, size = at_unit_scale(network)
            if size <= SMALL_START.almost:  # its weights are small themselves
                return _until_learned(task, unit, size, normalised)
        raise InputError(
            f"no duration is given and none can be predicted ({error})", argument="duration", remedy="give one"
        ) from None


def _until_learned(task: Learnable, network: Any, scale: float, normalised: bool) -> float:
    predicted = predict(task, network, scale=scale, normalised=normalised, curve=False).record
    return training_time(predicted, scale) if is_staircase(predicted) else float(predicted["time"][-1])


def _described(record: xr.Dataset, task: Learnable, flow: str, scale: Any) -> xr.Dataset:
    said = {name: value for name, value in task.attributes().items() if name in ("task", "data_hash")}
    attributes = {"flow": flow, "variables": "weights", **record.attrs, **said}
    if np.ndim(scale) == 0:
        attributes["scale"] = float(scale)
    return record.assign_attrs(attributes)
