"""Gradient flow, the small-step limit of full-batch gradient descent, integrated by adaptive solvers."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.flows.deadline import is_limited
from dynascope.flows.ensemble import Ensemble, Rates, gather
from dynascope.flows.integration import REASONS, TOO_MANY, integrate, raise_if_failed, usual_tolerance
from dynascope.flows.objective import Statistics, check_statistics
from dynascope.flows.pieces import in_pieces
from dynascope.flows.save_times import SaveTimes, recorded_times
from dynascope.flows.solvers.solver import Solver, SolverName
from dynascope.networks.user_module import converted
from dynascope.protocols import Learnable, Network, SumOfNeurons
from dynascope.validation import checked, require, require_kind
from dynascope.validation.bounded_scalars import PositiveFloat

__all__ = ["GradientFlow", "gradient_flow"]

_TIMES = 200  # recorded by default
_STEPS = 1_000_000
_MOST_IMPLICIT = 1500  # weights, above which a Jacobian is too large


@checked
@dataclasses.dataclass(frozen=True, kw_only=True)
class GradientFlow:
    """Gradient flow θ' = −η ∇L(θ) as the training `method` of `observe` and `flows.gradient_flow`.

    With `normalised`, a sum of neurons of degree κ follows the homogeneity-normalised flow

        θ_i' = −η ‖θ_i‖^(2−κ) ∇_i L.

    The normalised flow has the same fixed points as gradient flow, and its neurons align with the same directions.
    Small neurons of every degree grow exponentially at the rate ηκÛ, where the utility Û = E⟨f(x; u), r(x)⟩ is the
    correlation of a unit-norm neuron u with the residual r. Plateaus and jumps are therefore as distinct as for degree
    two.

    Attributes:
        duration: Final time of the flow. By default, `observe` predicts the time by which all features are learned.
        learning_rate: η, or several values for an ensemble, or a mapping from names of weight arrays (or of parts of
            the network) to their rates, such as `{"first": 1.0, "second": 0.1}`. The unit of time does not depend on η,
            so training with a rate of η is η times as fast.
        normalised: Whether each neuron has the rate ‖θ_i‖^(2−κ); requires a network with `neurons` (see
            `protocols.SumOfNeurons`).
        solver: The name of a solver, or a `Solver` with tolerances.
        save: Number of recorded times, equally spaced from 0 to the duration, or the times themselves. The default is
            200; for a single network, `observe` records 1000 equally spaced and 1000 log-spaced times.
        statistics: Additional quantities to record: name → (JAX function of the network, names of the dimensions of its
            value).
        loss_target: Loss at which to stop; the flow ends after the first step at which the loss is below this value.
        stationarity: Gradient norm ‖∇L‖ at which to stop; the flow ends after the first step at which the norm is below
            this value.

    Raises:
        InputError: If a number is outside its domain, or if the solver is unknown.

    References:
        Kidger, arXiv:2202.02435 (diffrax). The normalised flow: arXiv:2602.03655.

    Example:
        >>> from dynascope import observe
        >>> from dynascope.networks import TwoLayer
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")
        >>> run = observe(task, TwoLayer(2, 4, 2), scale=0.01, method=GradientFlow(duration=30.0, save=4))
        >>> [round(float(loss), 3) for loss in run["loss"]]
        [1.25, 0.099, 0.0, 0.0]
    """

    duration: PositiveFloat | None = None
    learning_rate: Rates = 1.0
    normalised: bool = False
    solver: SolverName | Solver = "automatic"
    save: SaveTimes | None = None
    statistics: Mapping[str, tuple[Callable[[Any], Any], Sequence[str]]] | None = None
    loss_target: PositiveFloat | None = None
    stationarity: PositiveFloat | None = None

    def __post_init__(self):
        check_statistics(self.statistics)


@checked
def gradient_flow(
    task: Learnable,
    network: Network | Sequence[Network],
    method: GradientFlow,
    *,
    scale: PositiveFloat | Sequence[float] | np.ndarray = 1.0,
    return_networks: bool = False,
) -> Any:
    """Train a network by gradient flow, θ' = −η ∇L(θ), from θ(0) = scale · (the weights of the network).

    The loss is L = ½ E‖f(x) − y‖² (mean over samples, sum over outputs). Lists of networks, scales and learning rates
    define an ensemble of all combinations. A single compiled program solves the whole ensemble, with separate step
    sizes and stopping times for each member. For each list, the record has a dimension: `seed`, `scale` and
    `learning_rate`, in this order.

    A program is compiled for each structure (shapes, statistics, solver, stopping conditions) and reused in later
    calls. For reuse, the statistics must be the same function objects, not new lambdas. Values in the closure of a
    statistic are compiled into the program, except for arrays in a `jax.tree_util.Partial`.

    Args:
        network: An equinox module that maps a batch (n, d) to outputs (n, c), a PyTorch or equinox module that
            `networks.user_network` supports, or a list of modules that differ only in their weights. The weights are
            float32 or float64, and their precision is used throughout.
        task: Samples, or an expectation in closed form (see `tasks.Expectation`).
        method: Duration, learning rate, solver and recorded quantities of the flow.
        scale: One or several factors by which the initial weights are multiplied.
        return_networks: Whether to also return the network with its final weights. The weights of an ensemble have the
            ensemble dimensions first.

    Returns:
        Record with `loss` and each statistic along `time` (constant after a member has stopped), and with the
        `stop_time` and `stop_reason` ("duration", "loss_target" or "stationarity") of each member. With
        `return_networks`, the pair of record and network.

    Raises:
        InputError: If an argument is outside its domain.
        DivergenceError: If the initial loss or gradient is not finite, if the step size underflows, or if `max_steps`
            is reached.

    Example:
        >>> from dynascope.networks.two_layer import TwoLayer
        >>> from dynascope.tasks import Task
        >>> task = Task(np.eye(2), np.diag([2.0, 1.0]), name="two modes")
        >>> record = gradient_flow(task, TwoLayer(2, 4, 2), GradientFlow(duration=30.0, save=4), scale=[0.1, 0.01])
        >>> dict(record.sizes), [round(float(loss), 3) for loss in record.loss[1]]
        ({'scale': 2, 'time': 4}, [1.25, 0.099, 0.0, 0.0])
    """
    duration, chosen = method.duration, Solver.of(method.solver)
    require_kind(PositiveFloat, duration=duration)  # only `observe` chooses a duration
    solver = "explicit" if chosen.name == "automatic" else chosen.name
    statistics = check_statistics(method.statistics)
    if method.normalised:
        _require_neurons(network if isinstance(network, list | tuple) else [network])
    ensemble = gather(task, converted(network), scale, method.learning_rate)
    many = bool(ensemble.dimensions)
    _require_solver(solver, many)
    assert duration is not None
    times = recorded_times(_TIMES if method.save is None else method.save, duration)
    relative = chosen.relative_tolerance
    if relative is None:
        relative = usual_tolerance("explicit" if solver == "fastest" else solver, ensemble.dtype)
    options = {
        "duration": duration,
        "relative_tolerance": relative,
        "absolute_tolerance": chosen.absolute_tolerance,
        "loss_target": method.loss_target,
        "stationarity": method.stationarity,
    }
    # Arrays instead of static values, so that new values need no compilation.
    numbers = {name: np.asarray(value, times.dtype) for name, value in options.items() if value is not None}
    max_steps = _STEPS if chosen.max_steps is None else chosen.max_steps
    fixed = statistics, solver, max_steps, bool(method.normalised), many
    if not many and (solver == "fastest" or is_limited()):
        times, result = _piece_by_piece(ensemble, times, numbers, fixed)
    else:
        result = ensemble.run(integrate, times, numbers, *fixed)
    raise_if_failed(ensemble, result["failure"], result["stop_time"], max_steps)

    members = tuple(ensemble.dimensions)
    record = ensemble.record(
        ("time", times),
        result["curves"],
        {name: axes for name, _, axes in statistics},
        {"stop_time": (members, result["stop_time"]), "stop_reason": (members, REASONS[result["reason"]])},
        {
            "flow": "homogeneity-normalised gradient flow" if method.normalised else "gradient flow",
            "solver": solver,
            "relative_tolerance": relative,
            **({} if chosen.absolute_tolerance is None else {"absolute_tolerance": chosen.absolute_tolerance}),
        },
    )
    return (record, ensemble.network(result["weights"])) if return_networks else record


def _piece_by_piece(
    ensemble: Ensemble, times: Any, numbers: dict[str, Any], fixed: tuple[Statistics, str, int, bool, bool]
) -> tuple[Any, dict]:
    """Train a single network in pieces until a time limit is reached, and return the recorded times and the results."""
    statistics, solver, max_steps, *rest = fixed
    start, _ = ravel_pytree(ensemble.weights)
    solvers = [solver]
    if solver == "fastest":
        solvers = ["explicit", "stiff"] if start.size <= _MOST_IMPLICIT else ["explicit"]
    if solvers[0] != "stabilised":
        # The tolerance of the initial weights also applies after they have grown.
        usual = numbers["relative_tolerance"] * np.sqrt(np.mean(np.square(start)))
        numbers = {"absolute_tolerance": np.asarray(usual, times.dtype), **numbers}

    def piece(begin: np.ndarray, weights: Any, solver: str, length: int) -> tuple[dict[str, Any], bool]:
        own = dataclasses.replace(ensemble, weights=weights)
        result = own.run(integrate, times, {**numbers, "begin": begin}, statistics, solver, length, *rest)
        return result, int(result["failure"]) == TOO_MANY

    return in_pieces(piece, ensemble.weights, times, float(numbers["duration"]), max_steps, solvers)


def _require_solver(solver: str, many: bool) -> None:
    require(
        solver != "exact",
        "solver is 'exact', but gradient_flow integrates the weights numerically",
        argument="solver",
        value=solver,
        remedy="call observe, which supports exact changes of variables, or choose another solver",
    )
    require(
        solver != "fastest" or not many,
        "solver is 'fastest', which ensembles do not support",
        argument="solver",
        value=solver,
        remedy="choose 'explicit', 'stabilised' or 'stiff'",
    )


def _require_neurons(networks: Sequence[Any]) -> None:
    for network in networks:
        name = type(network).__name__
        require(
            isinstance(network, SumOfNeurons),
            f"the network, of type {name}, does not define its neurons",
            argument="network",
            value=name,
            remedy="define `neurons`, `with_neurons`, `weighted` and `degree`, or choose normalised=False",
        )
        smallest = float(np.min(np.sum(np.square(network.neurons), axis=-1)))
        require(
            smallest > 0,
            "all weights of a neuron are zero",
            argument="network",
            value=smallest,
            remedy="give non-zero initial weights for every neuron",
        )
