"""Compiled integration of gradient flows, and errors that name the members whose integration failed."""

from __future__ import annotations

from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from dynascope.compilation import filter_jit
from dynascope.errors import DivergenceError
from dynascope.flows.blocks import each_member, working_memory
from dynascope.flows.ensemble import Ensemble
from dynascope.flows.objective import Objective, Statistics
from dynascope.flows.solvers.path_error import PathErrorController
from dynascope.flows.solvers.runge_kutta_legendre import RungeKuttaLegendre

__all__ = ["REASONS", "TOO_MANY", "integrate", "raise_if_failed", "usual_tolerance"]

# The method, step-size controller and default relative tolerance of each solver.
_SOLVERS: dict[str, tuple[Any, Any, float]] = {
    "explicit": (diffrax.Tsit5, diffrax.PIDController, 1e-8),
    "stabilised": (RungeKuttaLegendre, PathErrorController, 1e-3),
    "stiff": (diffrax.Kvaerno5, diffrax.PIDController, 1e-8),
}
REASONS = np.array(["duration", "loss_target", "stationarity"])
_REMEDIES = {
    "the initial loss or gradient is not finite": "choose a smaller scale, or check the network",
    "the step size underflowed": "loosen the tolerances, or use float64 weights",
    "max_steps was reached": (
        "raise max_steps, as in GradientFlow(solver=Solver(max_steps=…)), shorten the duration, loosen the tolerances, "
        "or choose another solver"
    ),
    "the solver failed": "choose another solver",
}
_PROBLEMS = tuple(_REMEDIES)
TOO_MANY = _PROBLEMS.index("max_steps was reached")


@filter_jit
def integrate(
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
    """Integrate one member or all members; return the curves, final weights, and stop times and reasons."""
    method, controller, _ = _SOLVERS[solver]

    def member(own: tuple[Any, Any]) -> dict[str, Any]:
        weights, rates = own
        start, restore = ravel_pytree(weights)
        speed, _ = ravel_pytree(
            jax.tree.map(lambda rate, part: jax.tree.map(lambda leaf: jnp.full_like(leaf, rate), part), rates, weights)
        )

        @jax.jit  # traced once for all uses in a solver
        @jax.value_and_grad
        def loss_and_gradient(vector: Any) -> Any:
            return objective.loss(restore(vector))

        by_weight = controller is diffrax.PIDController
        usual = numbers["relative_tolerance"] * jnp.sqrt(jnp.mean(start**2)) if by_weight else 0.0
        first_loss, first_gradient = loss_and_gradient(start)
        broken = ~(jnp.isfinite(first_loss) & jnp.isfinite(first_gradient).all())

        def velocity(t: Any, vector: Any, arguments: Any) -> Any:
            # A member with a non-finite initial loss does not move, so that it does not slow down the others.
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
        requested = {name: stop for name, stop in stops.items() if name in numbers}
        conditions = {name: lambda t, y, args, *, stop=stop, **_: stop(y) for name, stop in requested.items()}
        duration, begin = numbers["duration"], numbers.get("begin", jnp.zeros_like(numbers["duration"]))
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(velocity),
            method(),
            begin,
            duration,
            None,
            start,
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
        codes = [index * triggered[name] for index, name in enumerate(REASONS) if name in triggered]
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


def raise_if_failed(ensemble: Ensemble, failure: np.ndarray, stop_time: np.ndarray, max_steps: int) -> None:
    """Raise `DivergenceError` if the integration of a member failed."""
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


def usual_tolerance(solver: str, dtype: Any) -> float:
    """Default relative tolerance of a solver."""
    *_, usual = _SOLVERS[solver]
    return max(usual, 1000 * float(np.finfo(dtype).eps))
