"""Optimal split of compute between training time and number of neurons."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize_scalar, root_scalar
from scipy.special import expit

from dynascope.errors import InputError
from dynascope.results.named_tuples import short_repr
from dynascope.theory.domain import covers
from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.scaling_laws.fitting import PowerLawFit
from dynascope.theory.scaling_laws.joint_fitting import JointLawFit
from dynascope.theory.scaling_laws.joint_law import JointLaw, PowerLaw
from dynascope.theory.scaling_laws.resources import time_law
from dynascope.theory.scaling_laws.skill_model import exact_integral, skill_model
from dynascope.validation import require
from dynascope.validation.bounded import NonNegativeFloat, PositiveFloat, PositiveNumbers

__all__ = ["ComputeOptimum", "Plan", "compute_optimum", "finite_optimum", "plan"]


class ComputeOptimum(NamedTuple):
    """Optimal split of compute in the multilinear model.

    Attributes:
        neurons: N* = (C/θ*)^(1/(α+2)), not rounded.
        time: T* = C/N*, in steps.
        loss: A_C C^−α/(α+2).
        theta: θ* = T*/N*^(α+1), independent of the compute.
    """

    neurons: Float[np.ndarray, ...]
    time: Float[np.ndarray, ...]
    loss: Float[np.ndarray, ...]
    theta: float

    __repr__ = short_repr


class Plan(NamedTuple):
    """Optimal split of compute for measured power laws.

    Attributes:
        neurons: Optimal N*, not rounded.
        time: Optimal T*.
        loss: Loss at N* and T*, including the floor.
        neurons_exponent: Exponent of N* ∝ C^neurons_exponent.
        time_exponent: Exponent of T* ∝ C^time_exponent.
        loss_exponent: Exponent of the loss above the floor, which is ∝ C^−loss_exponent.
    """

    neurons: Float[np.ndarray, ...]
    time: Float[np.ndarray, ...]
    loss: Float[np.ndarray, ...]
    neurons_exponent: float
    time_exponent: float
    loss_exponent: float

    __repr__ = short_repr


@covers(
    network="multilinear",
    data="skills of frequency k^−(α+1), fresh samples",
    start="equal layers",
    gives="optimal time and number of neurons for given compute, and the loss",
    reference="Nam, DPhil thesis (2024), section 4.3.4; arXiv:2404.17563",
    exact=False,
)
def compute_optimum(
    compute: PositiveNumbers,
    exponent: PositiveFloat,
    *,
    target_scale: PositiveFloat,
    initial_strength: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
    skills: PositiveFloat | None = None,
) -> ComputeOptimum:
    """Compute the time T* and number of neurons N* that minimise the loss for the compute C = T N.

    With T = θ N^(α+1) and τ = 2 η S A θ, the loss is N^−α F(θ), where F = ½ S² A [τ^−β J(τ)/(α + 1) + 1/α]; A, β and J
    are defined in `power_laws`. At given C the loss is C^−α/(α+2) θ^(α/(α+2)) F(θ), whose minimum θ* does not depend on
    C. T* is about the time that N* neurons take to learn the N* most frequent skills.

    Args:
        compute: C > 0, of any shape.
        exponent: α > 0 of the frequencies P(k) ∝ k^−(α+1).
        target_scale: Target strength S > 0 of each skill.
        initial_strength: Initial strength R₀ of each skill, between 0 and S.
        learning_rate: η > 0.
        skills: Number of skills n_s > 0, assumed larger than any N*; infinite if not given.

    Returns:
        A `ComputeOptimum`. Its loss is exact in the limit of large C; for α ≤ 1, the relative error is at most 2.5e-4
        at C = 1e9.

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), equations 4.37 to 4.44. Equation 4.39, the sum of the laws in time and in neurons, has
        the correct exponents but a different prefactor.

    Example:
        >>> best = compute_optimum(1e6, 0.6, target_scale=1.0, initial_strength=0.01)
        >>> print(f"{best.neurons:.2f} {best.time:.2f} {best.loss:.6f} {best.theta:.6f}")
        120.51 8297.93 0.021944 3.884377
    """
    compute = np.asarray(compute)
    given = {"initial_strength": initial_strength, "learning_rate": learning_rate, "skills": skills}
    model = skill_model(exponent, target_scale=target_scale, **given)
    steps, excess = _best_steps(model.beta, exponent, model.contrast)
    theta = steps / model.rate
    neurons = (compute / theta) ** (1 / (exponent + 2))
    return ComputeOptimum(neurons, compute / neurons, model.weight / exponent * excess * neurons**-exponent, theta)


def finite_optimum(compute: float, exponent: float, fewest: float, most: float, **model: float) -> tuple[float, float]:
    """Minimise `time_law` at time C/N over the number of neurons N; return N, not rounded, and the loss."""
    found: Any = minimize_scalar(
        lambda folds: float(time_law(compute / math.exp(folds), exponent, neurons=math.exp(folds), **model)),
        bounds=(math.log(fewest), math.log(most)),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return math.exp(found.x), float(found.fun)


@finite_answers()
def plan(
    compute: PositiveNumbers,
    *,
    time: PowerLaw | PowerLawFit | None = None,
    parameters: PowerLaw | PowerLawFit | None = None,
    joint: JointLaw | JointLawFit | None = None,
    contrast: PositiveFloat | None = None,
    cost: PositiveFloat = 1.0,
    floor: NonNegativeFloat = 0.0,
) -> Plan:
    """Split compute optimally, given measured power laws a T^−t in time and b N^−n in parameters, or a joint law.

    Each power law holds if the other resource is abundant. How the two laws combine depends on how skills are learned:

        L = b N^−n [1 + t τ^−t J(τ)],  τ = [t J(0) b/a]^(1/t) T N^−n/t,   if skills emerge one by one with contrast c;
        L = a T^−t + b N^−n,                                              if no contrast is given.

    J is `skill_integral` with β = t. In the first law, only the N skills that have a neuron take time to learn. For
    t = n/(n + 1), the first law is the multilinear model, and `plan` equals `compute_optimum`. The second law has the
    same exponents, but counts the skills without a neuron twice. For the multilinear model at α = 0.6 and c = 99, its
    loss is 81 % too high and its N* 64 % too large. At the optimum for C = cost · T · N, the loss falls as C^−nt/(n+t).

    Two fits, in time at fixed N and in parameters at fixed T, do not determine the floor E: the fitted floors are E + b
    N^−n and E + a T^−t. A joint law from `fit_joint` determines E, and its `split_intervals` give the uncertainty of
    the split. With a joint law, the field `time` of the result is the number of samples D.

    Args:
        compute: C > 0, of any shape.
        time: Power law a T^−t, from `fit` or a `PowerLaw`.
        parameters: Power law b N^−n, from `fit` or a `PowerLaw`.
        joint: Joint law from `fit_joint`, or a `JointLaw`, instead of `time` and `parameters`.
        contrast: c = S/R₀ − 1 > 0, for skills that emerge one after another; equal to exp(offset) from
            `skills.calibrate`.
        cost: Compute per step and parameter, positive; for example, 6 FLOPs times the batch size.
        floor: Irreducible loss E ≥ 0, less than the floors of `time` and `parameters` if these are fits. Do not give a
            floor with a joint law.

    Returns:
        A `Plan`, whose arrays have the shape of `compute`.

    Raises:
        InputError: If a number is out of range, such as t ≥ 1 with a contrast; if the floor exceeds the upper end of
            the floor interval of `time` or `parameters`; or if a joint law is given with another law, a contrast or a
            floor.

    References:
        Nam, DPhil thesis (2024), section 4.3.4, whose equation 4.39 is the sum; Hoffmann et al., arXiv:2203.15556.

    Example:
        >>> from dynascope.theory.scaling_laws import PowerLaw
        >>> found = plan(1e9, time=PowerLaw(0.6, 0.375), parameters=PowerLaw(0.36, 0.6), contrast=99.0)
        >>> print(f"{found.neurons:.0f} {found.time:.0f} {found.loss:.6f} {found.loss_exponent:.6f}")
        1695 589798 0.004435 0.230769
    """
    compute = np.asarray(compute)
    if joint is not None:
        alone = time is None and parameters is None and contrast is None and floor == 0
        remedy = "give joint with compute and cost only"
        require(
            alone, "joint is given together with other laws, a contrast or a floor", argument="joint", remedy=remedy
        )
        law = joint.law if isinstance(joint, JointLawFit) else joint
        best = law.split(compute, cost=cost)
        falls = best.exponent * law.parameters_exponent
        return Plan(best.parameters, best.data, best.loss, best.exponent, 1 - best.exponent, falls)
    if time is None or parameters is None:
        missing = "time" if time is None else "parameters"
        raise InputError(f"{missing} is missing", argument=missing, remedy="give time and parameters, or joint alone")
    for name, law in (("time", time), ("parameters", parameters)):
        if isinstance(law, PowerLawFit):
            highest = law.floor_interval[1]
            require(
                floor <= highest,
                f"floor is {floor:.6g}, but the losses of {name} fall to {highest:.6g}",
                argument="floor",
                value=floor,
                remedy="give an irreducible loss below the floors of time and parameters, for example from fit_joint",
            )
        for number in (law.prefactor, law.exponent):
            require(
                math.isfinite(number) and number > 0,
                f"{name} has prefactor {law.prefactor} and exponent {law.exponent}, which must be finite and positive",
                argument=name,
                value=(law.prefactor, law.exponent),
                remedy="give a law fitted to a loss that decreases",
            )
    t, n = time.exponent, parameters.exponent
    ratio = math.log(parameters.prefactor) - math.log(time.prefactor)
    if contrast is None:
        # ln θ* of T = θ N^(n/t), and the loss over b N^−n.
        log_theta, excess = (math.log(t / n) - ratio) / t, 1 + n / t
    else:
        require(
            t < 1,
            f"time has exponent {t}, but the law for emerging skills requires an exponent below one",
            argument="time",
            value=t,
            remedy="omit contrast, or give a law in time with a smaller exponent",
        )
        steps, excess = _best_steps(t, n, contrast)
        log_theta = math.log(steps) - (math.log(t * float(exact_integral(t, contrast, 0.0))) + ratio) / t
    total = np.log(compute) - math.log(cost)
    log_neurons = (total - log_theta) * t / (n + t)
    neurons, duration = np.exp(log_neurons), np.exp(total - log_neurons)
    loss = parameters.prefactor * excess * neurons**-n + floor
    return Plan(neurons, duration, loss, t / (n + t), n / (n + t), n * t / (n + t))


def _best_steps(t: float, n: float, contrast: float) -> tuple[float, float]:
    """Minimise τ^(nt/(n+t)) G(τ), where G = 1 + t τ^−t J(τ) is the loss divided by b N^−n; return τ* and G(τ*)."""

    def learnable(steps: float) -> float:
        return t * steps**-t * float(exact_integral(t, contrast, steps))

    def slope(log_steps: float) -> float:
        """Derivative of ln[τ^(nt/(n+t)) G] with respect to ln τ, times G (n + t)/t; J′ = −τ^(t−1)/(1 + e^τ/c)²."""
        steps = math.exp(log_steps)
        edge = float(expit(math.log(contrast) - steps)) ** 2
        left = learnable(steps)
        return n * (1 + left) - (n + t) * (left + edge)

    # At large τ, J vanishes and the slope is n. At small τ, t τ^−t J dominates and the slope is negative.
    high = math.log(max(math.log(contrast), 0) + 40)
    low = high - 5
    while slope(low) > 0:
        low -= 5
    best = math.exp(root_scalar(slope, bracket=(low, high), xtol=1e-14, rtol=1e-14).root)
    return best, 1 + learnable(best)
