"""At which learning rates noise draws steps into an invariant set with one normal direction: all of them."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.optimize
from jaxtyping import Float

from dynascope.theory.domain import covers
from dynascope.theory.noise.stochastic_collapse import batch_distribution, exponents
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers

__all__ = ["attracting_learning_rates"]

_NETWORK, _DATA, _REFERENCE = "any with equivalent units", "any, in random batches", "arXiv:2306.04251"
_START = "near an invariant set"


@covers(
    network=_NETWORK,
    data=_DATA,
    start=_START,
    gives="the learning rates at which noise attracts to an invariant set",
    reference=_REFERENCE,
)
def attracting_learning_rates(
    curvatures: FiniteNumbers, *, probabilities: NonNegativeNumbers | None = None
) -> Float[np.ndarray, "intervals 2"]:
    """All intervals of η > 0 in which E log|1 − η h_B| < 0, where plain descent collapses into an invariant set.

    The exponent is concave between neighbouring poles η = 1/h_B, falls to −∞ at each, and grows without bound beyond
    the last. So there are at most two zeros between two poles, which are all found.

    Args:
        curvatures: h_B of the batches along the one normal direction, shape (batches,).
        probabilities: Of each, shape (batches,); equal ones if left out.

    Returns:
        The lower and upper ends of the intervals, shape (intervals, 2), in increasing order; none where no curvature is
        positive. A lower end of zero says that small rates attract.

    Raises:
        InputError: Values that are not finite, or probabilities that are negative or do not add up to one.

    References:
        Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251; here at finite steps.

    Example:
        >>> print(attracting_learning_rates([-3.0, 1.0]).round(6))
        [[0.666667 1.21525 ]]
    """
    h, shares = batch_distribution(curvatures, probabilities)
    poles = np.unique(1 / h[(h > 0) & (shares > 0)])
    if not poles.size:
        return np.empty((0, 2))
    zeros: list[float] = []
    # Below the first pole the exponent is concave from zero at η = 0: it crosses zero iff it rises there, or attracts.
    rising = float(-shares @ h) > 0
    zeros += _zeros_between(0.0, poles[0], h, shares) if rising else [0.0]
    for left, right in itertools.pairwise(poles.tolist()):
        zeros += _zeros_between(left, right, h, shares)
    last = 2 * poles[-1]
    while exponents(np.array([last]), h, shares)[0] <= 0:
        last *= 2
    zeros.append(_zero(poles[-1], last, h, shares))
    return np.array(zeros).reshape(-1, 2)


def _zeros_between(left: float, right: float, h: np.ndarray, shares: np.ndarray) -> list[float]:
    """The zeros of the exponent between two neighbouring poles, or between zero, where it rises, and the first."""
    width = right - left

    def exponent(x: float) -> float:
        return float(exponents(np.array([left + width * x]), h, shares)[0])

    least = np.finfo(float).eps
    top = float(np.asarray(scipy.optimize.fminbound(lambda x: -exponent(x), least, 1 - least, xtol=1e-12)))
    if exponent(top) <= 0:
        return []
    right_zero = _zero(left + width * top, right, h, shares)
    return [right_zero] if left == 0 else [_zero(left, left + width * top, h, shares), right_zero]


def _zero(left: float, right: float, h: np.ndarray, shares: np.ndarray) -> float:
    """The zero between a rate where the exponent has one sign and one where it has the other, or is −∞."""
    inward = np.finfo(float).eps

    def exponent(rate: float) -> float:
        # A number that stands for −∞ has the sign of it.
        return max(float(exponents(np.array([rate]), h, shares)[0]), -1e300)

    low, high = left * (1 + inward), right * (1 - inward)
    if np.sign(exponent(low)) == np.sign(exponent(high)):  # the zero is within rounding of a pole
        return low if exponent(left * (1 + 4 * inward)) > 0 else high
    return scipy.optimize.root_scalar(exponent, bracket=(low, high), xtol=1e-300, rtol=4 * inward).root
