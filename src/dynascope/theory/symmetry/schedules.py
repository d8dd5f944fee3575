"""Quadratic charge under three optimisers, with settings that vary by step or by group of weights."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.symmetry.step_rules import Rule
from dynascope.theory.symmetry.step_series import (
    covers_linear_symmetry,
    initial_charge,
    known_rule,
    per_step,
    recorded_series,
    require_steps,
)
from dynascope.theory.symmetry.translation import Dampening, Momenta, hyperparameters
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveNumbers

__all__ = ["grouped_charge", "scheduled_charge"]

_EQUAL = 1e-12  # relative difference up to which products η λ count as equal


@covers_linear_symmetry(
    gives="the charge after every step of a schedule, including Nesterov momentum and decoupled decay"
)
def scheduled_charge(
    initial: FiniteNumbers,
    buffers: FiniteNumbers,
    *,
    learning_rate: PositiveNumbers,
    optimizer: str = "heavy_ball",
    weight_decay: NonNegativeNumbers = 0.0,
    momentum: Momenta = 0.0,
    dampening: Dampening = 0.0,
    updates: FiniteNumbers | None = None,
    crossed: FiniteNumbers | None = None,
    steps: FiniteNumbers | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """Quadratic charge after every step if the hyperparameters vary from step to step, exact up to rounding.

    With PyTorch's momentum buffer v, v ← β v + (1 − κ)(∂L/∂θ + λ θ), initially v = 0, c = θᵀGv, and p = vᵀGv after the
    step,

        heavy ball: c ← β c + (1 − κ) λ r,  r ← r − 2η c + η² p,  c ← c − η p,
        Nesterov:   c ← β c + λ r,  r ← r − 2η (λ r + β c) + η² wᵀGw,  c ← c − η wᵀGv,  w = ∂L/∂θ + λ θ + β v,
        decoupled:  c ← β c,  r ← ρ² r − 2ηρ c + η² p,  c ← ρ c − η p,  ρ = 1 − ηλ,

    where r = θᵀGθ on the right-hand sides is the value before the step. For decoupled decay, v does not contain λ θ.

    Args:
        initial: r_0, one number per charge.
        buffers: p = vᵀGv after every step, shape (steps, ...); without momentum, v is the gradient with weight decay.
        learning_rate: η > 0, a number or one per step.
        optimizer: "heavy_ball", which includes plain gradient descent, "nesterov" or "decoupled".
        weight_decay: λ ≥ 0, a number or one per step.
        momentum: β ≥ 0, below one, a number or one per step.
        dampening: κ from zero to one, a number or one per step; as in PyTorch, it has no effect at the first step or
            without momentum.
        updates: wᵀGw at every step, with the shape of the buffers; for "nesterov" only.
        crossed: wᵀGv at every step, with the shape of the buffers; for "nesterov" only.
        steps: Numbers of the recorded steps, shape (steps,), to check that none is missing.

    Returns:
        The charges before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If a number is out of range, the shapes do not match, a step is missing, or the charges obey no
            exact law under the optimiser.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, in discrete form.

    Example:
        >>> print(scheduled_charge(1.0, [1.0, 4.0], learning_rate=[0.1, 0.05], weight_decay=0.5, momentum=0.5))
        [1.     0.91   0.8545]
    """
    rule = known_rule(optimizer)
    p = recorded_series("buffers", buffers)
    start = initial_charge("initial", initial, p.shape[1:])
    rates = per_step("learning_rate", learning_rate, len(p))
    decays, momenta, undamped = hyperparameters(len(p), weight_decay, momentum, dampening, rule)
    nesterov = nesterov_series(rule, p, updates, crossed)
    require_steps(steps, len(p))
    return charge_recursion(rule, start, (p, *nesterov), rates, decays, momenta, undamped)


def nesterov_series(
    optimizer: Rule, buffers: np.ndarray, updates: ArrayLike | None, crossed: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """wᵀGw and wᵀGv at every step; for other optimisers the update w is the buffer v."""
    for name, value in {"updates": updates, "crossed": crossed}.items():
        require(
            (value is None) != (optimizer == "nesterov"),
            f"{name} is required for optimizer='nesterov' only, but optimizer is {optimizer!r}",
            argument=name,
            value=None if value is None else np.shape(value),
            remedy="give updates and crossed if and only if optimizer is 'nesterov'",
        )
    if updates is None or crossed is None:
        return buffers, buffers
    return recorded_series("updates", updates, like=buffers), recorded_series("crossed", crossed, like=buffers)


def charge_recursion(
    optimizer: Rule,
    start: np.ndarray,
    series: tuple[np.ndarray, np.ndarray, np.ndarray],
    rates: np.ndarray,
    decays: np.ndarray,
    momenta: np.ndarray,
    undamped: np.ndarray,
    pulls: np.ndarray | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """Charges by the laws of `scheduled_charge`; `pulls` replaces λ r if groups of weights have different decays."""
    count = len(rates)
    path = np.empty((count + 1, *np.shape(start)))
    path[0], crossed = start, np.zeros_like(start)
    with np.errstate(all="ignore"):
        for k, (buffer, update, both) in enumerate(zip(*series, strict=True)):
            rate, beta, charge = rates[k], momenta[k], path[k]
            pull = decays[k] * charge if pulls is None else pulls[k]
            if optimizer == "decoupled":
                shrinkage = 1 - rate * decays[k]
                crossed = beta * crossed
                decayed = rate * decays[k] * (2 - rate * decays[k]) * charge
                path[k + 1] = charge - (decayed + 2 * rate * shrinkage * crossed - rate**2 * buffer)
                crossed = shrinkage * crossed - rate * buffer
            else:
                crossed = beta * crossed + undamped[k] * pull
                along = pull + beta * crossed if optimizer == "nesterov" else crossed
                path[k + 1] = charge - (2 * rate * along - rate**2 * update)
                crossed = crossed - rate * both
    return path


@covers_linear_symmetry(
    gives="the charge after every step if groups of weights have different learning rates or decays"
)
def grouped_charge(
    charges: FiniteNumbers,
    buffers: FiniteNumbers,
    *,
    learning_rate: PositiveNumbers,
    weight_decay: NonNegativeNumbers = 0.0,
    schedule: PositiveNumbers = 1.0,
    optimizer: str = "heavy_ball",
    momentum: Momenta = 0.0,
    dampening: Dampening = 0.0,
    updates: FiniteNumbers | None = None,
    crossed: FiniteNumbers | None = None,
    steps: FiniteNumbers | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """Charge of a symmetry after every step if groups of its weights have different learning rates or decays.

        Q = Σ_A (η_1/η_A) r_A,   r_A = θ_AᵀGθ_A for each group A

    The symmetry implies Σ_A θ_AᵀG ∂L/∂θ_A = 0, but the terms of individual groups need not vanish. The charges of the
    groups are therefore weighted by the inverse of their rates. Weight decay acts on Q through Σ_A λ_A r_A, which
    requires every recorded r_A if the decays differ. Q obeys the law of `scheduled_charge` with three replacements: λ r
    by Σ_A λ_A r_A, p by Σ_A (η_A/η_1) p_A, and wᵀGw and wᵀGv by the analogous sums. For equal rates and decays, Q is
    the charge of `scheduled_charge`.

    Args:
        charges: r_A before every step, shape (steps, groups, ...).
        buffers: p_A = v_AᵀGv_A after every step, in the same shape.
        learning_rate: η_A > 0 of each group, shape (groups,).
        weight_decay: λ_A ≥ 0, a number or one per group.
        schedule: Factor > 0 of all learning rates, a number or one per step.
        optimizer: "heavy_ball", "nesterov", or "decoupled" if η_A λ_A is equal for all groups.
        momentum: β ≥ 0, below one, equal for all groups, a number or one per step.
        dampening: κ from zero to one, a number or one per step, as in `scheduled_charge`.
        updates: w_AᵀGw_A at every step, with the shape of the buffers; for "nesterov" only.
        crossed: w_AᵀGv_A at every step, with the shape of the buffers; for "nesterov" only.
        steps: Numbers of the recorded steps, shape (steps,), to check that none is missing.

    Returns:
        Q before the first step and after each step, shape (steps + 1, ...).

    Raises:
        InputError: If an argument is invalid for `scheduled_charge`, or decoupled decay shrinks the groups by different
            factors; in this case, no law exists.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, in discrete form.

    Example:
        >>> print(grouped_charge([[4.0, -1.0]], [[2.0, -2.0]], learning_rate=[0.1, 0.2], weight_decay=[0.5, 0.0]))
        [3.5  3.08]
    """
    rule = known_rule(optimizer)
    p = recorded_series("buffers", buffers)
    require(
        p.ndim >= 2,
        f"buffers has shape {p.shape}",
        argument="buffers",
        value=p.shape,
        remedy="give an array with the axes steps and groups",
    )
    r = recorded_series("charges", charges, like=p)
    count, groups = p.shape[:2]
    require(len(r) > 0, "no step is recorded", argument="charges", value=0, remedy="record at least one step")
    rates = require_array("learning_rate", learning_rate, (groups,))
    decays = per_step("weight_decay", weight_decay, groups)
    factors = per_step("schedule", schedule, count)
    _, momenta, undamped = hyperparameters(count, 0.0, momentum, dampening, rule)
    nesterov = nesterov_series(rule, p, updates, crossed)
    require_steps(steps, count)
    shrinking = rates * decays
    require(
        rule != "decoupled" or np.ptp(shrinking) <= _EQUAL * shrinking.max(),
        "decoupled decay shrinks the groups by different factors, so the charge obeys no exact law",
        argument="weight_decay",
        value=decays.tolist(),
        remedy="split the measured drift with charge_drift",
    )
    with np.errstate(all="ignore"):
        relative_rates = rates / rates[0]
        buffer, update, both = (np.asarray(np.einsum("a,ka...->k...", relative_rates, each)) for each in (p, *nesterov))
        pulls = np.einsum("a,ka...->k...", decays, r)
        start = np.asarray(np.einsum("a,a...->...", 1 / relative_rates, r[0]))
        same = np.full(count, decays[0])
    return charge_recursion(rule, start, (buffer, update, both), rates[0] * factors, same, momenta, undamped, pulls)
