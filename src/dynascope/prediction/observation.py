"""Train a network on a task and measure it."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import xarray as xr

from dynascope.errors import InputError
from dynascope.flows.deadline import is_limited, overdue, stopping_after
from dynascope.flows.gradient_flow import GradientFlow, gradient_flow
from dynascope.flows.solvers.solver import Solver
from dynascope.networks.deep_linear import DeepLinear
from dynascope.networks.diagonal_linear import DiagonalLinear
from dynascope.networks.kinds import NETWORKS, NetworkKind
from dynascope.networks.two_layer import TwoLayer
from dynascope.networks.user_module import at_unit_scale, user_network
from dynascope.prediction.exact_variables import exact_flow, in_context, kinked
from dynascope.prediction.initial_weights import with_weights
from dynascope.prediction.prediction import predict
from dynascope.protocols import Learnable, Network
from dynascope.results import Observation, is_staircase, training_time, variables_of
from dynascope.tasks.as_task import TaskLike, as_task
from dynascope.theory.assumptions import SMALL_START
from dynascope.training.descend import Descent, descend
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveFloat, Seed

__all__ = ["Probe", "observe"]

_LOOSE = 1e-5  # relative tolerance; times are accurate to about 1e-4, and integration across kinks succeeds
_TIMES, _EARLIEST = (
    1000,
    1e-7,
)  # recorded times: evenly spaced, and as many geometrically, from this fraction of the duration
_UNCOUNTED = 10**9  # steps, if a time limit ends the run
_STOPPED = "Only jumps predicted before this time are scored."

Probe = Callable[[Any], Mapping[str, tuple[Sequence[str], Any]]]


@checked
def observe(
    task: TaskLike,
    network: Annotated[Network | Sequence[Network] | NetworkKind, NETWORKS],
    *,
    method: GradientFlow | Descent | None = None,
    scale: float | Sequence[float] | np.ndarray | None = None,
    probes: Sequence[Probe] = (),
    seconds: PositiveFloat | None = None,
    seed: Seed = 0,
) -> Observation:
    """Train a network on a task, and record the loss and other quantities during training.

    Args:
        task: The data, or an expectation in closed form; a pair (inputs, targets) or a scikit-learn data set is
            converted to a `Task`.
        network: A module with its weights at unit scale, a sequence of such modules (an ensemble over seeds), the name
            of a kind ("linear", "diagonal", "relu", "quadratic", "attention"), a `TwoLayer` without dimensions, or a
            PyTorch or equinox module, as for `predict`.
        method: The training method: `GradientFlow(…)`, by default, or an optimiser,
            `Descent(optax.sgd(0.1), steps=1000, batches=32)`. Both also specify further quantities to record, and when
            to record them.
        scale: Factor on the initial weights; a sequence creates an ensemble. By default, a module starts from its
            weights, and a network given by name or without dimensions starts at `prediction.default_scale`.
        probes: Functions of the network that return further quantities to record, either as the result of a function of
            `dynascope.probes` or as a mapping from each name to its dimension names and values. Probes are compiled, so
            they must be written in JAX.
        seconds: Time limit; none by default. A run that reaches the limit is recorded up to that point, and its
            attribute `stopped` states where it ended.
        seed: Seed of the minibatches, and of the initial weights if the network is given by name or without dimensions.

    Returns:
        An observation, whose record contains `loss` over `time` (over `step` for descent) and the result of each probe.

    Without a duration, gradient flow ends 25 % after the last predicted jump (later at large scales, where the
    prediction is rough), or when a predicted loss curve has converged.

    By default, `observe` chooses the solver of a gradient flow. For a single initialisation of a two-layer network, a
    diagonal network or linear attention, it integrates variables that remain accurate at any scale (`Solver("exact")`),
    unless probes or the method require the weights. The attribute `variables` of the record names the integrated
    variables. All other flows integrate the weights. With `seconds`, they use the solver "fastest" with a relative
    tolerance of 1e-5. Without it, they use the defaults of `Solver`, except that the tolerance is also 1e-5 if an
    activation has a kink. An explicit solver or tolerance takes precedence.

    Raises:
        InputError: An argument is outside its domain, or no duration is given and no theory predicts one.
        DivergenceError: The weights became non-finite.

    Example:
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2) * 2**0.5, np.diag([4.0, 1.0]) * 2**0.5)
        >>> run = observe(task, "linear", scale=1e-8)
        >>> float(run["loss"][0].round(6)), float(run["loss"][-1].round(6))
        (8.5, 0.0)
    """
    method = GradientFlow() if method is None else method
    require(
        isinstance(method, GradientFlow | Descent),
        f"method has type {type(method).__name__}",
        argument="method",
        value=type(method).__name__,
        remedy="give a GradientFlow or a Descent",
    )
    require(
        not (isinstance(network, list | tuple) and not network),
        "network is an empty list",
        argument="network",
        remedy="give at least one network",
    )
    task = as_task(task)
    network, scale = with_weights(
        task, network, scale, seed=seed, normalised=isinstance(method, GradientFlow) and method.normalised
    )
    assert not isinstance(network, str)
    scale = 1.0 if scale is None else scale  # a module starts from its weights
    read = user_network(network) if isinstance(network, Network) else None
    if read is not None:
        network, size = at_unit_scale(read)
        scale = scale * np.asarray(size)
    if isinstance(method, GradientFlow) and method.duration is None:
        single = np.ndim(scale) == 0 and not isinstance(network, list | tuple)
        method = dataclasses.replace(method, duration=_duration(task, network, scale, single, method.normalised))
    with contextlib.nullcontext() if seconds is None else stopping_after(seconds):
        if isinstance(method, Descent):
            run = descend(task, network, _with_probes(method, probes, network), scale=scale, seed=seed)
        else:
            run, duration = _gradient_flow(task, network, method, scale, probes), method.duration
            if overdue() and duration is not None and run["time"][-1] < duration:
                run = run.assign_attrs(stopped=f"at t = {float(run['time'][-1]):.4g} of {duration:.4g}")
    if seconds is not None and "stopped" in run.attrs:
        warning = f"Training was stopped {run.attrs['stopped']}, after {seconds:.4g} s. {_STOPPED}"
        run = run.assign_attrs(warnings=[warning])
    flow = "descent" if isinstance(method, Descent) else "gradient flow"
    return Observation.of(_described(run, task, flow, scale))


def _gradient_flow(task: Any, network: Any, method: GradientFlow, scale: Any, probes: Sequence[Probe]) -> xr.Dataset:
    """Integrate gradient flow, in exact variables if the solver, the network and the recorded quantities allow it."""
    single = np.ndim(scale) == 0 and isinstance(network, Network)
    solver, duration = Solver.of(method.solver), method.duration
    assert duration is not None
    exact = None
    if solver.name in ("automatic", "exact") and single and not probes and not _needs_weights(method):
        exact = exact_flow(task, network, duration, normalised=bool(method.normalised), always=solver.name == "exact")
    if exact is not None:
        return exact(float(np.asarray(scale)))
    require(
        solver.name != "exact",
        "solver is 'exact', but this solver does not support the network or cannot return the required weights",
        argument="solver",
        value="exact",
        remedy="give one network and one scale, no probes and no method options except the duration, or choose another "
        "solver",
    )
    if single:
        method = _with_defaults(task, network, method)
    return gradient_flow(task, network, _with_probes(method, probes, network), scale=scale)


def _needs_weights(method: GradientFlow) -> bool:
    """Whether the method has times, statistics, stops, rates or tolerances, which require the flow of the weights."""
    solver = Solver.of(method.solver)
    fields = (
        *(method.save, method.statistics, method.loss_target, method.stationarity),
        *(solver.relative_tolerance, solver.absolute_tolerance, solver.max_steps),
    )
    rate = method.learning_rate
    return any(field is not None for field in fields) or not (isinstance(rate, int | float) and rate == 1)


def _with_defaults(task: Any, network: Any, method: GradientFlow) -> GradientFlow:
    """Fill unset times, solver and tolerance with values that suit a single network."""
    duration, solver = method.duration, Solver.of(method.solver)
    assert duration is not None
    if method.save is None:
        even, by_factor = np.linspace(0, duration, _TIMES), np.geomspace(_EARLIEST * duration, duration, _TIMES)
        method = dataclasses.replace(method, save=np.unique(np.append(even, by_factor[:-1])))
    if solver.relative_tolerance is None and (is_limited() or kinked(network)):
        solver = dataclasses.replace(solver, relative_tolerance=_LOOSE)
    if is_limited() or in_context(task, network):
        name = "fastest" if solver.name == "automatic" else solver.name
        most = _UNCOUNTED if solver.max_steps is None else solver.max_steps
        solver = dataclasses.replace(solver, name=name, max_steps=most)
    return dataclasses.replace(method, solver=solver)


@dataclasses.dataclass(frozen=True)
class _Reading:
    """One quantity of a probe. Readings of the same quantity compare equal, so compiled programs are reused."""

    probe: Probe
    name: str

    def __call__(self, network: Any) -> Any:
        return variables_of(self.probe(network))[self.name][1]


def _with_probes(method: Any, probes: Sequence[Probe], network: Any) -> Any:
    """Return the method, with the quantities of the probes added to its statistics."""
    first = network[0] if isinstance(network, list | tuple) else network
    readings = {
        name: (_Reading(probe, name), tuple(dimensions))
        for probe in probes
        for name, (dimensions, _) in variables_of(probe(first)).items()
    }
    return dataclasses.replace(method, statistics={**(method.statistics or {}), **readings}) if readings else method


def _duration(task: Learnable, network: Any, scale: Any, single: bool, normalised: bool) -> float:
    if not single:
        remedy = "give method=GradientFlow(duration=…)"
        raise InputError(
            "duration is missing, and the members of an ensemble have no common default",
            argument="duration",
            remedy=remedy,
        )
    try:
        return _until_learned(task, network, scale, normalised)
    except InputError as error:
        if scale == 1 and isinstance(network, TwoLayer | DiagonalLinear | DeepLinear):
            unit, size = at_unit_scale(network)
            if size <= SMALL_START.almost:  # the weights of the module are already small
                return _until_learned(task, unit, size, normalised)
        raise InputError(
            f"duration is missing, and no duration can be predicted ({error.args[0].removesuffix('.')})",
            argument="duration",
            remedy="give a duration",
        ) from None


def _until_learned(task: Learnable, network: Any, scale: float, normalised: bool) -> float:
    predicted = predict(task, network, scale=scale, normalised=normalised, curve=False).record
    return training_time(predicted, scale) if is_staircase(predicted) else float(predicted["time"][-1])


def _described(record: xr.Dataset, task: Learnable, flow: str, scale: Any) -> xr.Dataset:
    described = {name: value for name, value in task.attributes().items() if name in ("task", "data_hash")}
    attributes = {"flow": flow, "variables": "weights", **record.attrs, **described}
    if np.ndim(scale) == 0:
        attributes["scale"] = float(scale)
    return record.assign_attrs(attributes)
