"""Order in which a two-layer network learns the directions of a Gaussian input, and the times of the jumps."""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias

import numpy as np
import scipy
from annotated_types import Gt, IsFinite
from jaxtyping import Float, Real
from numpy.polynomial import Polynomial
from numpy.typing import ArrayLike

from dynascope.results import staircase_names as names
from dynascope.results.clock import time_unit
from dynascope.results.staircase import Staircase
from dynascope.theory.assumptions import SMALL_START
from dynascope.theory.domain import covers
from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.papers import ALTERNATING
from dynascope.validation import checked, require
from dynascope.validation.bounded import OpenFraction

__all__ = ["information_exponent", "overlap_time", "quadratic_index_staircase", "utility_polynomial"]

_NAMES = {
    "index_strength": ("strength of the direction", "1"),
    "index_coefficient": ("coefficient of the index", "1"),
}
_EQUAL = 1e-9  # relative difference below which two strengths count as equal

Coefficients: TypeAlias = IsFinite[Real[ArrayLike, " orders"]]


@finite_answers()
def utility_polynomial(
    activation: Coefficients, link: IsFinite[Real[ArrayLike, " others"]]
) -> Float[np.ndarray, " order"]:
    """Coefficients of the utility of a neuron in a single-index model, as a polynomial in the overlap.

        Φ(m) = Σ_k k! c_k g_k m^k

    For x ~ N(0, I), the target g(⟨w*, x⟩) and a small neuron a σ(⟨w, x⟩) with ‖w‖ = 1, the utility is
    E[a σ(⟨w, x⟩) g(⟨w*, x⟩)] = a Φ(m), where m = ⟨w, w*⟩ is the overlap.

    Args:
        activation: Hermite coefficients c_k of σ = Σ c_k He_k (probabilists' polynomials), shape (orders,).
        link: Hermite coefficients g_k of g, of any length. Missing coefficients of the shorter array count as zero.

    Returns:
        The coefficients of m^0, m^1, …, up to the highest order in both arrays, shape (orders,).

    Raises:
        InputError: If an array is empty or not finite.

    Source: arXiv:2506.06489; Ben Arous, Gheissari, Jagannath, arXiv:2003.10409.

    Example:
        >>> utility_polynomial([1.0, 0.0, 1.0], [0.0, 5.0, 3.0])
        array([0., 0., 6.])
    """
    c, g = _coefficients("activation", activation), _coefficients("link", link)
    orders = min(len(c), len(g))
    return np.array([math.factorial(k) * c[k] * g[k] for k in range(orders)])


@checked
def information_exponent(coefficients: Coefficients) -> int:
    """Information exponent of a link or of a `utility_polynomial`: the first order k ≥ 1 with nonzero coefficient.

        k* = min {k ≥ 1: c_k ≠ 0}

    Args:
        coefficients: c_k of the orders 0, 1, …, shape (orders,).

    Raises:
        InputError: If all coefficients of order k ≥ 1 are zero.

    Example:
        >>> information_exponent([1.0, 0.0, 3.0])
        2
    """
    present = np.flatnonzero(_coefficients("coefficients", coefficients)[1:])
    require(
        len(present),
        "all coefficients of orders above zero are zero",
        argument="coefficients",
        remedy="give a link that is not constant, so that there is a direction to learn",
    )
    return int(present[0]) + 1


@finite_answers()
def overlap_time(utility: Coefficients, initial: OpenFraction, final: OpenFraction) -> float:
    """Time in which the overlap of a neuron with a target direction grows from m₀ to m.

        s = ∫ dm / ((1 − m²) Φ′(m))

    A neuron of unit norm and output weight one obeys dm/ds = (1 − m²) Φ′(m) while the residual is frozen. A random
    direction in d dimensions has |m₀| of order d^(−1/2). With the information exponent k* of Φ, the time to reach a
    given overlap is therefore O(1) for k* = 1, O(log d) for k* = 2 and O(d^(k*/2 − 1)) for k* ≥ 3.

    Args:
        utility: Coefficients of Φ, shape (orders,) (see `utility_polynomial`).
        initial: Initial overlap m₀, between 0 and 1.
        final: Final overlap m, between m₀ and 1.

    Returns:
        s, with a relative error of at most 1e-8.

    Raises:
        InputError: If m ≤ m₀, or Φ′ is not positive between m₀ and m; the overlap then does not reach m.

    Source: arXiv:2003.10409; arXiv:2506.06489.

    Example:
        >>> bool(np.isclose(overlap_time([0.0, 0.0, 1.0], 0.1, 0.9), np.log(9 * np.sqrt(0.99 / 0.19)) / 2))
        True
    """
    require(
        final > initial,
        f"final is {final}, which is not above initial = {initial}",
        argument="final",
        value=final,
        remedy="choose final above initial",
    )
    slope = Polynomial(_coefficients("utility", utility)).deriv()
    turns = slope.roots()
    between = turns[(np.abs(turns.imag) < 1e-12) & (turns.real >= initial) & (turns.real <= final)].real
    require(
        slope(initial) > 0 and not len(between),
        f"the utility stops growing at the overlap {between.min() if len(between) else initial:.6g}",
        argument="utility",
        value=float(between.min()) if len(between) else initial,
        remedy="choose overlaps between which the slope of the utility is positive",
    )

    def integrand(log_odds: float) -> float:
        # m = tanh z removes the factor (1 − m²), and integration over log z resolves small overlaps.
        z = math.exp(log_odds)
        return z / slope(math.tanh(z))

    bounds = math.log(math.atanh(initial)), math.log(math.atanh(final))
    return scipy.integrate.quad(integrand, *bounds, epsabs=0, epsrel=1e-10, limit=500)[0]


