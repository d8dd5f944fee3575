"""Explicit steps, for flows that are not stiff or that are too large for implicit steps."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from dynascope.flows.solvers.adaptive import Method

__all__ = ["ERROR", "POINTS", "TSITOURAS", "tsitouras_step"]

# Runge–Kutta matrix: coefficients of the previous stages in each stage. The last row is the solution of order five.
POINTS = (
    (),
    (0.161,),
    (-0.008480655492356989, 0.335480655492357),
    (2.8971530571054935, -6.359448489975075, 4.3622954328695815),
    (5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525),
    (5.86145544294642, -12.92096931784711, 8.159367898576159, -0.071584973281401, -0.028269050394068383),
    (0.09646076681806523, 0.01, 0.4798896504144996, 1.379008574103742, -3.290069515436081, 2.324710524099774),
)
# The solution of order five minus the solution of order four.
ERROR = (
    -0.00178001105222577714,
    -0.0008164344596567469,
    0.007880878010261995,
    -0.1447110071732629,
    0.5823571654525552,
    -0.45808210592918697,
    1 / 66,
)


def tsitouras_step(
    velocity: Callable[[Array], Array], _: object, start: Array, step: Array | float
) -> tuple[Array, Array]:
    """Take one fifth-order step of an autonomous flow y' = f(y), with a fourth-order error estimate.

    Args:
        velocity: f.
        _: Ignored; implicit methods receive a linear solver as this argument.
        start: y, an array of any shape.
        step: Step size h.

    Returns:
        y after the step, to fifth order; and the estimated error of the embedded fourth-order solution.

    References:
        Tsitouras, Computers & Mathematics with Applications 62 (2011) 770.

    Example:
        >>> import math
        >>> import jax
        >>> end, wrong = jax.jit(lambda y: tsitouras_step(lambda y: -y, None, y, 0.1))(1.0)
        >>> abs(end.item() - math.exp(-0.1)) < 1e-6, abs(wrong.item()) < 1e-6
        (True, True)
    """
    slopes: list[Array] = []
    point = start
    for row in POINTS:
        if row:
            point = start + step * _sum(row, slopes)
        slopes.append(velocity(point))
    return point, step * _sum(ERROR, slopes)


# The bound on the motion is loose, so that only the tolerance determines the steps.
TSITOURAS = Method(tsitouras_step, order=5, predictive=False, first=0.1, farthest=4.0)


def _sum(factors: tuple[float, ...], slopes: list[Array]) -> Array:
    return jnp.asarray(sum(factor * slope for factor, slope in zip(factors, slopes, strict=True)))
