"""How much the weights of scalar networks grow when they are trained."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from scipy.integrate import solve_ivp

from dynascope.errors import DivergenceError
from dynascope.theory.modes.scalar import Setting

__all__ = ["final_growth"]

_REST = 30.0  # time constants for which they are trained once they have left the start
_ACCURACY = 1e-11


def final_growth(settings: Iterable[Setting]) -> list[float]:
    """The growth ln γ = ln Σ (a + b)² − ln Σ (a₀ + b₀)² of networks with positive targets after gradient flow.

    They are so small that integrating the gradients takes less time than compiling a program.

    Raises:
        DivergenceError: The integration failed.
    """
    found = []
    for setting in settings:
        target, a, b, power, divisor = (np.asarray(each, np.float64) for each in setting)

        def velocity(_: float, weights: np.ndarray, target=target, power=power, divisor=divisor) -> np.ndarray:
            a, b = np.split(weights, 2)
            missed = power * (a @ b / divisor - target) / divisor
            return -missed * np.concatenate([b, a])

        rate = 2 * power * max(target, np.sqrt(a @ a * (b @ b)) / divisor) / divisor
        start = np.concatenate([a, b])
        # A small start takes some time constants to leave.
        end = (_REST + np.log1p(target * divisor / (start @ start))) / rate
        smallest = _ACCURACY * np.abs(start).max()
        path = solve_ivp(velocity, (0.0, end), start, "DOP853", rtol=_ACCURACY, atol=smallest)
        if not path.success:
            raise DivergenceError(
                "a scalar network could not be trained to its end",
                time=float(path.t[-1]),
                remedy="choose a target and a factor nearer to one",
            )
        end_a, end_b = np.split(path.y[:, -1], 2)
        found.append(float(np.log(np.sum((end_a + end_b) ** 2) / np.sum((a + b) ** 2))))
    return found
