"""By which rule the updates of a parameter follow from its gradient, read from slopes along symmetries."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

__all__ = ["DEPARTURES", "RULES", "Rule", "StepRule", "step_rule"]

Rule = Literal["heavy_ball", "nesterov", "decoupled"]
RULES: tuple[Rule, ...] = get_args(Rule)
# In this order g′ − g = c θ, d = c d*, g′ = c g, g′ − g = c sign θ and g′ − g = c v; see `training.charge_causes`.
DEPARTURES = ("decay", "rate", "gradient", "sign", "momentum")

_FITS = 1e-2  # of what is to be explained, a rule leaves less than this
_ROUNDINGS = 4  # times the level of rounding is left where two numbers that it concerns are subtracted
_RIVAL = 3  # a departure is named alone if every other one leaves this many times more
_TELLING = 0.1  # of the largest departure, a step has at least this where its factor counts
_CONSTANT = 0.05  # relative spread of a factor over the steps that is called constant
_EQUAL = 1e-3  # relative difference of factors that are called equal
_TOLD = {
    "heavy_ball": "heavy ball, with decay in the gradient",
    "nesterov": "Nesterov's momentum",
    "decoupled": "momentum with decoupled decay",
}


class StepRule(NamedTuple):
    """How the updates of one parameter were made.

    Attributes:
        name: "as declared", or what is the matter.
        evidence: What shows it.
        times: Largest difference between what the updates imply and the gradient, in levels of rounding.
        rivals: What else may be the matter, by a fit that is as good.
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
    """The simplest rule by which the updates of a parameter follow from its gradients.

    With y = θᵀGg′, of the gradient g′ that the declared rule implies, and x = θᵀGg of the gradient: y = x as declared.
    Otherwise each alternative is fitted, and has to leave less than a hundredth of max |g′ − g|: another rule of
    momentum, and the `DEPARTURES`, of which the one that leaves least is named, with those that leave less than three
    times as much. Clipping by value is y = x while the largest entry of the gradient is below a threshold, or steps
    that are the gradient cut off at a value.

    Args:
        slope: x, shape (steps, equations): of every charge in which the parameter takes part.
        pull: y, likewise.
        rounding: Of y − x, likewise.
        gradient_norm: ‖∇L‖ at each step, shape (steps,).
        gradient_largest: Its largest entry.
        update_norm: ‖d‖.
        clipping: Relative distance of each step from one that is clipped by value.
        change: Relative distance of each step from one as declared.
        change_by_rule: As `change`, if one of `RULES` had made the step, shape (steps, rules).
        departure_factor: The factor of each of `DEPARTURES` that fits a step best, shape (steps, departures).
        departure_rest: What the fit leaves, as `change`, likewise.
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
        said = f"its updates are zero at {int((update_norm == 0).sum())} of {len(kept)} recorded steps"
        return StepRule("frozen layer", said, times)
    if times <= 1:
        return StepRule("as declared", "its updates follow from its gradient", times)

    worst = change_by_rule.max(0)
    if worst.min() < _FITS * change.max():
        said = f"its updates follow from its gradient by {_TOLD[RULES[int(worst.argmin())]]}"
        return StepRule("another rule of momentum", said, times)
    departures = _departures(departure_factor, departure_rest, change, gradient_norm)
    if departures:
        (name, said), *rivals = departures
        also = "".join(f", or equally {rival}: {words}" for rival, words in rivals)
        return StepRule(name, said + also, times, tuple(rival for rival, _ in rivals))
    seen = (np.abs(slope) > _ROUNDINGS * rounding).any(1)
    under, over = gradient_largest[kept & seen].max(initial=0.0), gradient_largest[~kept].min(initial=np.inf)
    if 0 < under < over:
        said = f"its updates hold the gradient while no entry is above {under:.3g}, and not from {over:.3g} on"
        return StepRule("clipping by value", said, times)
    if np.all(clipping[~kept] < _EQUAL) and change[~kept].max() > _EQUAL:
        said = f"its updates hold the gradient with large entries cut off, at {int((~kept).sum())} of {len(kept)}"
        return StepRule("clipping by value", f"{said} recorded steps", times)
    said = f"its updates hold the gradient turned, at {int((~kept).sum())} of {len(kept)} recorded steps"
    return StepRule("preconditioner or another rule", said, times)


def _departures(factors: np.ndarray, rests: np.ndarray, change: np.ndarray, norms: np.ndarray) -> list[tuple[str, str]]:
    """The departures that explain the steps, the one that leaves least first; each a name and what shows it."""
    worst = rests.max(0)
    best, found = max(worst.min(), np.finfo(float).tiny), []
    for place in np.argsort(worst, kind="stable"):
        if worst[place] < _FITS * change.max() and worst[place] <= _RIVAL * best:
            # Where a step hardly departs, its factor is that of rounding.
            telling = slice(None) if DEPARTURES[place] in ("rate", "gradient") else change > _TELLING * change.max()
            named = _NAMED[DEPARTURES[place]](factors[telling, place], norms)
            found += [named] if named is not None else []
    # Without decay and momentum a factor of the gradient is one of the rate; these two say more of the factor.
    return sorted(found, key=lambda each: each[0] not in ("clipping by tensor", "frozen layer"))


def _of_decay(factors: np.ndarray, _: np.ndarray) -> tuple[str, str] | None:
    strength = _constant(factors)
    return None if strength is None else ("weight decay of its own", f"its λ is off by {strength:+.4g}")


def _of_rate(factors: np.ndarray, _: np.ndarray) -> tuple[str, str] | None:
    """Another rate, or one that follows a schedule."""
    low, high = factors.min(), factors.max()
    if low < -_EQUAL or high < _EQUAL:
        return None
    if high - low < _EQUAL * high:
        return "another learning rate", f"its steps, decay included, are {high:.4g} times the declared ones"
    first, last = factors[0], factors[-1]
    moves = np.diff(factors)
    rises, falls = (moves >= -_EQUAL * high).all(), (moves <= _EQUAL * high).all()
    shape = "rising, as a warm-up" if rises else "falling, as a decaying schedule" if falls else "as a schedule"
    said = f"its steps, decay included, are {first:.4g} times the declared ones at first and {last:.4g} times at last"
    return "another learning rate", f"{said}, from {low:.4g} to {high:.4g}, {shape}"


def _of_gradient(factors: np.ndarray, norms: np.ndarray) -> tuple[str, str] | None:
    """Clipping by tensor, whose factors are at most one and bring the norm to one value, or another factor."""
    low, high = factors.min(), factors.max()
    if max(-low, high) < _EQUAL:
        return "frozen layer", "its updates hold nothing of its gradient"
    if high - low < _EQUAL * abs(high):
        return "gradient multiplied", f"its gradient, without the decay, is multiplied by {high:.4g} at every step"
    cut = factors < 1 - _EQUAL
    length = (factors * norms)[cut]
    if high < 1 + _EQUAL and length.max() - length.min() < _FITS * length.max():
        said = f"its gradient is brought to the norm {length.mean():.4g} at {int(cut.sum())} of {len(cut)} steps"
        return "clipping by tensor", said
    return "gradient multiplied", f"its gradient, without the decay, is multiplied by {low:.4g} to {high:.4g}"


def _of_sign(factors: np.ndarray, _: np.ndarray) -> tuple[str, str] | None:
    strength = _constant(factors)
    said = "its updates hold {:.4g} times the signs of the weights beside the gradient"
    return None if strength is None else ("L1 decay of its own", said.format(strength))


def _of_momentum(factors: np.ndarray, _: np.ndarray) -> tuple[str, str] | None:
    strength = _constant(factors)
    return None if strength is None else ("another momentum", f"its β is off by {strength:+.4g}")


_NAMED = {"decay": _of_decay, "rate": _of_rate, "gradient": _of_gradient, "sign": _of_sign, "momentum": _of_momentum}


def _constant(factors: np.ndarray) -> float | None:
    """The value of factors that do not change from step to step, and None of others."""
    if not factors.size or not (middle := float(np.median(factors))):
        return None
    return middle if np.abs(factors - middle).max() < _CONSTANT * abs(middle) else None
