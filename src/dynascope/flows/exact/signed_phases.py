"""Gradient flow of diagonal linear networks at any initialisation scale, by an exact change of variables."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float

from dynascope.flows.solvers.adaptive import StiffFlow
from dynascope.flows.solvers.rosenbrock import solution
from dynascope.flows.solvers.solver_choice import Begun, Solver, Work
from dynascope.flows.solvers.stepping import Tolerance, require_correlation, resolving
from dynascope.results import make_record
from dynascope.tasks.task import Task
from dynascope.validation import checked, require
from dynascope.validation.bounded_scalars import PositiveFloat, PositiveInt

__all__ = ["begin_phases", "diagonal_equations", "diagonal_flow"]

_SLOW = 3.0  # products of a matrix and a vector wait for the memory, and so take as long as more operations


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
    """Train f(x) = (u ⊙ v)ᵀ x by gradient flow from u = scale·1, v = 0.

    With G the integral of −∂L/∂β, the weights are u ± v = scale·exp(±G), so that β = (scale²/2) sinh 2G and the flow is
    exactly the d-dimensional equation G' = E[x (y − βᵀx)]. Its solution stays of order log(1/scale), so a start of
    1e-300 costs no precision.

    Args:
        task: Inputs and one target.
        scale: Initial value of u.
        duration: Gradient-flow time at which to stop.
        points: How many times to keep.
        tolerance: Relative and absolute tolerance of each solver step.
        max_steps: Number of steps after which the flow is given up.
        operations: Floating-point operations after which it is given up too, counted to within a factor of two or so;
            None for no limit.
        solver: "explicit" or "stiff" (linearly implicit, for inputs of very different spreads); if not given, the
            second for few inputs, and for more where the first takes too many steps.
        partial: Whether to return what was followed until a flow is given up for its steps rather than raise.

    Returns:
        Record with `loss` and `descent_rate` (−dL/dt) over `time`, and `coefficient` (β) over `time`, `feature`; its
        attribute `operations` says what it took.

    Raises:
        InputError: More than one target, a target without correlation with the inputs, or a number that is not
            positive.
        DivergenceError: The solver could not go on, or `max_steps` was reached.

    Example:
        >>> task = Task(np.eye(2) * 2**0.5, np.array([[4.0], [-1.0]]) * 2**0.5)
        >>> curve = diagonal_flow(task, scale=1e-100, duration=600.0)
        >>> curve["coefficient"].to_numpy()[-1].round(6)
        array([ 4., -1.])
    """
    record, took = begin_phases(task, scale=scale).follow(
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
def begin_phases(task: Task, *, scale: PositiveFloat) -> Begun:
    """What `diagonal_flow` follows, and from where, checked and set up once for any number of tolerances.

    Raises:
        InputError: As `diagonal_flow`.

    Example:
        >>> begin_phases(Task(np.eye(3), np.ones((3, 1))), scale=1e-3).state
        array([0., 0., 0.])
    """
    require(
        task.output_dimension == 1,
        f"the task has {task.output_dimension} targets",
        argument="task",
        value=task.output_dimension,
        remedy="a diagonal linear network has one output, so choose one target",
    )
    require_correlation(task)
    cross, equations = task.cross_moment[0], diagonal_equations(task)
    root = task.inputs / task.samples**0.5 if equations < len(cross) else None
    gram = task.input_moment if root is None else None
    flow = _Phases(gram, root, cross, np.asarray(task.target_power), np.asarray(np.log(scale)))
    return Begun(flow, np.zeros(len(cross)), equations, _work(len(cross), equations))


def diagonal_equations(task: Task) -> int:
    """How many equations an implicit step of `diagonal_flow` solves at once: one for each input or for each sample.

    Example:
        >>> diagonal_equations(Task(np.eye(3), np.ones((3, 1)))), diagonal_equations(Task(np.eye(2, 9), [[1.0], [2.0]]))
        (3, 2)
    """
    # Of few samples the inputs say all that their moments do.
    return task.samples if 2 * task.samples <= task.input_dimension else task.input_dimension


def _work(inputs: int, equations: int) -> Work:
    """Of a step, by the moments of the inputs or by the samples."""
    by_samples = equations < inputs
    product = 2.0 * _SLOW * (2 * equations * inputs if by_samples else inputs**2)
    formed = 2.0 * equations**2 * inputs if by_samples else 0.0
    # Seven stages and what is recorded; or six, each with a solution, and one factorisation.
    return Work(8 * product, formed + 2 / 3 * equations**3 + 14 * product)


class _Phases(StiffFlow):
    """The integral of the gradient, G.

    Attributes:
        gram: Σxx; None where its root has less than half as many rows.
        root: A matrix R with Σxx = RᵀR, instead.
        cross: Σxy.
        power: E y².
        log_scale: log of the scale.
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
        """The largest change of a phase, or that of the outputs beside the targets."""
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
        """Σxx β."""
        if self.gram is not None:
            return jnp.asarray(self.gram) @ coefficient
        root = jnp.asarray(self.root)
        return jnp.asarray(root.T @ (root @ coefficient))

    def _coefficient(self, phase: Array) -> Array:
        grown, shrunk = self._parts(phase)
        return jnp.sign(phase) * (grown - shrunk) / 4

    def _slope(self, phase: Array) -> Array:
        """dβ/dG, which is u² + v² too."""
        grown, shrunk = self._parts(phase)
        return (grown + shrunk) / 2

    def _parts(self, phase: Array) -> tuple[Array, Array]:
        start = jnp.asarray(self.log_scale)
        return jnp.exp(2 * (start + jnp.abs(phase))), jnp.exp(2 * (start - jnp.abs(phase)))
