"""Isotropic matrix noise, which shrinks a neuron to zero in low dimension and repels it from zero in high dimension."""

from __future__ import annotations

import numpy as np

from dynascope.theory.domain import covers
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat, PositiveInt

__all__ = ["matrix_noise_exponent"]

_POINTS = 2001  # points of the trapezoidal rule, accurate to rounding, as the integrand decays on both sides
_REACH = 45.0  # the integral ends where the density has fallen by a factor of exp(45)


@covers(
    network="linear, one neuron with several inputs and outputs",
    data="labels with isotropic noise",
    start="near zero",
    gives="the rate at which a neuron shrinks or grows under isotropic noise",
    reference="arXiv:2306.04251",
    exact=False,
)
def matrix_noise_exponent(
    inputs: PositiveInt, outputs: PositiveInt, *, learning_rate: PositiveFloat, noise_variance: NonNegativeFloat
) -> float:
    """Growth rate of the log norm of a neuron near zero under isotropic matrix noise, in continuous time.

        Λ = (n − 2)/2 ης²   for n = m inputs and outputs,
        Λ = ης² n/4 [(m − n) R − 2]   for n < m,
        R = U(n/2 + 1, (n + m)/2 + 1, z)/U(n/2, (n + m)/2, z),   z = (m − n)/2

    The n input weights v and m output weights u are updated by u ← u + ηZv, v ← v + ηZᵀu, where the entries of Z are
    independent with variance ς². In continuous time, the equation for the imbalance ‖u‖² − ‖v‖² has no noise term, and
    the ratio of the layer norms has a stationary distribution in closed form. U is Tricomi's function. Λ is negative
    only in low dimension, where noise shrinks the neuron to zero. In high dimension, isotropic noise repels the neuron
    from zero.

    Args:
        inputs: n ≥ 1; the result is symmetric in n and m.
        outputs: m ≥ 1.
        learning_rate: η > 0.
        noise_variance: ς² ≥ 0, the variance of each entry of Z; for batch noise, the variance over samples divided by
            the batch size.

    Returns:
        Λ per unit of time; multiply by η for the rate per step.

    Raises:
        InputError: If a number is out of range.

    References:
        Derived here, to answer a question raised by Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

    Example:
        >>> [matrix_noise_exponent(n, n, learning_rate=0.5, noise_variance=2.0) for n in (1, 2, 3, 6)]
        [-0.5, 0.0, 0.5, 2.0]
        >>> print(round(matrix_noise_exponent(4, 1, learning_rate=0.5, noise_variance=2.0), 6))
        0.25
    """
    n, m = sorted((inputs, outputs))
    with np.errstate(all="ignore"):
        return float(np.float64(learning_rate) * noise_variance * _exponent(n, m))


def _exponent(n: int, m: int) -> float:
    """Return the dimensionless growth rate Λ/(ης²) for n ≤ m."""
    if n == m:
        return (n - 2) / 2
    # The mean of w = (‖u‖² + ‖v‖²)/(‖u‖² − ‖v‖²) = 1 + t, where t has the density
    # t^(n/2 − 1) (t + 2)^(m/2 − 1) exp(−(m − n) t/4); as a function of x = log t it has one maximum.
    top = np.log(2 * ((n - 1) + np.sqrt((n - 1.0) ** 2 + float(m - n) * n)) / (m - n))

    def density(x: np.ndarray | np.float64) -> np.ndarray | np.float64:
        return n / 2 * x + (m / 2 - 1) * np.log(np.exp(x) + 2) - (m - n) / 4 * np.exp(x)

    ends = []
    for side in (-1.0, 1.0):
        reach = 1e-6
        while density(top + side * reach) > density(top) - _REACH:
            reach *= 1.5
        ends.append(top + side * reach)
    x = np.linspace(ends[0], ends[1], _POINTS)
    weights = np.exp(density(x) - density(top))
    mean = 1 + weights @ np.exp(x) / weights.sum()
    return ((m - n) * mean - (m + n)) / 4
