"""A leaky ReLU neuron on mirror-symmetric inputs with odd targets: a linear neuron through all pattern changes."""

from __future__ import annotations

from typing import NamedTuple

from dynascope.results.named_tuples import short_repr
from dynascope.theory.assumptions import ONE_OUTPUT
from dynascope.theory.domain import covers
from dynascope.validation.bounded import Fraction

__all__ = ["LinearEquivalent", "linear_equivalent"]


class LinearEquivalent(NamedTuple):
    """The linear neuron that has the same weights as a leaky ReLU neuron at all times.

    Attributes:
        target_factor: (1 + γ)/(1 + γ²), the target map of the linear neuron divided by b.
        time_factor: (1 + γ²)/2, the time of the linear neuron divided by t; also the factor of its excess loss.
        unexplained: 1 − (1 + γ)²/(2 (1 + γ²)), the final loss divided by the loss ½ bᵀ Σ b of the zero function.
    """

    target_factor: float
    time_factor: float
    unexplained: float

    __repr__ = short_repr


@covers(
    network="single leaky ReLU neuron f(x) = a σ(wᵀx), layer-wise rates",
    data="inputs symmetric under x → −x, targets y = bᵀx",
    start="any",
    gives="the equivalent linear neuron for all times",
    reference="arXiv:2406.06158",
    assumes=(ONE_OUTPUT,),
)
def linear_equivalent(negative_slope: Fraction) -> LinearEquivalent:
    """Map a leaky ReLU neuron on symmetric inputs with odd targets to a linear neuron.

    E[σ'(w·x)² x xᵀ] = (1 + γ²)/2 Σ, E[σ'(w·x) x y] = (1 + γ)/2 Σ b for every w, with Σ = E[x xᵀ]

    The two moments do not depend on the activation pattern, so the neuron f(x) = a σ(w·x), σ(z) = max(z, γ z), follows
    the flow of the linear neuron with target β* = `target_factor` b at the time `time_factor` t, although its pattern
    may change. Its loss is L = `time_factor` ½ (β − β*)ᵀ Σ (β − β*) + `unexplained` ½ bᵀ Σ b.

    The statement holds for one neuron only, because the moments of two neurons depend on their common pattern.

    Args:
        negative_slope: γ, from 0 (ReLU) to 1 (linear).

    Returns:
        The factors.

    Raises:
        InputError: If γ is outside [0, 1].

    References:
        Derived here for the setting of Kunin, Raventós, Dominé, Chen, Klindt, Saxe, Ganguli, arXiv:2406.06158.

    Example:
        >>> linear_equivalent(0.0)
        LinearEquivalent(target_factor=1, time_factor=0.5, unexplained=0.5)
    """
    # The factor 1 − (1 + γ)²/(2(1 + γ²)) without cancellation near γ = 1.
    square = 1 + negative_slope**2
    return LinearEquivalent((1 + negative_slope) / square, square / 2, (1 - negative_slope) ** 2 / (2 * square))
