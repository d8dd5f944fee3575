"""Oscillation of gradient descent with momentum around a minimum: criterion, phase and decay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD, steps_of
from dynascope.validation.bounded import NonNegativeNumbers

__all__ = ["Oscillation", "decay_and_phase", "oscillation"]


class Oscillation(NamedTuple):
    """Oscillation of each mode; all fields except the two thresholds have the shape of the curvature.

    Attributes:
        oscillates: Whether the mode oscillates around the minimum.
        decay: Factor by which each step multiplies the amplitude; for a mode with two real factors, the larger in
            magnitude.
        angle: Phase advance per step in radians; π if the sign changes at every step, zero without oscillation.
        continuous: Whether the mode oscillates in the limit of small steps.
        least: Curvature h above which the discrete steps oscillate, (1 − √β)²/η.
        continuous_least: Curvature above which the limit of small steps oscillates, (1 − β)²/(2η(1 + β)).
    """

    oscillates: Bool[np.ndarray, "*modes"]
    decay: Float[np.ndarray, "*modes"]
    angle: Float[np.ndarray, "*modes"]
    continuous: Bool[np.ndarray, "*modes"]
    least: float
    continuous_least: float

    __repr__ = short_repr


@covers(
    network="any, near a minimum",
    data="any",
    start="any",
    gives="whether gradient descent with momentum oscillates, and the phase and decay per step",
    reference="arXiv:2107.09133",
)
def oscillation(curvature: NonNegativeNumbers, sgd: SGD) -> Oscillation:
    """Predict whether gradient descent with momentum oscillates along each mode, with the phase and decay per step.

        oscillation iff (1 − √β)² < ηh < (1 + √β)²;   phase arccos((1 + β − ηh)/2√β) and decay √β per step

    h = ρ + λ is the curvature including weight decay. In continuous time, a mode oscillates iff
    h > (1 − β)²/(2η(1 + β)), that is, if it is underdamped. The two thresholds agree as β → 1. For β = 0, the
    continuous equation oscillates for ηh > ½, but the discrete steps only for ηh > 1. For ηh above (1 + √β)² the sign
    changes at every step: both factors are real and negative, the phase is π, and `oscillates` is true.

    Args:
        curvature: ρ ≥ 0 of each mode, any shape.
        sgd: η, β and λ.

    Raises:
        InputError: If a number is out of range, or a batch size is given.

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
        logarithm, angle = decay_and_phase(np.asarray(rate * h), momentum)
        limit = (1 - momentum) ** 2 / (2 * rate * (1 + momentum))
        least = (1 - np.sqrt(momentum)) ** 2 / rate
        oscillates, factor, continuous = map(np.asarray, (angle > 0, np.exp(logarithm), h > limit))
        return Oscillation(oscillates, factor, angle, continuous, float(least), float(limit))


def decay_and_phase(x: np.ndarray, momentum: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the logarithm of the slower decay factor and the phase advance, both per step, for modes with x = ηh."""
    root, trace = np.sqrt(momentum), 1 + momentum - x
    below, above = x - (1 - root) ** 2, x - (1 + root) ** 2
    spread = np.sqrt(np.abs(below)) * np.sqrt(np.abs(above))
    complex_roots = (below > 0) & (above < 0)
    slower = np.where(trace < 0, np.log((np.abs(trace) + spread) / 2), np.log1p(-2 * x / (1 - momentum + x + spread)))
    angle = np.where(complex_roots, np.arctan2(spread, trace), np.where(trace < 0, np.pi, 0.0))
    return np.asarray(np.where(complex_roots, np.log(root), slower)), np.asarray(angle)