@covers(
    network="two-layer quadratic",
    data="Gaussian inputs, quadratic index model",
    start="small",
    gives="times and levels of all jumps",
    reference="arXiv:2506.06489",
    exact=False,
    assumes=(SMALL_START,),
)
def quadratic_index_staircase(
    strengths: Annotated[Real[ArrayLike, " directions"], Gt(0)], *, scale: OpenFraction
) -> Staircase:
    """Predict the loss staircase of a quadratic two-layer network on y = Σ_r g_r ⟨w_r, x⟩², with g_r > 0.

    The w_r are orthonormal, x ~ N(0, I), f = Σ_i a_i ⟨w_i, x⟩² = xᵀMx, and the flow is homogeneity-normalised (the
    learning rate of each neuron is 1/‖θ_i‖). With G = Σ g_r w_r w_rᵀ, the population loss is L = ‖M − G‖² + ½
    (tr(M − G))². The second term is ½ (E(f − y))², which couples all directions. After the n strongest directions are
    learned, with coefficients μ_r and the mean error δ = E(y − f),

        μ_r = g_r + δ/2,   δ = Σ_unlearned g / (1 + n/2),   L = Σ_unlearned g² + (Σ_unlearned g)²/(n + 2).

    A direction of strength g grows as exp(ρ t) with ρ = (2/√3)(2g + δ), in dormant and active neurons alike. Directions
    on which the target does not depend have g = 0. The next direction is learned when its total growth ∫ρ dt reaches
    log(1/α). Directions are therefore learned in the order of their strengths, and those with g = 0 are never learned.

    Args:
        strengths: g_r > 0, shape (directions,), in any order; equal strengths are learned in a single jump.
        scale: Order of magnitude α of the initial norm of a neuron, between 0 and 1.

    Returns:
        The staircase of a homogeneity-normalised flow of degree 3. Its times are predicted in the limit α → 0; their
        error in gradient-flow time remains bounded. Features: `index_strength` (the strength g of the learned
        direction), `index_coefficient` (μ of this direction on the plateau after the jump) and `growth_rate` (ρ at the
        jump).

    Raises:
        InputError: If a strength is not positive, or the scale is outside (0, 1). For strengths of both signs, use
            `alternating.alternating_flow`: the network can then learn, and later forget, directions on which the target
            does not depend.

    Assumptions: generic neurons, at least one with a > 0 per direction. If all strengths are negative, change the sign
    of y and f.

    Source: arXiv:2506.06489 for the method; levels and times with the coupling by the mean error are derived here.

    Example:
        >>> steps = quadratic_index_staircase([1.0, 0.4], scale=1e-8)
        >>> steps.levels.round(4), steps.accelerated_times.round(4)
        (array([2.14  , 0.2133, 0.    ]), array([0.2547, 0.5413]))
    """
    g = np.asarray(strengths)
    require(len(g), "there are no strengths", argument="strengths", remedy="give at least one strength")
    unit = time_unit(scale, degree=3, normalised=True)
    g = np.sort(g)[::-1]
    time, shared = 0.0, 0.0
    learned = 0
    times, levels, counts, means, rates = [], [_level(g, 0)], [], [], []
    while learned < len(g):
        mean = _mean(g, learned)
        rate = 2 * g[learned] + mean
        # Remaining time until the total growth of this direction reaches log(1/α), in accelerated units.
        step = (math.sqrt(3) / 2 - 2 * g[learned] * time - shared) / rate
        time, shared = time + step, shared + mean * step
        together = int(np.sum(g[learned:] >= g[learned] * (1 - _EQUAL)))
        counts.append(together)
        learned += together
        times.append(time)
        levels.append(_level(g, learned))
        means.append(_mean(g, learned))
        rates.append(2 / math.sqrt(3) * rate)
    taken = g[np.cumsum([0, *counts[:-1]])]
    return Staircase(
        accelerated_times=np.array(times),
        times=unit * np.array(times),
        levels=np.array(levels),
        learned=tuple(_phrase(count, strength) for count, strength in zip(counts, taken, strict=True)),
        slow=("",) * len(times),
        features={
            "index_strength": (("jump",), taken),
            "index_coefficient": (("jump",), taken + np.array(means) / 2),
            names.GROWTH_RATE: (("jump",), np.array(rates)),
        },
        names=_NAMES,
        theory="alternating gradient flow of a quadratic network on a multi-index model",
        reference=ALTERNATING,
        degree=3,
        normalised=True,
    )


def _mean(g: np.ndarray, learned: int) -> float:
    """Mean error δ = E(y − f) after the given number of strongest directions has been learned."""
    return float(np.sum(g[learned:]) / (1 + learned / 2))


def _level(g: np.ndarray, learned: int) -> float:
    return float(np.sum(g[learned:] ** 2) + np.sum(g[learned:]) ** 2 / (learned + 2))


def _phrase(count: int, strength: float) -> str:
    return f"direction of strength {strength:.4g}" if count == 1 else f"{count} directions of strength {strength:.4g}"


def _coefficients(name: str, values: ArrayLike) -> np.ndarray:
    """Validate that there is at least one coefficient, and return the coefficients as an array."""
    array = np.asarray(values)
    require(len(array), f"{name} has no coefficients", argument=name, remedy="give at least one coefficient")
    return array
