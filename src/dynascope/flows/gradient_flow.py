"""Gradient flow: full-batch training in the limit of small steps, by an adaptive solver."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.arguments import require, require_choice, require_count, require_positive
from dynascope.compilation import filter_jit, without_callbacks
from dynascope.errors import DivergenceError
from dynascope.flows.blocks import each_member, working_memory
from dynascope.flows.deadline import is_limited
from dynascope.flows.ensemble import Ensemble, gather
from dynascope.flows.objective import Objective, Statistics, check_statistics
from dynascope.flows.pieces import in_pieces
from dynascope.flows.save_times import recorded_times
from dynascope.flows.solvers.path_error import PathErrorController
from dynascope.flows.solvers.runge_kutta_legendre import RungeKuttaLegendre
from dynascope.protocols import Learnable, Network, SumOfNeurons

__all__ = ["gradient_flow"]

# Each solver with its controller of steps and its relative tolerance.
_SOLVERS: dict[str, tuple[Any, Any, float]] = {
    "explicit": (diffrax.Tsit5, diffrax.PIDController, 1e-8),
    "stabilised": (RungeKuttaLegendre, PathErrorController, 1e-3),
    "stiff": (diffrax.Kvaerno5, diffrax.PIDController, 1e-8),
}
_AUTOMATIC = "automatic"
_MOST_IMPLICIT = 1500  # weights, beyond which a Jacobian is too large
_REASONS = np.array(["duration", "loss_target", "stationarity"])
_REMEDIES = {
    "the start is not finite": "choose a smaller scale, or check the network",
    "the step size underflowed": "loosen the tolerances, or use float64 weights",
    "max_steps was reached": "raise max_steps, shorten the duration, loosen the tolerance, or choose another solver",
    "the solver failed": "choose another solver",
}
_PROBLEMS = tuple(_REMEDIES)
_TOO_MANY = _PROBLEMS.index("max_steps was reached")


def gradient_flow(
    network: Network | Sequence[Network],
    task: Learnable,
    *,
    duration: float,
    scale: float | Sequence[float] | np.ndarray = 1.0,
    learning_rate: float | Sequence[float] | np.ndarray | Mapping[str, float] = 1.0,
    save: int | Sequence[float] | np.ndarray = 200,
    statistics: Mapping[str, tuple[Callable[[Any], Any], Sequence[str]]] | None = None,
    loss_target: float | None = None,
    stationarity: float | None = None,
    relative_tolerance: float | None = None,
    absolute_tolerance: float | None = None,
    solver: Literal["explicit", "stabilised", "stiff", "automatic"] = "explicit",
    max_steps: int = 1_000_000,
    normalised: bool = False,
    return_networks: bool = False,
) -> Any:
    """Train by gradient flow, θ' = −η ∇L(θ), from θ(0) = scale · (the network's weights).

    With `normalised`, by the homogeneity-normalised flow θ_i' = −η ‖θ_i‖^(2−κ) ∇_i L of a sum of neurons of degree κ.
    It has the same fixed points, and the neurons align in the same directions, but small neurons of every degree grow
    exponentially, at the rate κ Û, so that plateaus and jumps are as distinct as those of degree two.

    The loss is L = ½ E‖f(x) − y‖² (mean over samples, sum over outputs). Time is that of rate 1: with a learning rate
    η everything happens η times as fast. Lists of networks, scales and learning rates make an ensemble of all
    combinations, solved in one compiled program in which each member has its own steps and stops on its own; their
    dimensions in the record are `seed`, `scale`, `learning_rate`, in this order, each present if a list was given.

    A program is compiled for each structure (shapes, statistics, solver, stops) and found again at the next call;
    pass the same function objects as statistics, not new lambdas, to benefit. What else a statistic knows is part of
    the program too, but for the arrays in a `jax.tree_util.Partial`.

    Args:
        network: An equinox module, a function of a batch (n, d) with outputs (n, c), with float64 or float32 weights,
            whose precision is used throughout; or a list of modules that differ only in their weights.
        task: What it learns: samples, or an expectation in closed form (see `tasks.Expectation`).
        duration: Time at which the flow ends.
        scale: Factor, or factors, on the initial weights.
        learning_rate: η, or several, or one rate for each layer as a mapping from the name of a weight array (or of a
            part of the network that holds some) to its rate, as in `{"first": 1.0, "second": 0.1}`.
        save: Number of equally spaced times from 0 to the duration at which to record, or these times.
        statistics: Further quantities to record: name → (JAX function of the network, names of the axes of its value).
        loss_target: Stop at the end of the step in which the loss falls below.
        stationarity: Stop at the end of the step in which ‖∇L‖ falls below.
        relative_tolerance: Error of one step relative to each weight, 1e-8 if not given; for the stabilised solver,
            relative to the distance that the step moves, 1e-3. Not below 1000 units of rounding unless given.
        absolute_tolerance: Error of one step that is allowed besides. If not given, the relative tolerance times the
            root mean square of the initial weights, so that the smallest start is followed as well as any; for the
            stabilised solver, zero.
        solver: "explicit" (Tsitouras, order 5); "stabilised" (Runge–Kutta–Legendre, order 2), for smooth activations,
            faster where time scales differ by 30 or more and 1e-3 is accurate enough; "stiff" (Kvaerno, order 5,
            implicit), faster for up to some hundred weights whose time scales differ by more than 1000; "automatic", of
            a single network, explicit or, up to 1500 weights, stiff, whichever gets farther in a second.
        max_steps: Number of steps after which a member is given up.
        normalised: Whether each neuron has the rate ‖θ_i‖^(2−κ); for networks with `neurons` (see
            `protocols.SumOfNeurons`).
        return_networks: Also return the network with its final weights; those of an ensemble have its dimensions in
            front.

    Returns:
        The record: `loss` and each statistic along `time`; after a member's stop they keep their final value.
        `stop_time` and `stop_reason` ("duration", "loss_target" or "stationarity") of each member. With
        `return_networks`, the pair of the record and the network.

    Raises:
        InputError: An argument is outside its domain.
        DivergenceError: A start that is not finite, steps that became too small, or `max_steps` reached.

    References:
        Kidger, arXiv:2202.02435 (diffrax). The normalised flow: arXiv:2602.03655.

    Example:
        >>> from dynascope.networks.two_layer import TwoLayer
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")
        >>> record = gradient_flow(TwoLayer(2, 4, 2), task, duration=30.0, scale=[0.1, 0.01], save=4)
        >>> dict(record.sizes), [round(float(loss), 3) for loss in record.loss[1]]
        ({'scale': 2, 'time': 4}, [1.25, 0.099, 0.0, 0.0])
    """
    require_positive(duration=duration)
    require_count(max_steps=max_steps)
    chosen = {"loss_target": loss_target, "stationarity": stationarity, "absolute_tolerance": absolute_tolerance}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    require_positive(**chosen)
    require_choice("solver", solver, (*_SOLVERS, _AUTOMATIC))
    checked = check_statistics(statistics)
    if normalised:
        _require_neurons(network if isinstance(network, list | tuple) else [network])
    ensemble = gather(network, task, scale, learning_rate)
    times = recorded_times(save, duration)
    relative = _relative_tolerance(solver, ensemble.dtype, relative_tolerance)
    numbers = {"duration": duration, "relative_tolerance": relative, **chosen}
    # As arrays, so that other values do not need another program.
    numbers = {name: np.asarray(value, times.dtype) for name, value in numbers.items()}
    many = bool(ensemble.dimensions)
    fixed = checked, solver, int(max_steps), bool(normalised), many
    require(
        solver != _AUTOMATIC or not many,
        "the solver of an ensemble is to be chosen on the way",
        argument="solver",
        value=solver,
        remedy=f"choose {', '.join(_SOLVERS)}",
    )
    if not many and (solver == _AUTOMATIC or is_limited()):
        times, result = _piece_by_piece(ensemble, times, numbers, fixed)
    else:
        result = ensemble.run(_integrate, times, numbers, *fixed)
    _raise_if_failed(ensemble, result["failure"], result["stop_time"], max_steps)

    members = tuple(ensemble.dimensions)
    record = ensemble.record(
        ("time", times),
        result["curves"],
        {name: axes for name, _, axes in checked},
        {"stop_time": (members, result["stop_time"]), "stop_reason": (members, _REASONS[result["reason"]])},
        {
            "flow": "homogeneity-normalised gradient flow" if normalised else "gradient flow",
            "solver": solver,
            "relative_tolerance": relative,
            **({} if absolute_tolerance is None else {"absolute_tolerance": absolute_tolerance}),
        },
    )
    return (record, ensemble.network(result["weights"])) if return_networks else record


def _piece_by_piece(ensemble: Ensemble, times: Any, numbers: dict[str, Any], fixed: tuple) -> tuple[Any, dict]:
    """The times that a single run reached before a deadline, and what it found."""
    checked, solver, max_steps, *rest = fixed
    start, _ = ravel_pytree(ensemble.weights)
    solvers = [solver]
    if solver == _AUTOMATIC:
        solvers = ["explicit", "stiff"] if start.size <= _MOST_IMPLICIT else ["explicit"]
    if solvers[0] != "stabilised":
        # That of the start, also when the weights have grown.
        usual = numbers["relative_tolerance"] * np.sqrt(np.mean(np.square(start)))
        numbers = {"absolute_tolerance": np.asarray(usual, times.dtype), **numbers}

    def piece(begin: np.ndarray, weights: Any, solver: str, length: int) -> tuple[dict[str, Any], bool]:
        own = dataclasses.replace(ensemble, weights=weights)
        result = own.run(_integrate, times, {**numbers, "begin": begin}, checked, solver, length, *rest)
        return result, int(result["failure"]) == _TOO_MANY

    return in_pieces(piece, ensemble.weights, times, float(numbers["duration"]), max_steps, solvers)


@filter_jit
def _integrate(
    objective: Objective,
    weights: Any,
    rates: Any,
    times: Any,
    numbers: dict[str, Any],
    statistics: Statistics,
    solver: str,
    max_steps: int,
    normalised: bool,
    many: bool,
) -> dict[str, Any]:
    method, controller, _ = _SOLVERS[solver]

    def member(own: tuple[Any, Any]) -> dict[str, Any]:
        weights, rates = own
        start, restore = ravel_pytree(weights)
        speed, _ = ravel_pytree(
            jax.tree.map(lambda rate, part: jax.tree.map(lambda leaf: jnp.full_like(leaf, rate), part), rates, weights)
        )

        @jax.jit  # traced once for all places where a solver asks
        @jax.value_and_grad
        def loss_and_gradient(vector: Any) -> Any:
            return objective.loss(restore(vector))

        by_weight = controller is diffrax.PIDController
        usual = numbers["relative_tolerance"] * jnp.sqrt(jnp.mean(start**2)) if by_weight else 0.0
        first_loss, first_gradient = loss_and_gradient(start)
        broken = ~(jnp.isfinite(first_loss) & jnp.isfinite(first_gradient).all())

        def velocity(t: Any, vector: Any, arguments: Any) -> Any:
            # A member without a finite start stays where it is, rather than hold up the others.
            return jnp.where(broken, 0, -speed * neuron_rates(vector) * loss_and_gradient(vector)[1])

        def neuron_rates(vector: Any) -> Any:
            if not normalised:
                return 1.0
            network = eqx.combine(restore(vector), objective.frame)
            rates = jnp.sum(network.neurons**2, axis=1, keepdims=True) ** (1 - network.degree / 2)
            spread = network.with_neurons(jnp.broadcast_to(rates, network.neurons.shape))
            return ravel_pytree(eqx.filter(spread, eqx.is_inexact_array))[0]

        stops = {
            "loss_target": lambda vector: loss_and_gradient(vector)[0] < numbers["loss_target"],
            "stationarity": lambda vector: jnp.linalg.norm(loss_and_gradient(vector)[1]) < numbers["stationarity"],
        }
        asked = {name: stop for name, stop in stops.items() if name in numbers}
        conditions = {name: lambda t, y, args, *, stop=stop, **_: stop(y) for name, stop in asked.items()}
        duration, begin = numbers["duration"], numbers.get("begin", jnp.zeros_like(numbers["duration"]))
        solve = functools.partial(
            diffrax.diffeqsolve,
            diffrax.ODETerm(velocity),
            method(),
            begin,
            duration,
            None,
            saveat=diffrax.SaveAt(
                subs={
                    "path": diffrax.SubSaveAt(
                        ts=jnp.maximum(times, begin), fn=lambda t, y, args: objective.measure(restore(y), statistics)
                    ),
                    "end": diffrax.SubSaveAt(t1=True),
                }
            ),
            stepsize_controller=controller(
                rtol=numbers["relative_tolerance"],
                atol=numbers.get("absolute_tolerance", usual),
                dtmin=jnp.finfo(start.dtype).eps * duration,
                force_dtmin=False,
            ),
            event=diffrax.Event(conditions) if conditions else None,
            adjoint=diffrax.ForwardMode(),
            max_steps=max_steps,
            throw=False,
        )
        # Its times are checked; what else can fail is told by its result.
        solution = without_callbacks(solve)(start)
        assert solution.ts is not None
        assert solution.ys is not None
        stop_time = jnp.where(broken, 0, solution.ts["end"][0])
        end_weights = restore(solution.ys["end"][0])
        end = objective.measure(end_weights, statistics)
        reached = solution.ts["path"] <= stop_time
        curves = jax.tree.map(
            lambda path, final: jnp.where(reached.reshape(-1, *(1,) * final.ndim), path, final),
            solution.ys["path"],
            end,
        )
        triggered = solution.event_mask or {}
        codes = [index * triggered[name] for index, name in enumerate(_REASONS) if name in triggered]
        result, results = solution.result, diffrax.RESULTS
        failures = [
            broken,
            result == results.dt_min_reached,
            result == results.max_steps_reached,
            ~((result == results.successful) | (result == results.event_occurred)),
        ]
        return {
            "curves": curves,
            "weights": end_weights,
            "stop_time": stop_time,
            "reason": sum(codes, jnp.zeros((), int)),
            "failure": jnp.select(failures, list(range(len(_PROBLEMS))), -1),
        }

    first = jax.tree.map(lambda leaf: leaf[0], weights) if many else weights
    needed = working_memory(objective.loss, first)
    return each_member(member, (weights, rates), many=many, needed=needed)


def _require_neurons(networks: Sequence[Any]) -> None:
    for network in networks:
        name = type(network).__name__
        require(
            isinstance(network, SumOfNeurons),
            f"a {name} does not say what its neurons are",
            argument="network",
            value=name,
            remedy="give it `neurons`, `with_neurons`, `weighted` and `degree`, or leave normalised off",
        )
        smallest = float(np.min(np.sum(np.square(network.neurons), axis=-1)))
        require(
            smallest > 0,
            "a neuron has no weights other than zero",
            argument="network",
            value=smallest,
            remedy="start every neuron away from zero",
        )


def _raise_if_failed(ensemble: Ensemble, failure: np.ndarray, stop_time: np.ndarray, max_steps: int) -> None:
    failed = np.flatnonzero(np.ravel(failure) >= 0)
    if not len(failed):
        return
    first = failed[0]
    problem = _PROBLEMS[np.ravel(failure)[first]]
    time = float(np.ravel(stop_time)[first])
    count = f" ({max_steps})" if problem.startswith("max_steps") else ""
    raise DivergenceError(
        f"{problem}{count} at time {time:.6g}{ensemble.named(failed)}", time=time, remedy=_REMEDIES[problem]
    )


def _relative_tolerance(solver: str, dtype: Any, chosen: float | None) -> float:
    *_, usual = _SOLVERS["explicit" if solver == _AUTOMATIC else solver]
    relative = max(usual, 1000 * float(np.finfo(dtype).eps)) if chosen is None else chosen
    require_positive(relative_tolerance=relative)
    return relative
