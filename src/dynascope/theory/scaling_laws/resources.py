"""Loss as a function of one resource while another resource is finite, including the bend in the power law."""

from __future__ import annotations

import functools
import math

import numpy as np
from jaxtyping import Float
from scipy.special import betaincc, gamma, poch, zeta

from dynascope.theory.domain import covers
from dynascope.theory.scaling_laws.skill_model import exact_integral, require_below_target, skill_model
from dynascope.validation import require
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat, PositiveNumbers

__all__ = ["data_law", "data_spread", "parameter_law", "time_law"]

_DATA = "skills of frequency k^−(α+1)"
_covers = functools.partial(
    covers,
    network="multilinear",
    start="equal layers",
    reference="Nam, DPhil thesis (2024), section 4.3 and C.1; arXiv:2404.17563",
)


@_covers(data=f"{_DATA}, fresh samples", gives="loss against time, for any number of neurons and skills", exact=False)
def time_law(
    times: PositiveNumbers,
    exponent: PositiveFloat,
    *,
    target_scale: PositiveFloat,
    initial_strength: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
    neurons: PositiveFloat | None = None,
    skills: PositiveFloat | None = None,
) -> Float[np.ndarray, ...]:
    """Loss after T steps on fresh samples, for N neurons and n_s skills.

        L = S² A/(2(α + 1)) τ^−β J(τ (N + ½)^−(α+1)) + ½ S² A [ζ(α + 1, N + 1) − ζ(α + 1, n_s + 1)]

    Here τ = 2 η S A T, β = α/(α + 1), A = 1/(ζ(α + 1) − ζ(α + 1, n_s + 1)), c = S/R₀ − 1 and J = `skill_integral`. An
    integral replaces the sum over skills. For α ≤ 1, c = 99, η S = 1 and N ≥ 1000, the relative error is at most 1e-6
    for T ≥ 1000 and 5e-4 for T ≥ 100. `multilinear.training_loss` computes the exact sum.

    Args:
        times: Number of steps T > 0, of any shape.
        exponent: α > 0 of the frequencies P(k) ∝ k^−(α+1).
        target_scale: Target strength S > 0 of each skill.
        initial_strength: Initial strength R₀ of each skill, between 0 and S.
        learning_rate: η > 0.
        neurons: Number of neurons N > 0; by default, one per skill.
        skills: Number of skills n_s ≥ N; infinite if not given.

    Returns:
        L, with the shape of `times`.

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), equations 4.21 and C.2, here without their approximations.

    Example:
        >>> print(time_law([100, 1000], 0.6, target_scale=1.0, initial_strength=0.01, neurons=300).round(6))
        [0.106945 0.045241]
    """
    given = {"initial_strength": initial_strength, "learning_rate": learning_rate, "skills": skills}
    model = skill_model(exponent, target_scale=target_scale, **given)
    if neurons is None:
        neurons = skills
    if neurons is not None:
        require(
            skills is None or neurons <= skills,
            f"neurons is {neurons}, which exceeds skills = {skills}",
            argument="neurons",
            value=neurons,
            remedy="give at most one neuron for each skill",
        )
    steps = model.rate * np.asarray(times)
    lower = np.zeros_like(steps) if neurons is None else steps * (neurons + 0.5) ** -(exponent + 1)
    absent = 0.0
    if neurons is not None:
        absent = zeta(exponent + 1, neurons + 1) - (0 if skills is None else zeta(exponent + 1, skills + 1))
    return model.weight * (
        steps**-model.beta * exact_integral(model.beta, model.contrast, lower) / (exponent + 1) + absent
    )


