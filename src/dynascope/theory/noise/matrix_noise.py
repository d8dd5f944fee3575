"""Isotropic noise of a matrix: it makes neurons vanish in low dimension, and keeps them away from zero in high."""

from __future__ import annotations

import numpy as np

from dynascope.theory.domain import covers
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat, PositiveInt

__all__ = ["matrix_noise_exponent"]

_POINTS = 2001  # of the trapezoidal rule, which is exact to rounding for what falls off on both sides
_REACH = 45.0  # by which the logarithm of the density has fallen at its ends


@covers(
    network="linear, one neuron with several inputs and outputs",
    data="labels with isotropic noise",
    start="near zero",
    gives="whether isotropic noise makes a neuron vanish",
    reference="arXiv:2306.04251",
    exact=False,
)
def matrix_noise_exponent(
    inputs: PositiveInt, outputs: PositiveInt, *, learning_rate: PositiveFloat, noise_variance: NonNegativeFloat
) -> float:
    """Λ = (n − 2)/2 ης² for each unit of time of a neuron near zero with n = m inputs and outputs; a law of both else.

    The weights v of n inputs and u of m outputs move by u ← u + ηZv, v ← v + ηZᵀu, with independent entries of Z of
    variance ς². In continuous time the imbalance ‖u‖² − ‖v‖² has no noise of its own, the share of the layers in the
    weights has a stationary law in closed form, and for n < m

        Λ = ης² n/4 [(m − n) R − 2],   R = U(n/2 + 1, (n + m)/2 + 1, z)/U(n/2, (n + m)/2, z),   z = (m − n)/2,

    with Tricomi's function U; its limit at n = m is (n − 2)/2. It is below zero, where noise makes neurons vanish, only
    in low dimension: noise that is isotropic in many dimensions repels.

    Args:
        inputs: n ≥ 1, with which outputs can be exchanged.
        outputs: m ≥ 1.
        learning_rate: η > 0.
        noise_variance: ς² ≥ 0 of an entry of Z, over the batch size of that of a sample.

    Returns:
        The growth of the logarithm of the norm; times η, that of a step.

    Raises:
        InputError: A number out of range.

    References:
        Own derivation; the question is that of Chen, Kunin, Yamamura, Ganguli, arXiv:2306.04251.

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
    """Λ/(ης²), of n ≤ m."""
    if n == m:
        return (n - 2) / 2
    # The mean of w = (‖u‖² + ‖v‖²)/(‖u‖² − ‖v‖²) = 1 + t, where t has the density
    # t^(n/2 − 1) (t + 2)^(m/2 − 1) exp(−(m − n) t/4); over x = log t it falls off on both sides of its one maximum.
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
