"""Rosenbrock method for stiff flows: one factorisation per step, no iterations, and fast compilation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from dynascope.flows.solvers.adaptive import Method

__all__ = ["ROSENBROCK", "rosenbrock_step", "solution"]

# RODAS of Hairer and Wanner: order four with an embedded solution of order three, stiffly accurate and L-stable. Each
# row has the coefficients of the previous stages in the evaluation point, and in the right-hand side, of a stage.
_GAMMA = 0.25
_FOURTH = (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950)
_POINTS = (
    (),
    (1.544,),
    (0.9466785280815826, 0.2557011698983284),
    (3.314825187068521, 2.896124015972201, 0.9986419139977817),
    _FOURTH,
    (*_FOURTH, 1.0),
)
_VELOCITIES = (
    (),
    (-5.6688,),
    (-2.430093356833875, -0.2063599157091915),
    (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
    (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
    (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
)
_STAGES = len(_POINTS)
_FEW_EQUATIONS = 50  # up to which inverting the matrix is faster than factorising it and solving six times


def rosenbrock_step(
    velocity: Callable[[Array], Array],
    inverse: Callable[[Array], Callable[[Array], Array]],
    start: Array,
    step: Array | float,
) -> tuple[Array, Array]:
    """Take one fourth-order step of an autonomous flow y' = f(y), with a third-order error estimate.

    With γ = 1/4 and J = ∂f/∂y at the beginning of the step, each of the six stages solves

        (1/(γh) − J) k_i = f(y + Σ_{j<i} a_ij k_j) + Σ_{j<i} c_ij k_j / h.

    Args:
        velocity: f.
        inverse: Function that maps the shift 1/(γh) to the function b ↦ (shift − J)⁻¹ b.
        start: y, an array of any shape.
        step: Step size h.

    Returns:
        y after the step, to fourth order; and the estimated error of the embedded third-order solution.

    References:
        Hairer & Wanner, Solving Ordinary Differential Equations II (1996), IV.7 and the program RODAS.

    Example:
        >>> rate = 1e6
        >>> step = lambda y: rosenbrock_step(lambda y: -rate * y, lambda s: lambda b: b / (s + rate), y, 1.0)
        >>> end, _ = jax.jit(step)(np.ones(1))
        >>> abs(end.item()) < 1e-4
        True
    """
    solve = inverse(jnp.asarray(1 / (_GAMMA * step)))
    points, velocities = (jnp.asarray(_square(rows), start.dtype) for rows in (_POINTS, _VELOCITIES))

    def stage(index: Any, slopes: Array) -> Array:
        force = velocity(start + jnp.tensordot(points[index], slopes, 1))
        return slopes.at[index].set(solve(force + jnp.tensordot(velocities[index], slopes, 1) / step))

    slopes = jax.lax.fori_loop(0, _STAGES, stage, jnp.zeros((_STAGES, *start.shape), start.dtype))
    # The last evaluation point is the solution of order three, and the last stage is its difference from order four.
    return start + jnp.tensordot(points[-1].at[-1].set(1.0), slopes, 1), slopes[-1]


# Interpolating polynomials remain accurate if the state changes by at most its own size in a step.
ROSENBROCK = Method(rosenbrock_step, order=4, predictive=True, first=1e-3, farthest=1.0)


def solution(matrix: Array) -> Callable[[Array], Array]:
    """Return the function b ↦ A⁻¹ b of vectors, for the six stages of a step.

    Example:
        >>> jax.jit(lambda a, b: solution(a)(b))(np.diag([2.0, 4.0]), np.ones(2)).tolist()
        [0.5, 0.25]
    """
    if len(matrix) <= _FEW_EQUATIONS:
        # A matrix-vector product takes a tenth of the time of a solve with LU factors.
        inverse = jnp.linalg.inv(matrix)
        return lambda right: inverse @ right
    factors = jax.scipy.linalg.lu_factor(matrix)
    return lambda right: jax.scipy.linalg.lu_solve(factors, right)


def _square(rows: tuple[tuple[float, ...], ...]) -> np.ndarray:
    return np.array([np.pad(row, (0, _STAGES - len(row))) for row in rows])
