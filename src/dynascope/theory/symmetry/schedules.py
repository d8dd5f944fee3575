"""The quadratic charge where rates, decay and momentum change, by step or by group of weights, for three optimisers."""

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

_EQUAL = 1e-12  # relative difference of shrinkings that are equal up to rounding


@covers_linear_symmetry(gives="the charge after every step of a schedule, of Nesterov and of decoupled decay")
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
    """r_0 … r_n of r = θᵀGθ and c = θᵀGv, where every hyperparameter may change at every step.

    With the buffer as PyTorch has it, v ← β v + (1 − κ)(∂L/∂θ + λ θ), and p = vᵀGv after the step,

        heavy ball: c ← β c + (1 − κ) λ r,  r ← r − 2η c + η² p,  c ← c − η p,
        Nesterov:   c ← β c + λ r,  r ← r − 2η (λ r + β c) + η² wᵀGw,  c ← c − η wᵀGv,  w = ∂L/∂θ + λ θ + β v,
        decoupled:  c ← β c,  r ← ρ² r − 2ηρ c + η² p,  c ← ρ c − η p,  ρ = 1 − ηλ,

    where r on the right is that before the step. Exact up to rounding, from v = 0.

    Args:
        initial: r_0, one number for each charge.
        buffers: p = vᵀGv after every step, shape (steps, ...); of plain descent that of the gradient with decay.
        learning_rate: η > 0, one number or one for each step.
        optimizer: "heavy_ball", which is plain descent without momentum, "nesterov" or "decoupled".
        weight_decay: λ ≥ 0, likewise.
        momentum: β ≥ 0, below one, likewise.
        dampening: κ ≥ 0, at most one, likewise; as in PyTorch not at the first step, nor where there is no momentum.
        updates: wᵀGw at every step, which Nesterov's steps need, in the shape of the buffers.
        crossed: wᵀGv at every step, likewise.
        steps: Numbers of the recorded steps, shape (steps,), to be sure that none is missing.

    Returns:
        The charges before the first step and after each, shape (steps + 1, ...).

    Raises:
        InputError: A number out of range, shapes that do not fit, missing steps, or an optimiser under which there is
            no law.

    References:
        Kunin, Sagastuy-Breña, Ganguli, Yamins, Tanaka, arXiv:2012.04728, of which this is the discrete form.

    Example:
        >>> print(scheduled_charge(1.0, [1.0, 4.0], learning_rate=[0.1, 0.05], weight_decay=0.5, momentum=0.5))
        [1.     0.91   0.8545]
    """
    rule = known_rule(optimizer)
    p = recorded_series("buffers", buffers)
    start = initial_charge("initial", initial, p.shape[1:])
    rates = per_step("learning_rate", learning_rate, len(p))
    decays, momenta, kept = hyperparameters(len(p), weight_decay, momentum, dampening, rule)
    looked_ahead = nesterov_series(rule, p, updates, crossed)
    require_steps(steps, len(p))
    return follow(rule, start, (p, *looked_ahead), rates, decays, momenta, kept)


def nesterov_series(
    optimizer: Rule, buffers: np.ndarray, updates: ArrayLike | None, crossed: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray]:
    """wᵀGw and wᵀGv at every step; for other optimisers, whose update is the buffer, those of the buffer."""
    for name, value in {"updates": updates, "crossed": crossed}.items():
        require(
            (value is None) != (optimizer == "nesterov"),
            f"{name} belongs to Nesterov's steps, and the optimizer is {optimizer}",
            argument=name,
            value=None if value is None else np.shape(value),
            remedy="give updates and crossed with optimizer='nesterov', and with that only",
        )
    if updates is None or crossed is None:
        return buffers, buffers
    return recorded_series("updates", updates, like=buffers), recorded_series("crossed", crossed, like=buffers)


def follow(
    optimizer: Rule,
    start: np.ndarray,
    series: tuple[np.ndarray, np.ndarray, np.ndarray],
    rates: np.ndarray,
    decays: np.ndarray,
    momenta: np.ndarray,
    kept: np.ndarray,
    pulls: np.ndarray | None = None,
) -> Float[np.ndarray, "steps ..."]:
    """The charges, by the laws of `scheduled_charge`; `pulls` stands for λ r where groups of weights decay apart."""
    count = len(rates)
    path = np.empty((count + 1, *np.shape(start)))
    path[0], crossed = start, np.zeros_like(start)
    with np.errstate(all="ignore"):
        for k, (buffer, update, both) in enumerate(zip(*series, strict=True)):
            rate, beta, charge = rates[k], momenta[k], path[k]
            pull = decays[k] * charge if pulls is None else pulls[k]
            if optimizer == "decoupled":
                left = 1 - rate * decays[k]
                crossed = beta * crossed
                shrunk = rate * decays[k] * (2 - rate * decays[k]) * charge
                path[k + 1] = charge - (shrunk + 2 * rate * left * crossed - rate**2 * buffer)
                crossed = left * crossed - rate * buffer
            else:
                crossed = beta * crossed + kept[k] * pull
                along = pull + beta * crossed if optimizer == "nesterov" else crossed
                path[k + 1] = charge - (2 * rate * along - rate**2 * update)
                crossed = crossed - rate * both
    return path


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
