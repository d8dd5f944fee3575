"""Settling times of a linear network on the plateau after each jump."""

from __future__ import annotations

import numpy as np
import scipy
from jaxtyping import Float

__all__ = ["main_maps", "settling_times"]

# Largest excess of the loss over a plateau that counts as settled, relative to the initial loss.
_VISIBLE = 0.02
# Largest fraction of the drop of the loss that the main part of a map may leave.
_UNDONE = 0.05


def settling_times(
    *,
    drops: Float[np.ndarray, " jump"],
    rates: Float[np.ndarray, " jump"],
    right: Float[np.ndarray, "r jump"],
    maps: Float[np.ndarray, "jump r"],
    power: Float[np.ndarray, " r"],
    times: Float[np.ndarray, " jump"],
    initial_loss: float,
) -> Float[np.ndarray, " jump"]:
    """Estimate how long the loss stays more than 2 % of the initial loss above the plateau after each jump.

    A mode first grows along an input direction v to strength p = σ/(vᵀ Σxx v). The difference between its final map m
    and p v then decays along each eigendirection of Σxx, at the rate p times the variance in that direction. Inputs of
    small variance are therefore fitted long after the jump.

    Args:
        drops: Drop of the loss at each of J jumps.
        rates: Growth rate σ of each mode.
        right: Unit input directions v along which the modes grow, as columns, in the eigenbasis of Σxx.
        maps: Final maps m of the modes, as rows, in the same basis.
        power: Eigenvalues of Σxx on its range, shape (r,).
        times: Gradient-flow times of the jumps.
        initial_loss: Loss of the zero function.

    Returns:
        Times after each jump; zero if the loss is within 2 % immediately.

    Source: derived here; exact for modes along eigendirections of Σxx, for which p v = m.
    """
    strengths = rates / np.sum(right.T**2 * power, axis=1)
    excess = power * (maps - strengths[:, None] * right.T) ** 2 / 2
    decay = 2 * strengths[:, None] * power

    def above(duration: float, k: int) -> float:
        elapsed = duration + times[k] - times[: k + 1, None]
        missing = np.sum(excess[: k + 1] * np.exp(-decay[: k + 1] * elapsed))
        growing = drops[k] / 2 * np.exp(-2 * rates[k] * duration)
        return float(missing + growing) - _VISIBLE * initial_loss

    longest = 1.0 + np.log1p(np.sum(excess) / (_VISIBLE * initial_loss)) / decay.min() + 50 / rates.min()
    return np.array(
        [scipy.optimize.brentq(above, 0.0, longest, args=(k,)) if above(0.0, k) > 0 else 0.0 for k in range(len(times))]
    )


def main_maps(
    *,
    drops: Float[np.ndarray, " jump"],
    rates: Float[np.ndarray, " jump"],
    right: Float[np.ndarray, "r jump"],
    maps: Float[np.ndarray, "jump r"],
    power: Float[np.ndarray, " r"],
) -> Float[np.ndarray, "jump r"]:
    """Compute the part of each jump's map that is learned first and accounts for 95 % of the drop of the loss.

    Nearly collinear inputs have large weights of opposite sign in the final map. These large weights are learned late
    and hardly lower the loss. See `settling_times` for the arguments and the dynamics of the map.

    Example:
        >>> jump = {"drops": np.array([0.5]), "rates": np.array([1.0]), "right": np.array([[1.0], [0.0]])}
        >>> main_maps(**jump, maps=np.array([[1.0, 9.0]]), power=np.array([1.0, 1e-4])).round(2).tolist()
        [[1.0, 0.0]]
    """
    strengths = rates / np.sum(right.T**2 * power, axis=1)
    missing = maps - strengths[:, None] * right.T
    decay = strengths[:, None] * power
    kept = np.ones_like(missing)
    for k, drop in enumerate(drops):

        def left(duration: float, k: int = k, drop: float = drop) -> float:
            remaining = np.sum(power * (missing[k] * np.exp(-decay[k] * duration)) ** 2) / 2
            return float(remaining - _UNDONE * drop)

        longest = (1.0 + np.log1p(np.sum(power * missing[k] ** 2) / (_UNDONE * drop))) / decay[k].min()
        duration = scipy.optimize.brentq(left, 0.0, longest) if left(0.0) > 0 else 0.0
        kept[k] = np.exp(-decay[k] * duration)
    return maps - kept * missing
