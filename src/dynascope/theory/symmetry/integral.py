"""Charges in continuous time: gradient flow, and integral laws for momentum and weight decay."""

from __future__ import annotations

import functools
from typing import Literal

import numpy as np
from jaxtyping import Float

from dynascope.theory.assumptions import SMALL_STEPS
from dynascope.theory.domain import covers
from dynascope.theory.sgd import SGD, steps_of
from dynascope.theory.symmetry.kernels import damped_kernels
from dynascope.theory.symmetry.step_series import initial_charge, recorded_series, require_steps
from dynascope.validation import require
from dynascope.validation.bounded import FiniteNumbers, NonNegativeFloat, NonNegativeNumbers

__all__ = ["charge_integral", "gradient_flow_charge", "oscillator", "translation_integral"]

_covers = functools.partial(
    covers, data="any, in any batches", start="any", reference="arXiv:2012.04728", exact=False, assumes=(SMALL_STEPS,)
)


@covers(
    network="any with a linear or a translation symmetry",
    data="any",
    start="any",
    gives="the charge under gradient flow with weight decay",
    reference="arXiv:2012.04728",
)
def gradient_flow_charge(
    times: NonNegativeNumbers,
    initial: FiniteNumbers,
    *,
    weight_decay: NonNegativeFloat = 0.0,
    degree: Literal[1, 2] = 2,
) -> Float[np.ndarray, "*times *charge"]:
    """Charge under gradient flow with weight decay.

        Q(t) = exp(−p λ t) Q(0)   for θ' = −∂L/∂θ − λ θ and a charge of degree p in the weights

    Args:
        times: Gradient-flow times t ≥ 0, any shape.
        initial: Q(0), any shape.
        weight_decay: λ ≥ 0, equal for all weights of the charge.
        degree: 1 for sums of weights, conserved by translation symmetries, or 2 for quadratic charges.

    Returns:
        The charges, with the time axes first.

    Raises:
        InputError: If a number is out of range.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, section 4.

    Example:
        >>> print(gradient_flow_charge([0.0, 5.0], 2.0, weight_decay=0.1).round(6))
        [2.       0.735759]
    """
    with np.errstate(all="ignore"):
        return np.asarray(np.multiply.outer(np.exp(-degree * weight_decay * np.asarray(times)), initial))


@_covers(
    network="any with a translation symmetry, such as softmax outputs",
    gives="the sum of the weights in continuous time",
)
def translation_integral(
    times: NonNegativeNumbers, initial: FiniteNumbers, sgd: SGD
) -> Float[np.ndarray, "*times *charge"]:
    """Sum of the weights that a translation symmetry shifts, in continuous time from zero initial velocity.

        s(t) = s(0) h(t)   for s'' + 2γ s' + ω² s = 0,   γ = (1 − β)/η(1 + β),   ω² = 2λ/η(1 + β)

    The result is accurate to first order in the learning rate; `translation_charge` is exact.

    Args:
        times: Times t ≥ 0, the number of steps times the learning rate, any shape.
        initial: s(0), any shape.
        sgd: η, β and λ.

    Returns:
        The charges, with the time axes first.

    Raises:
        InputError: If a number is out of range, or a batch size is given.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, section 6.

    Example:
        >>> print(translation_integral([0.0, 5.0], 1.0, SGD(0.1, momentum=0.9, weight_decay=0.01)).round(4))
        [1.     0.6474]
    """
    damping, frequency = oscillator(sgd, degree=1)
    position = damped_kernels(times, damping=damping, frequency=frequency).position
    return np.asarray(np.multiply.outer(position, initial))


@_covers(
    network="any with a linear symmetry, such as ReLU neurons",
    gives="the charge in continuous time, from the displacements",
)
def charge_integral(
    initial: FiniteNumbers,
    displacements: FiniteNumbers,
    sgd: SGD,
    *,
    velocity: FiniteNumbers = 0.0,
    steps: FiniteNumbers | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """Quadratic charge of a linear symmetry in continuous time, from the recorded displacements.

        r(t) = r_0 h(t) + r'_0 k(t) + 2 ∫ k(t − s) θ'ᵀGθ' ds,   γ = (1 − β)/η(1 + β),   ω² = 4λ/η(1 + β)

    h and k are the kernels of `damped_kernels` for γ and ω. The integral is a sum over the steps k with weight η, time
    ηk and velocity d_k/η. The function accumulates the sum step by step to avoid growing exponentials. Without momentum
    the law is of first order, r(t) = exp(−2λt) r_0 + η ∫ exp(−2λ(t − s)) ‖∂L/∂θ + λθ‖²_G ds. Both laws are accurate to
    first order in the learning rate and are mainly for interpretation; `quadratic_charge` is exact.

    Args:
        initial: Initial charge r_0 = θᵀGθ, one number per charge.
        displacements: d_kᵀ G d_k at every step, shape (steps, ...).
        sgd: η, β and λ, equal for all weights of the charge.
        velocity: r'_0, one number per charge; zero if the weights start at rest or without momentum.
        steps: Numbers of the recorded steps, shape (steps,), to check that none is missing.

    Returns:
        The charges before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If a number is out of range, a batch size is given, the shapes do not match, a step is missing, or a
            velocity is given without momentum.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, sections 5 and 6.

    Example:
        >>> print(charge_integral(1.0, [0.01, 0.04], SGD(0.1, momentum=0.5, weight_decay=0.5)).round(4))
        [1.     0.9465 0.8423]
    """
    q = recorded_series("displacements", displacements)
    start = initial_charge("initial", initial, q.shape[1:])
    speed = initial_charge("velocity", velocity, q.shape[1:])
    damping, frequency = oscillator(sgd, degree=2)
    require(
        sgd.momentum > 0 or not speed.any(),
        "velocity is nonzero, but, without momentum, the charge has no independent velocity",
        argument="velocity",
        value=float(np.abs(speed).max(initial=0.0)),
        remedy="set velocity to zero",
    )
    require_steps(steps, len(q))
    rate = float(sgd.learning_rate)
    path = np.empty((len(q) + 1, *q.shape[1:]))
    path[0] = start
    with np.errstate(all="ignore"):
        if sgd.momentum == 0:
            for k, now in enumerate(q):
                path[k + 1] = np.exp(-2 * sgd.weight_decay * rate) * (path[k] + now)
            return path
        kernels = damped_kernels(rate, damping=damping, frequency=frequency)
        for k, now in enumerate(q):
            path[k + 1] = path[k] - kernels.lost * path[k] + kernels.velocity * speed
            slowed = (kernels.position - 2 * damping * kernels.velocity) * speed
            # The force at this time affects the charge only at later times.
            speed = slowed - frequency**2 * kernels.velocity * path[k] + 2 * now / rate
    return path


def oscillator(sgd: SGD, *, degree: int) -> tuple[float, float]:
    """γ and ω of a charge of the given degree in the weights."""
    rate, decay, momentum = steps_of(sgd)
    with np.errstate(all="ignore"):
        slowness = rate * (1 + momentum)
        damping = np.float64(1 - momentum) / slowness
        frequency = np.sqrt(2 * degree * np.float64(decay)) / np.sqrt(slowness)
    require(
        bool(np.isfinite([damping, frequency]).all()),
        f"learning_rate is {rate:g}, which is so small that the rates of the charge overflow",
        argument="learning_rate",
        value=rate,
        remedy="use a larger learning rate",
    )
    return float(damping), float(frequency)
