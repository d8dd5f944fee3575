"""Stationary misalignment of feedback weights that learn from few samples or with noisy updates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from dynascope.results.named_tuples import short_repr
from dynascope.theory.interventions.credit_primitives import credit_theory
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeFloat, PositiveFloat, PositiveInt, PositiveNumbers

__all__ = ["Misalignment", "mirror_misalignment", "noise_misalignment"]


class Misalignment(NamedTuple):
    """Stationary fluctuation of feedback weights B around their fixed point B*.

    Attributes:
        squared_distance: E ‖B − B*‖², exact.
        angle: Angle between B and B* in degrees, arctan √(E‖B − B*‖²)/‖B*‖. It neglects the part of the fluctuation
            along B*, which is small if B has many entries.
    """

    squared_distance: Float[np.ndarray, ""]
    angle: Float[np.ndarray, ""]

    __repr__ = short_repr


@credit_theory(
    network="one layer with fixed weights and learned feedback weights",
    start="stationary",
    gives="misalignment of the weight mirror",
)
def mirror_misalignment(
    weights: FiniteNumbers,
    batch_size: PositiveInt,
    *,
    feedback_rate: PositiveFloat,
    amplification: PositiveFloat = 1.0,
    decay: PositiveFloat = 1.0,
) -> Misalignment:
    """Stationary misalignment of a weight mirror driven by white Gaussian noise, for fixed forward weights.

        E ‖B − B*‖² = ηβ/(2 − ηβ) · (d + 1)/n · ‖B*‖²,   B* = (α/β) W

    Each step draws n inputs. Their second moment Ĉ fluctuates with E (Ĉ − 1)² = (d + 1)/n, and the feedback weights
    follow B ← (1 − ηβ) B + ηα Ĉ W. The angle depends on neither the amplification nor the weights.

    Args:
        weights: W, shape (inputs d, outputs).
        batch_size: n, the number of inputs in each step.
        feedback_rate: η, with ηβ < 2.
        amplification: α.
        decay: β.

    Raises:
        InputError: If a setting is out of range, the steps diverge, or all weights are zero.

    References:
        Derived from the update rule of Akrout et al., arXiv:1904.05391.

    Example:
        >>> print(mirror_misalignment([[1.0]] * 48, 50, feedback_rate=0.1).angle.round(1))
        12.8
    """
    w = _weights(weights)
    pace = _stable(feedback_rate, decay)
    with np.errstate(all="ignore"):
        relative = pace / (2 - pace) * (len(w) + 1) / batch_size
        return _misalignment(np.sum(relative * (amplification / decay * w) ** 2), amplification / decay * w)


@credit_theory(
    network="one layer with fixed weights and learned feedback weights",
    start="stationary",
    gives="misalignment of noisy feedback updates",
)
def noise_misalignment(
    backward: FiniteNumbers, rates: PositiveNumbers, *, feedback_rate: PositiveFloat, noise: NonNegativeFloat
) -> Misalignment:
    """Stationary misalignment of feedback weights with noisy updates, for fixed forward weights and inputs.

        E ‖B − B*‖² = Σ_k η ν² / (h_k (2 − η h_k))

    Each step adds −ην ξ to the feedback weights, with standard normal ξ. For symmetric alignment with decay 1, every
    rate is h_k = 1, and the sum is η/(2 − η) ν² d_in d_out.

    Args:
        backward: B*, such as `AlignmentFixedPoint.backward`, shape (inputs, outputs).
        rates: h_k > 0, such as `AlignmentFixedPoint.rates`, shape (inputs, outputs).
        feedback_rate: η, with η h_k < 2.
        noise: ν ≥ 0.

    Raises:
        InputError: If a setting is out of range, the shapes differ, the steps diverge, or all feedback weights are
            zero.

    References:
        Derived from the noisy updates of Kunin et al., arXiv:2003.01513.

    Example:
        >>> found = noise_misalignment([[1.0], [1.0]], [[1.0], [1.0]], feedback_rate=0.1, noise=0.3)
        >>> print(found.squared_distance.round(6))
        0.009474
    """
    center = _weights(backward, "backward")
    speeds = require_array("rates", rates, center.shape)
    pace = _stable(feedback_rate, float(speeds.max()), "rates")
    with np.errstate(all="ignore"):
        squared = np.sum(feedback_rate * noise**2 / (speeds * (2 - pace * speeds / speeds.max())))
        return _misalignment(squared, center)


def _weights(values: FiniteNumbers, name: str = "weights") -> np.ndarray:
    array = require_array(name, values, (None, None))
    require(
        bool(np.any(array)),
        f"{name} contains only zeros",
        argument=name,
        value=array.shape,
        remedy="give at least one nonzero weight, so that the angle is defined",
    )
    return array


def _stable(feedback_rate: float, decay: float, name: str = "decay") -> float:
    """Return the product of the feedback rate and the largest decay rate, after checking that it is below two."""
    require(
        feedback_rate * decay < 2,
        f"feedback_rate · {name} is {feedback_rate * decay:.6g}, so the feedback weights diverge",
        argument="feedback_rate",
        value=feedback_rate,
        remedy=f"choose a feedback rate below {2 / decay:.3g}",
    )
    return feedback_rate * decay


def _misalignment(squared: np.floating, center: np.ndarray) -> Misalignment:
    angle = np.degrees(np.arctan2(np.sqrt(squared), np.linalg.norm(center)))
    return Misalignment(np.asarray(squared), np.asarray(angle))
