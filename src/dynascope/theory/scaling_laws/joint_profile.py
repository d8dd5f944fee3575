"""Profile confidence intervals of quantities derived from a joint law.

Losses and resources are in units of their geometric means. An array (E, ln A, ln B, a, b) represents a law.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.stats import t as student

from dynascope.theory.scaling_laws.descent import descend, huber, huber_weights
from dynascope.theory.scaling_laws.joint_search import LOWER, UPPER, Scaled, joint_residuals
from dynascope.theory.scaling_laws.profile_intervals import crossing

__all__ = [
    "JointProfile",
    "Quantity",
    "best_exponent",
    "best_loss",
    "best_size",
    "law_parameter",
    "loss_at",
    "prefactor",
]

# Function that returns a quantity of each law and its derivatives with respect to the five coefficients.
Quantity = Callable[[Float[np.ndarray, "laws 5"]], tuple[Float[np.ndarray, " laws"], Float[np.ndarray, "laws 5"]]]

# Distances from the estimate at which to evaluate the profile, in units of the half width of the linearised interval.
# The far ones are slow to fit, and few intervals end there.
_NEAR = np.array([0.4, 0.7, 0.9, 1.0, 1.1, 1.3, 1.7, 2.5])
_FAR = np.array([4.0, 8.0, 20.0])
_STIFF = 10.0  # weight of the constraint on a quantity, relative to the constraint by the losses
_ROUNDING = 1e-13  # standard error that is due to rounding alone
_FARTHEST = 30.0  # largest distance of a quantity from its estimate: logarithms, exponents or losses over their mean


class JointProfile:
    """Profile of the Huber loss around a fitted law.

    Attributes:
        scatter: Standard deviation of ln L about the law, without outliers.
        freedom: Degrees of freedom.
    """

    def __init__(self, data: Scaled, law: Float[np.ndarray, " 5"], threshold: float):
        self._data, self._law, self._threshold = data, law, threshold
        rest, slopes = joint_residuals(law[None], data.n, data.d, data.y)
        points = rest.size
        self.freedom = points - 5
        inside = float(np.mean(np.abs(rest) <= threshold))
        bent = np.clip(rest, -threshold, threshold)
        # Huber's small-sample correction of the decrease of the loss that one further coefficient causes by chance.
        few = 1 + 5 / points * (1 - inside) / inside
        self._chance = few**2 * float(np.sum(bent**2)) / self.freedom / inside
        self.scatter = math.sqrt(float(np.sum(bent**2)) / self.freedom / inside)
        self._sum = float(huber(rest, threshold)[0])
        weighted = slopes[0] * huber_weights(rest, threshold)[0][:, None]
        self._inverse = np.linalg.pinv(weighted.T @ slopes[0], rcond=1e-13, hermitian=True)

    def allowed(self, confidence: float) -> float:
        """Return the two-sided quantile of Student's t distribution."""
        return float(student.ppf((1 + confidence) / 2, self.freedom))

    def interval(self, quantity: Quantity, confidence: float) -> tuple[float, float]:
        """Compute the profile interval of a quantity; an end is infinite if the losses do not bound that side.

        An additional residual pulls the quantity towards target values around its estimate. The resulting law has the
        smallest loss of all laws with the same value of the quantity, so the quantity need not reach its target
        exactly.
        """
        found, gradient = (each[0] for each in quantity(self._law[None]))
        error = math.sqrt(max(self._chance * float(gradient @ self._inverse @ gradient), 0.0))
        error = max(error, math.sqrt(self._chance))
        if error < _ROUNDING:
            return float(found), float(found)
        allowed, data = self.allowed(confidence), self._data
        usual = min(allowed * error, _FARTHEST / _FAR[-1])
        hold = _STIFF * math.sqrt(self._chance) * allowed / max(usual, 1e-300)

        def evaluated(offsets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """Return the values of the quantity and their test statistics."""
            targets = found + usual * offsets

            def residuals(laws: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
                rest, slopes = joint_residuals(laws, data.n, data.d, data.y)
                value, gradient = quantity(laws)
                held = hold * (value - targets[places])[:, None]
                return np.hstack([rest, held]), np.concatenate([slopes, hold * gradient[:, None]], axis=1)

            thresholds = np.append(np.full(data.y.size, self._threshold), np.inf)
            starts = np.tile(self._law, (len(targets), 1))
            laws, _ = descend(residuals, starts, LOWER, UPPER, threshold=thresholds, precision=1e-8)
            rest, _ = joint_residuals(laws, data.n, data.d, data.y)
            against = np.sqrt(np.maximum(huber(rest, self._threshold) - self._sum, 0) / self._chance)
            return quantity(laws)[0], against

        def end(side: int, values: np.ndarray, against: np.ndarray) -> float:
            if against.max() <= allowed:
                values, against = map(np.append, (values, against), evaluated(side * _FAR))
            if against.max() <= allowed:
                return side * math.inf
            return crossing(np.append(found, values), np.append(0.0, against), allowed)

        near = (each.reshape(2, -1) for each in evaluated(np.concatenate([-_NEAR, _NEAR])))
        low, high = zip(*near, strict=True)
        return end(-1, *low), end(1, *high)


def law_parameter(which: int) -> Quantity:
    """Return the function that evaluates one of the five coefficients of a law."""

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return laws[:, which], np.tile(np.eye(5)[which], (len(laws), 1))

    return quantity


def prefactor(which: int, centre: float) -> Quantity:
    """Return the function that evaluates ln A or ln B in original units; `centre` is the mean of the log resource."""

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        gradient = np.zeros((len(laws), 5))
        gradient[:, which], gradient[:, which + 2] = 1, centre
        return laws[:, which] + centre * laws[:, which + 2], gradient

    return quantity


def loss_at(place: tuple[float, float]) -> Quantity:
    """Return the function that evaluates ln L at (ln N, ln D)."""

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        value, slopes = joint_residuals(laws, np.array([place[0]]), np.array([place[1]]), 0.0)
        return value[:, 0], slopes[:, 0]

    return quantity


def best_size(total: float) -> Quantity:
    """Return the function that evaluates ln N* for total = ln N + ln D, N* = (a A/b B)^(1/(a+b)) e^(b total/(a+b))."""

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        _, level_n, level_d, a, b = laws.T
        a, b = np.maximum(a, 1e-12), np.maximum(b, 1e-12)
        size = (np.log(a / b) + level_n - level_d + b * total) / (a + b)
        one = np.ones_like(size)
        slopes = [0 * one, one, -one, 1 / a - size, -1 / b + total - size]
        return size, np.stack(slopes, axis=-1) / (a + b)[:, None]

    return quantity


def best_loss(total: float) -> Quantity:
    """Return the function that evaluates ln L at N*.

    A change in N* does not affect the derivative, because N* minimises the loss.
    """
    sizes = best_size(total)

    def quantity(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        size = sizes(laws)[0]
        value, slopes = joint_residuals(laws, size[:, None], total - size[:, None], 0.0)
        return value[:, 0], slopes[:, 0]

    return quantity


def best_exponent(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Evaluate the exponent b/(a + b) with which N* grows with compute, and its derivatives."""
    a, b = np.maximum(laws[:, 3:].T, 1e-12)
    gradient = np.zeros((len(laws), 5))
    gradient[:, 3], gradient[:, 4] = -b / (a + b) ** 2, a / (a + b) ** 2
    return b / (a + b), gradient
