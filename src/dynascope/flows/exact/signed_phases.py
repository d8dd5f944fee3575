"""Gradient flow of diagonal linear networks at any initialisation scale, by an exact change of variables."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from dynascope.flows.solvers.adaptive import StiffFlow
from dynascope.flows.solvers.rosenbrock import solution
from dynascope.flows.solvers.solver_choice import PreparedFlow, Solver, Work
from dynascope.flows.solvers.stepping import Tolerance, require_correlation, resolving
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["diagonal_equations", "diagonal_flow", "prepare_phases"]

_SLOW = 3.0  # matrix-vector products are limited by memory, so each operation counts this many times


def diagonal_flow(
    task: Task,
    *,
    scale: PositiveFloat,
    duration: PositiveFloat,
    points: PositiveInt = 4000,
    tolerance: Tolerance = 1e-9,
    max_steps: PositiveInt = 10_000_000,
    operations: PositiveFloat | None = None,
    solver: Solver | None = None,
    partial: bool = False,
) -> xr.Dataset:
    """Solve the gradient flow of f(x) = (u ⊙ v)ᵀ x from u = scale·1, v = 0.

    With the time integral G of −∂L/∂β, the weights are u ± v = scale·exp(±G). The flow therefore reduces exactly to d
    equations,

        G' = E[x (y − βᵀx)],   β = (scale²/2) sinh 2G.

    The solution G is of order log(1/scale), so no precision is lost even for initial weights of 1e-300.

    Args:
        task: Inputs and one target.
        scale: Initial value of u.
        duration: Gradient-flow time at which to stop.
        points: Maximum number of times to return.
        tolerance: Relative and absolute tolerance of each solver step.
        max_steps: Maximum number of steps.
        operations: Maximum number of floating-point operations, counted to within a factor of about two; None for no
            limit.
        solver: "explicit" or "stiff" (linearly implicit, for inputs with very different variances). The default is
            "stiff" for few inputs; for many inputs, the solver switches to "stiff" if "explicit" takes too many steps.
        partial: Whether to return the trajectory so far, instead of raising an error, if a limit is reached.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`, and `coefficient` (β) over `time`, `feature`. The
        attribute `operations` is the estimated number of floating-point operations.

    Raises:
        InputError: If there is more than one target, if the target is uncorrelated with the inputs, or if a number is
            not positive.
        DivergenceError: If the solver fails or reaches a limit.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.array([[4.0], [-1.0]]) * 2**0.5)
        >>> curve = diagonal_flow(task, scale=1e-100, duration=600.0)
        >>> curve["coefficient"].to_numpy()[-1].round(6)
        array([ 4., -1.])
    """
    record, took = prepare_phases(task, scale=scale).solve(
        duration=duration,
        tolerance=tolerance,
        max_steps=max_steps,
        operations=operations,
        solver=solver,
        partial=partial,
    )
    record = resolving(record, points)
    return make_record(
        {
            "loss": (["time"], record["loss"]),
            "descent_rate": (["time"], record["descent_rate"]),
            "coefficient": (["time", "feature"], record["coefficient"]),
        },
        {"time": record["time"], "feature": list(task.feature_names)},
        attributes={"flow": "gradient flow", "variables": "signed phases", "scale": scale, "operations": took},
    )


@checked
def prepare_phases(task: Task, *, scale: PositiveFloat) -> PreparedFlow:
    """Check the arguments of `diagonal_flow`, and return its equations and its initial state.

    Raises:
        InputError: Under the same conditions as `diagonal_flow`.

    Example:
        >>> prepare_phases(Task(np.eye(3), np.ones((3, 1))), scale=1e-3).state
        array([0., 0., 0.])
    """
    require(
        task.output_dimension == 1,
        f"the task has {task.output_dimension} targets",
        argument="task",
        value=task.output_dimension,
        remedy="choose one target, since a diagonal linear network has one output",
    )
    require_correlation(task)
    cross, equations = task.cross_moment[0], diagonal_equations(task)
    root = task.inputs / task.samples**0.5 if equations < len(cross) else None
    gram = task.input_moment if root is None else None
    flow = _Phases(gram, root, cross, np.asarray(task.target_power), np.asarray(np.log(scale)))
    return PreparedFlow(flow, np.zeros(len(cross)), equations, _work(len(cross), equations))


def diagonal_equations(task: Task) -> int:
    """Number of linear equations in an implicit step of `diagonal_flow`: one per input or one per sample.

    Example:
        >>> diagonal_equations(Task(np.eye(3), np.ones((3, 1)))), diagonal_equations(Task(np.eye(2, 9), [[1.0], [2.0]]))
        (3, 2)
    """
    # If there are few samples, they determine the moments.
    return task.samples if 2 * task.samples <= task.input_dimension else task.input_dimension


def _work(inputs: int, equations: int) -> Work:
    """Floating-point operations of a step, computed from the moments of the inputs or from the samples."""
    by_samples = equations < inputs
    product = 2.0 * _SLOW * (2 * equations * inputs if by_samples else inputs**2)
    formed = 2.0 * equations**2 * inputs if by_samples else 0.0
    # Explicit: seven stages and the record. Implicit: six stages, each with a linear solve, and one factorisation.
    return Work(8 * product, formed + 2 / 3 * equations**3 + 14 * product)


class _Phases(StiffFlow):
    """The flow of the integrated gradient G.

    Attributes:
        gram: Σxx, or None if `root` is used.
        root: R with Σxx = RᵀR, used if R has at most half as many rows as columns.
        cross: Σxy.
        power: E y².
        log_scale: Logarithm of the scale.
    """

    gram: Float[Array | np.ndarray, "d d"] | None
    root: Float[Array | np.ndarray, "n d"] | None
    cross: Float[Array | np.ndarray, " d"]
    power: Float[Array | np.ndarray, ""]
    log_scale: Float[Array | np.ndarray, ""]

    def start(self, state: Array) -> Array:
        return state

    def velocity(self, moving: Array, state: Array) -> Array:
        return jnp.asarray(self.cross) - self._spread(self._coefficient(moving))

    def inverse(self, shift: Array, state: Array) -> Callable[[Array], Array]:
        # J = −Σxx diag(dβ/dG).
        if self.gram is None:
            root, slope = jnp.asarray(self.root), self._slope(state)
            solved = solution(shift * jnp.eye(len(root)) + (root * slope) @ root.T)

            def solve(right: Array) -> Array:
                # The matrix inversion lemma.
                return (right - root.T @ solved(root @ (slope * right))) / shift

            return solve
        jacobian = -self.gram * self._slope(state)
        return solution(shift * jnp.eye(len(state)) - jacobian)

    def size(self, change: Array, state: Array) -> Array:
        """Return the larger of the maximum change in a phase and the relative change in the outputs."""
        learned = self._slope(state) * change
        return jnp.maximum(jnp.max(jnp.abs(change)), jnp.sqrt(learned @ self._spread(learned) / self.power))

    def moved(self, moving: Array, state: Array) -> Array:
        return moving

    def statistics(self, state: Array) -> dict[str, Array]:
        beta, slope = self._coefficient(state), self.velocity(state, state)
        # L = ½ E y² − ½ βᵀ(Σxy + slope), with ‖∇L‖² = Σ slope² (u² + v²).
        loss = (self.power - beta @ (self.cross + slope)) / 2
        return {
            "loss": jnp.maximum(loss, 0.0),
            "descent_rate": jnp.sum(slope**2 * self._slope(state)),
            "coefficient": beta,
        }

    def _spread(self, coefficient: Array) -> Array:
        """Compute Σxx β."""
        if self.gram is not None:
            return jnp.asarray(self.gram) @ coefficient
        root = jnp.asarray(self.root)
        return jnp.asarray(root.T @ (root @ coefficient))

    def _coefficient(self, phase: Array) -> Array:
        grown, shrunk = self._parts(phase)
        return jnp.sign(phase) * (grown - shrunk) / 4

    def _slope(self, phase: Array) -> Array:
        """Compute dβ/dG = u² + v²."""
        grown, shrunk = self._parts(phase)
        return (grown + shrunk) / 2

    def _parts(self, phase: Array) -> tuple[Array, Array]:
        start = jnp.asarray(self.log_scale)
        return jnp.exp(2 * (start + jnp.abs(phase))), jnp.exp(2 * (start - jnp.abs(phase)))
