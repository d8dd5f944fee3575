"""The quadratic charge of weights that are trained at rates and with decays of their own, group by group."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from dynascope.theory.symmetry.schedules import follow, nesterov_series
from dynascope.theory.symmetry.step_series import (
    covers_linear_symmetry,
    known_rule,
    per_step,
    recorded_series,
    require_steps,
)
from dynascope.theory.symmetry.translation import Dampening, Momenta, hyperparameters
from dynascope.validation import require, require_array
from dynascope.validation.bounded import FiniteNumbers, NonNegativeNumbers, PositiveNumbers

__all__ = ["grouped_charge"]

_EQUAL = 1e-12  # relative difference of shrinkings that are equal up to rounding


@covers_linear_symmetry(
    gives="the charge after every step where the weights of a symmetry have several rates or decays"
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
    """Q = Σ_A (η_1/η_A) r_A after every step, with r_A = θ_AᵀGθ_A of the groups A of the weights of one symmetry.

    The symmetry says Σ_A θ_AᵀG ∂L/∂θ_A = 0 and nothing of a single group, so that the charges of the groups must be
    weighed by their rates, and where decays differ the decay takes Σ_A λ_A r_A, which needs every r_A as recorded:
    `scheduled_charge` with λ r replaced by that, p by Σ_A (η_A/η_1) p_A, and so on. Equal rates and decays give the
    charge of `scheduled_charge`.

    Args:
        charges: r_A before every step, shape (steps, groups, ...).
        buffers: p_A = v_AᵀGv_A after every step, in the same shape.
        learning_rate: η_A > 0 of each group, shape (groups,).
        weight_decay: λ_A ≥ 0, one number or one for each group.
        schedule: Factor > 0 of all rates, one number or one for each step.
        optimizer: "heavy_ball", "nesterov", or "decoupled" where all groups shrink alike, η_A λ_A being equal.
        momentum: β ≥ 0, below one, of all groups, one number or one for each step.
        dampening: κ ≥ 0, at most one, likewise; as in `scheduled_charge`.
        updates: w_AᵀGw_A at every step, which Nesterov's steps need, in the shape of the buffers.
        crossed: w_AᵀGv_A at every step, likewise.
        steps: Numbers of the recorded steps, shape (steps,), to be sure that none is missing.

    Returns:
        Q before the first step and after each, shape (steps + 1, ...).

    Raises:
        InputError: As `scheduled_charge`, or decoupled decay that shrinks groups differently, for which there is no
            law.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, of which this is the discrete form.

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
        remedy="give the steps, then the groups",
    )
    r = recorded_series("charges", charges, like=p)
    count, groups = p.shape[:2]
    require(len(r) > 0, "no step is recorded", argument="charges", value=0, remedy="record at least one")
    rates = require_array("learning_rate", learning_rate, (groups,))
    decays = per_step("weight_decay", weight_decay, groups)
    factors = per_step("schedule", schedule, count)
    _, momenta, kept = hyperparameters(count, 0.0, momentum, dampening, rule)
    looked_ahead = nesterov_series(rule, p, updates, crossed)
    require_steps(steps, count)
    shrinking = rates * decays
    require(
        rule != "decoupled" or np.ptp(shrinking) <= _EQUAL * shrinking.max(),
        "decoupled decay shrinks the groups differently, for which no charge has a law",
        argument="weight_decay",
        value=decays.tolist(),
        remedy="split what was measured with charge_drift",
    )
    with np.errstate(all="ignore"):
        slower = rates / rates[0]
        buffer, update, both = (np.asarray(np.einsum("a,ka...->k...", slower, each)) for each in (p, *looked_ahead))
        pulls = np.einsum("a,ka...->k...", decays, r)
        start = np.asarray(np.einsum("a,a...->...", 1 / slower, r[0]))
        same = np.full(count, decays[0])
    return follow(rule, start, (buffer, update, both), rates[0] * factors, same, momenta, kept, pulls)
