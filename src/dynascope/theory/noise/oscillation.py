"""Whether steps swing around a minimum, and how fast."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD, steps_of
from dynascope.validation.bounded import NonNegativeNumbers

__all__ = ["Oscillation", "oscillation", "swings"]


class Oscillation(NamedTuple):
    """How steps along modes go to rest, each of the shape of the curvature but for the two thresholds.

    Attributes:
        oscillates: Whether steps swing around the minimum.
        decay: What is left of a swing after a step; of modes that do not swing the slower of their two factors.
        angle: Phase of a step in radians, π where each step goes to the other side, zero where none does.
        continuous: Whether the limit of small steps swings.
        least: The curvature h above which steps swing, (1 − √β)²/η.
        continuous_least: That of the limit of small steps, (1 − β)²/(2η(1 + β)).
    """

    oscillates: Bool[np.ndarray, "*modes"]
    decay: Float[np.ndarray, "*modes"]
    angle: Float[np.ndarray, "*modes"]
    continuous: Bool[np.ndarray, "*modes"]
    least: float
    continuous_least: float

    __repr__ = short_repr


@covers(
    network="any near a minimum",
    data="any",
    start="any",
    gives="whether steps of momentum swing, their phase and their decay",
    reference="arXiv:2107.09133",
)
def oscillation(curvature: NonNegativeNumbers, sgd: SGD) -> Oscillation:
    """The phase arccos((1 + β − ηh)/2√β) and the decay √β of steps, which swing iff (1 − √β)² < ηh < (1 + √β)².

    h = ρ + λ is the curvature with decay.
    In continuous time a mode swings iff h > (1 − β)²/(2η(1 + β)), where friction is below the frequency. Both
    thresholds agree for momentum close to one; at β = 0 continuous time swings from ηh = ½ on and steps do not, until
    from ηh = 1 on each goes to the other side: the phase is π there, of two real factors, and `oscillates` is true.

    Args:
        curvature: ρ ≥ 0 of each mode, of any shape.
        sgd: η, β and λ.

    Raises:
        InputError: A number out of range, or a batch size.

    References:
        Kunin, Sagastuy-Breña, Gillespie, Margalit, Tanaka, Ganguli, Yamins, arXiv:2107.09133, section 5.

    Example:
        >>> found = oscillation([0.01, 2.0], SGD(0.05, momentum=0.9))
        >>> print(found.oscillates, found.decay.round(4), found.angle.round(4))
        [False  True] [0.9948 0.9487] [0.     0.3218]
    """
    rate, decay, momentum = steps_of(sgd)
    with np.errstate(all="ignore"):
        h = np.asarray(curvature) + decay
        logarithm, angle = swings(np.asarray(rate * h), momentum)
        limit = (1 - momentum) ** 2 / (2 * rate * (1 + momentum))
        least = (1 - np.sqrt(momentum)) ** 2 / rate
        swinging, left, continuous = map(np.asarray, (angle > 0, np.exp(logarithm), h > limit))
        return Oscillation(swinging, left, angle, continuous, float(least), float(limit))


def swings(x: np.ndarray, momentum: float) -> tuple[np.ndarray, np.ndarray]:
    """The logarithm of the slower decay of a step along modes x = ηh, and the angle of a step."""
    root, trace = np.sqrt(momentum), 1 + momentum - x
    below, above = x - (1 - root) ** 2, x - (1 + root) ** 2
    spread = np.sqrt(np.abs(below)) * np.sqrt(np.abs(above))
    turning = (below > 0) & (above < 0)
    slower = np.where(trace < 0, np.log((np.abs(trace) + spread) / 2), np.log1p(-2 * x / (1 - momentum + x + spread)))
    angle = np.where(turning, np.arctan2(spread, trace), np.where(trace < 0, np.pi, 0.0))
    return np.asarray(np.where(turning, np.log(root), slower)), np.asarray(angle)