@_covers(
    data=f"{_DATA}, D samples",
    gives="mean loss against the number of samples at convergence, for any number of neurons",
    exact=False,
)
def data_law(
    samples: PositiveNumbers,
    exponent: PositiveFloat,
    *,
    target_scale: PositiveFloat,
    initial_strength: NonNegativeFloat = 0.0,
    neurons: PositiveFloat | None = None,
) -> Float[np.ndarray, ...]:
    """Mean loss at convergence on D samples, for N neurons and infinitely many skills.

        L = (S − R₀)² A^(1/(α+1))/(2(α + 1)) B(β, D + 1) [1 − I_x(β, D + 1)] + ½ S² A ζ(α + 1, N + 1)

    Here β = α/(α + 1), A = 1/ζ(α + 1), x = A (N + ½)^−(α+1), B is the beta function, and I is its regularised
    incomplete form. An integral replaces the sum over skills. For α ≤ 1, the relative error is at most 1e-6 for D ≥ 300
    (3e-6 for N ≥ 100).

    Args:
        samples: Number of samples D > 0, of any shape.
        exponent: α > 0 of the frequencies P(k) ∝ k^−(α+1).
        target_scale: Target strength S > 0 of each skill.
        initial_strength: Initial strength R₀ of each skill, 0 ≤ R₀ < S.
        neurons: Number of neurons N > 0; infinite if not given.

    Returns:
        L, with the shape of `samples`.

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), equations 4.28 to 4.34, where 4.33 should read −α/[(α + 1)(D + 1) + α].

    Example:
        >>> print(data_law([1000, 3000], 0.6, target_scale=1.0).round(6))
        [0.033126 0.021944]
    """
    samples = np.asarray(samples)
    # At convergence, the learning time does not matter, so any R₀ in the domain can be used here.
    model = skill_model(exponent, target_scale=target_scale, initial_strength=target_scale / 2)
    require_below_target(initial_strength, target_scale)
    beta, power = model.beta, model.normalisation ** (1 / (exponent + 1))
    lost = (
        np.square(float(target_scale - initial_strength))
        / 2
        * power
        / (exponent + 1)
        * gamma(beta)
        / poch(samples + 1, beta)
    )
    if neurons is None:
        return lost
    last = model.normalisation * (neurons + 0.5) ** -(exponent + 1)
    return lost * betaincc(beta, samples + 1, last) + model.weight * zeta(exponent + 1, neurons + 1)


@_covers(data=_DATA, gives="loss against the number of neurons at convergence on unlimited data")
def parameter_law(
    neurons: PositiveNumbers,
    exponent: PositiveFloat,
    *,
    target_scale: PositiveFloat,
    skills: PositiveFloat | None = None,
) -> Float[np.ndarray, ...]:
    """Loss at convergence on unlimited data, for N neurons and n_s skills.

        L = ½ S² A [ζ(α + 1, N + 1) − ζ(α + 1, n_s + 1)]

    Here A = 1/(ζ(α + 1) − ζ(α + 1, n_s + 1)). With infinitely many skills, the loss is close to A_N (N + ½)^−α, where
    A_N = S² A/(2α); the relative error is 1e-7 at N = 1000.

    Args:
        neurons: Number of neurons N > 0, of any shape. The loss is zero if N ≥ n_s.
        exponent: α > 0 of the frequencies P(k) ∝ k^−(α+1).
        target_scale: Target strength S > 0 of each skill.
        skills: Number of skills n_s > 0; infinite if not given.

    Returns:
        L, with the shape of `neurons`.

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), equation 4.36.

    Example:
        >>> print(parameter_law([10, 100], 0.6, target_scale=1.0).round(6))
        [0.088903 0.022934]
    """
    neurons = np.asarray(neurons)
    model = skill_model(exponent, target_scale=target_scale, initial_strength=target_scale / 2, skills=skills)
    unknown = 0 if skills is None else zeta(exponent + 1, skills + 1)
    return model.weight * np.maximum(zeta(exponent + 1, neurons + 1) - unknown, 0)


def data_spread(samples: float, exponent: float) -> float:
    """Relative standard deviation of the loss over random training sets of D samples.

    For independent Poisson counts d_k, the variance is proportional to Σ P² (e^(−DP) − e^(−2DP)). The function replaces
    the sum over skills by an integral. If the counts sum to D, the variance is smaller.
    """
    beta = exponent / (exponent + 1)
    skills = zeta(exponent + 1) ** (-1 / (exponent + 1)) / (exponent + 1) * samples ** (1 - beta)
    return math.sqrt(beta * (1 - 0.5 ** (1 + beta)) / (gamma(beta) * skills))
