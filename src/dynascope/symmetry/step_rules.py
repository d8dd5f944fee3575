"""Identifies the rule by which the updates of a parameter follow from its gradient, using slopes along symmetries."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

__all__ = ["DEPARTURES", "RULES", "Rule", "StepRule", "step_rule"]

Rule = Literal["heavy_ball", "nesterov", "decoupled"]
RULES: tuple[Rule, ...] = get_args(Rule)
# g′ − g = c θ, d = c d*, g′ = c g, g′ − g = c sign θ and g′ − g = c v, in this order; see `training.charge_causes`.
DEPARTURES = ("decay", "rate", "gradient", "sign", "momentum")

_FITS = 1e-2  # largest relative residual of a rule that counts
_ROUNDINGS = 4  # a slope above this many rounding bounds is significant
_RIVAL = 3  # a departure is reported alone if the residual of every other one is this many times larger
_SIGNIFICANT = 0.1  # the factor of a step counts if its departure is at least this share of the largest
_CONSTANT = 0.05  # largest relative spread over the steps of a factor that counts as constant
_EQUAL = 1e-3  # largest relative difference of factors that count as equal
_RULE_NAMES = {
    "heavy_ball": "heavy ball, with decay in the gradient",
    "nesterov": "Nesterov's momentum",
    "decoupled": "momentum with decoupled decay",
}


class StepRule(NamedTuple):
    """The rule that produced the updates of one parameter.

    Attributes:
        name: "as declared", or the name of the cause.
        evidence: The evidence for this rule or cause.
        times: Largest difference between the implied gradient and the gradient, in units of the rounding bound.
        rivals: Other causes that fit equally well.
    """

    name: str
    evidence: str
    times: float
    rivals: tuple[str, ...] = ()


def step_rule(
    slope: np.ndarray,
    pull: np.ndarray,
    rounding: np.ndarray,
    gradient_norm: np.ndarray,
    gradient_largest: np.ndarray,
    update_norm: np.ndarray,
    clipping: np.ndarray,
    change: np.ndarray,
    change_by_rule: np.ndarray,
    departure_factor: np.ndarray,
    departure_rest: np.ndarray,
) -> StepRule:
    """Find the simplest rule by which the updates of a parameter follow from its gradients.

    Let x = θᵀGg be the slope of the gradient, and y = θᵀGg′ the slope of the gradient that the update implies under the
    declared rule. If the rule is as declared, y = x. If y ≠ x, the alternatives are fitted: other momentum rules, and
    the `DEPARTURES`. An alternative is accepted if its residual is less than a hundredth of max |g′ − g|. The best
    departure is reported, together with any departure whose residual is less than three times as large. Clipping by
    value is detected in two ways: y = x as long as the largest entry of the gradient is below a threshold, or each step
    equals the step of a gradient clipped at some value.

    Args:
        slope: x, shape (steps, equations), for every charge of the parameter.
        pull: y, same shape.
        rounding: Bound on the rounding error of y − x, same shape.
        gradient_norm: ‖∇L‖ at each step, shape (steps,).
        gradient_largest: Largest entry of ∇L, shape (steps,).
        update_norm: ‖d‖ of the update, shape (steps,).
        clipping: Largest difference between g′ and a gradient clipped by value, relative to the largest entry of g′,
            shape (steps,).
        change: Relative difference between each step and the declared step, shape (steps,).
        change_by_rule: The value of `change` under each of `RULES`, shape (steps, rules).
        departure_factor: Best-fitting factor of each of `DEPARTURES`, shape (steps, departures).
        departure_rest: Relative residual of that fit, same shape.
    """
    if not gradient_norm.any():
        return StepRule("frozen layer", "no gradient reaches it at any recorded step", 0.0)
    live = (rounding > 0).any(0)
    slope, pull, rounding = (each[:, live] for each in (slope, pull, rounding))
    if slope.size == 0:
        return StepRule("as declared", "it has no slopes", 0.0)
    weight = np.divide(1.0, rounding, out=np.zeros_like(rounding), where=rounding > 0)
    off = np.abs(pull - slope) * weight
    times = float(off.max())
    kept = np.all(off <= 1, axis=1)
    if times > 1 and not update_norm[~kept].any():
        text = f"its updates are zero at {int((update_norm == 0).sum())} of {len(kept)} recorded steps"
        return StepRule("frozen layer", text, times)
    if times <= 1:
        return StepRule("as declared", "its updates follow from its gradient", times)

    worst = change_by_rule.max(0)
    if worst.min() < _FITS * change.max():
        text = f"its updates follow from its gradient by {_RULE_NAMES[RULES[int(worst.argmin())]]}"
        return StepRule("different momentum rule", text, times)
    departures = _departures(departure_factor, departure_rest, change, gradient_norm)
    if departures:
        (name, text), *rivals = departures
        also = "".join(f", or equally {rival}: {words}" for rival, words in rivals)
        return StepRule(name, text + also, times, tuple(rival for rival, _ in rivals))
    seen = (np.abs(slope) > _ROUNDINGS * rounding).any(1)
    under, over = gradient_largest[kept & seen].max(initial=0.0), gradient_largest[~kept].min(initial=np.inf)
    if 0 < under < over:
        text = (
            f"its updates follow from the gradients if all entries are at most {under:.3g}, but not if an entry is "
            f"{over:.3g} or larger"
        )
        return StepRule("clipping by value", text, times)
    if np.all(clipping[~kept] < _EQUAL) and change[~kept].max() > _EQUAL:
        text = f"its updates follow from a clipped gradient at {int((~kept).sum())} of {len(kept)} recorded steps"
        return StepRule("clipping by value", text, times)
    text = f"its updates do not point along the gradient at {int((~kept).sum())} of {len(kept)} recorded steps"
    return StepRule("preconditioner or another rule", text, times)


def _departures(factors: np.ndarray, rests: np.ndarray, change: np.ndarray, norms: np.ndarray) -> list[tuple[str, str]]:
    """Return the departures that explain the steps, the best fit first, as pairs of name and evidence."""
    worst = rests.max(0)
    best, found = max(worst.min(), np.finfo(float).tiny), []
    for place in np.argsort(worst, kind="stable"):
        if worst[place] < _FITS * change.max() and worst[place] <= _RIVAL * best:
            # If a step hardly departs, its factor is a rounding error.
            significant = (
                slice(None) if DEPARTURES[place] in ("rate", "gradient") else change > _SIGNIFICANT * change.max()
            )
            named = _NAMED[DEPARTURES[place]](factors[significant, place], norms)
            found += [named] if named is not None else []
    # Without decay and momentum, a factor of the gradient is also a factor of the learning rate. These two causes are
    # the more specific explanation of the factor.
    return sorted(found, key=lambda each: each[0] not in ("clipping by tensor", "frozen layer"))


def _of_decay(factors: np.ndarray, _: np.ndarray) -> tuple[str, str] | None:
    strength = _constant(factors)
    return None if strength is None else ("different weight decay", f"its λ is off by {strength:+.4g}")


def _of_rate(factors: np.ndarray, _: np.ndarray) -> tuple[str, str] | None:
    """Describe the factor of the learning rate: constant, or following a schedule."""
    low, high = factors.min(), factors.max()
    if low < -_EQUAL or high < _EQUAL:
        return None
    if high - low < _EQUAL * high:
        return "different learning rate", f"its steps, including weight decay, are {high:.4g} times the declared steps"
    first, last = factors[0], factors[-1]
    moves = np.diff(factors)
    rises, falls = (moves >= -_EQUAL * high).all(), (moves <= _EQUAL * high).all()
    shape = "rising like a warm-up" if rises else "falling like a decaying schedule" if falls else "like a schedule"
    text = f"its steps, including weight decay, are {first:.4g} (first) and {last:.4g} (last) times the declared steps"
    return "different learning rate", f"{text}, from {low:.4g} to {high:.4g}, {shape}"


def _of_gradient(factors: np.ndarray, norms: np.ndarray) -> tuple[str, str] | None:
    """Describe the factor of the gradient: constant, or clipping by tensor.

    With clipping by tensor, the factors are at most one and make the norm constant.
    """
    low, high = factors.min(), factors.max()
    if max(-low, high) < _EQUAL:
        return "frozen layer", "its updates do not depend on its gradient"
    if high - low < _EQUAL * abs(high):
        return "gradient multiplied", f"its gradient, without weight decay, is multiplied by {high:.4g} at every step"
    cut = factors < 1 - _EQUAL
    length = (factors * norms)[cut]
    if high < 1 + _EQUAL and length.max() - length.min() < _FITS * length.max():
        text = f"its gradient is rescaled to the norm {length.mean():.4g} at {int(cut.sum())} of {len(cut)} steps"
        return "clipping by tensor", text
    return (
        "gradient multiplied",
        f"its gradient, without weight decay, is multiplied by factors from {low:.4g} to {high:.4g}",
    )


def _of_sign(factors: np.ndarray, _: np.ndarray) -> tuple[str, str] | None:
    strength = _constant(factors)
    text = "its updates contain {:.4g} times the signs of the weights in addition to the gradient"
    return None if strength is None else ("undeclared L1 decay", text.format(strength))


def _of_momentum(factors: np.ndarray, _: np.ndarray) -> tuple[str, str] | None:
    strength = _constant(factors)
    return None if strength is None else ("different momentum", f"its β is off by {strength:+.4g}")


_NAMED = {"decay": _of_decay, "rate": _of_rate, "gradient": _of_gradient, "sign": _of_sign, "momentum": _of_momentum}


def _constant(factors: np.ndarray) -> float | None:
    """Return the median of the factors if they do not change from step to step; otherwise None."""
    if not factors.size or not (middle := float(np.median(factors))):
        return None
    return middle if np.abs(factors - middle).max() < _CONSTANT * abs(middle) else None
