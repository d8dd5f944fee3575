"""The four scaling laws of the multilinear model, with their prefactors."""

from __future__ import annotations

from typing import NamedTuple

from scipy.special import gamma

from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.scaling_laws.allocation import compute_optimum
from dynascope.theory.scaling_laws.joint_law import PowerLaw
from dynascope.theory.scaling_laws.skill_model import exact_integral, skill_model
from dynascope.validation.bounded import PositiveFloat

__all__ = ["ScalingLaws", "power_laws"]


class ScalingLaws(NamedTuple):
    """Scaling law for each resource, with unlimited amounts of the other resources.

    Attributes:
        time: A_T T^−β, after T steps of gradient descent.
        samples: A_D D^−β, with D samples.
        parameters: A_N N^−α, with N neurons, one per skill.
        compute: A_C C^−α/(α+2), with compute C = T N, split optimally.
    """

    time: PowerLaw
    samples: PowerLaw
    parameters: PowerLaw
    compute: PowerLaw

    __repr__ = short_repr


@covers(
    network="multilinear",
    data="skills of frequency k^−(α+1)",
    start="equal layers",
    gives="exponents and prefactors of the scaling laws in time, samples, parameters and compute",
    reference="Nam, DPhil thesis (2024), table 4.1; arXiv:2404.17563",
    exact=False,
)
def power_laws(
    exponent: PositiveFloat,
    *,
    target_scale: PositiveFloat,
    initial_strength: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
    skills: PositiveFloat | None = None,
) -> ScalingLaws:
    """Compute the scaling laws of the loss ½ E(f − y)² in time, samples, parameters and compute.

    With β = α/(α + 1), A = 1/ζ(α + 1), c = S/R₀ − 1 and J = `skill_integral`:

        time        A_T = S² A/(2(α + 1)) (2 η S A)^−β J(0)               exponent β
        samples     A_D = (S − R₀)² A^(1/(α+1))/(2(α + 1)) Γ(β)           exponent β
        parameters  A_N = S² A/(2α)                                       exponent α
        compute     A_C = min_θ θ^(α/(α+2)) F(θ), see `compute_optimum`   exponent α/(α + 2)

    The laws hold for infinitely many skills and a large amount of the resource. For α ≤ 1, c = 99 and η S = 1, their
    relative error is at most 1e-6 for time at T ≥ 1000, 4e-5 for samples at D = 1e4, and 2.5e-4 for compute at C = 1e9.
    `time_law`, `data_law` and `parameter_law` include finite-size corrections. With n_s skills,
    A = 1/(ζ(α + 1) − ζ(α + 1, n_s + 1)), and the laws hold as long as the rarest skills are not yet learned.

    Args:
        exponent: α > 0 of the frequencies P(k) ∝ k^−(α+1).
        target_scale: Target strength S > 0 of each skill.
        initial_strength: Initial strength R₀ of each skill, between 0 and S.
        learning_rate: η > 0.
        skills: Number of skills n_s > 0; infinite if not given.

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), sections 4.3 and B.1. Nam et al., arXiv:2404.17563, give the prefactor S²/2 for
        parameters, which equals A_N only if α ζ(α + 1) ≈ 1 and is 37 % too large at α = 0.6.

    Example:
        >>> laws = power_laws(0.6, target_scale=1.0, initial_strength=0.01)
        >>> print(f"{laws.time.prefactor:.9f} {laws.time.exponent:.3f} {laws.compute.prefactor:.9f}")
        0.600061773 0.375 0.532018496
    """
    given = {"initial_strength": initial_strength, "learning_rate": learning_rate, "skills": skills}
    model = skill_model(exponent, target_scale=target_scale, **given)
    alpha, beta = model.alpha, model.beta
    in_time = model.weight / (alpha + 1) * model.rate**-beta * float(exact_integral(beta, model.contrast, 0.0))
    lost = (target_scale - initial_strength) ** 2 / 2
    in_samples = lost * model.normalisation ** (1 / (alpha + 1)) / (alpha + 1) * float(gamma(beta))
    best = compute_optimum(1.0, exponent, target_scale=target_scale, **given)
    return ScalingLaws(
        time=PowerLaw(in_time, beta),
        samples=PowerLaw(in_samples, beta),
        parameters=PowerLaw(model.weight / alpha, alpha),
        compute=PowerLaw(float(best.loss), alpha / (alpha + 2)),
    )
