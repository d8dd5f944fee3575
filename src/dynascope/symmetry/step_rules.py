"""By which rule the updates of a parameter follow from its gradient, read from slopes along symmetries."""

from __future__ import annotations

from typing import Literal, NamedTuple, get_args

import numpy as np

__all__ = ["RULES", "Rule", "StepRule", "step_rule"]

Rule = Literal["heavy_ball", "nesterov", "decoupled"]
RULES: tuple[Rule, ...] = get_args(Rule)

_FITS = 1e-2  # of what is to be explained, a rule leaves less than this
_ROUNDINGS = 4  # times the level of rounding is left where two numbers that it concerns are subtracted
_EQUATIONS = 3  # slopes that say something, from which a factor of a step can be told from what turns the gradient
_FEW = 0.1  # share of steps at which a wrong buffer may look right by chance
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
        said: What shows it.
        times: Largest difference between what the updates imply and the gradient, in levels of rounding.
    """

    name: str
    said: str
    times: float


def step_rule(
    slope: np.ndarray,
    pull: np.ndarray,
    decay: np.ndarray,
    rounding: np.ndarray,
    gradient_norm: np.ndarray,
    gradient_largest: np.ndarray,
    update_norm: np.ndarray,
    clipping: np.ndarray,
    change: np.ndarray,
    first_change: np.ndarray,
    change_by_rule: np.ndarray,
) -> StepRule:
    """The simplest rule by which y = θᵀGg′, of the gradient that updates imply, follows from x = θᵀG∇L.

    y = x as declared, or by another rule of momentum; y = x + μ r for another decay, r being θᵀGθ as it goes through
    the rule; y = s x with a number s of each step for clipping by tensor or another rate; y = x while the largest entry
    of the gradient is below a threshold, or steps that are the gradient cut off at a value, for clipping by value.

    Args:
        slope: x, shape (steps, equations): of every charge in which the parameter takes part.
        pull: y, likewise.
        decay: r, likewise.
        rounding: Of y − x, likewise.
        gradient_norm: ‖∇L‖ at each step, shape (steps,).
        gradient_largest: Its largest entry.
        update_norm: ‖d‖.
        clipping: Relative distance of each step from one that is clipped by value.
        change: Relative distance of each step from one as declared.
        first_change: That of the first step of all, at every step.
        change_by_rule: As `change`, if one of `RULES` had made the step, shape (steps, rules).
    """
    if not gradient_norm.any():
        return StepRule("frozen layer", "no gradient reaches it at any recorded step", 0.0)
    live = (rounding > 0).any(0)
    slope, pull, decay, rounding = (each[:, live] for each in (slope, pull, decay, rounding))
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

    def fits(rest: np.ndarray) -> bool:
        left = np.linalg.norm(rest * weight) / np.linalg.norm((pull - slope) * weight)
        return bool(left < _FITS or (np.abs(rest) <= _ROUNDINGS * rounding).all())

    more = _ratio(decay * weight, (pull - slope) * weight)
    if fits(pull - slope - more * decay):
        return StepRule("weight decay of its own", f"its λ is off by {more:+.4g}", times)
    telling = (np.abs(slope) > _ROUNDINGS * rounding).sum(1) >= _EQUATIONS
    if telling.any():
        factors = np.array([_ratio(*each) for each in zip(slope * weight, pull * weight, strict=True)])
        if fits(np.where(telling[:, None], pull - factors[:, None] * slope, 0)):
            return _of_factors(factors[telling], gradient_norm[telling], times)
    seen = (np.abs(slope) > _ROUNDINGS * rounding).any(1)
    under, over = gradient_largest[kept & seen].max(initial=0.0), gradient_largest[~kept].min(initial=np.inf)
    if 0 < under < over:
        said = f"its updates hold the gradient while no entry is above {under:.3g}, and not from {over:.3g} on"
        return StepRule("clipping by value", said, times)
    if np.all(clipping[~kept] < _EQUAL) and change[~kept].max() > _EQUAL:
        said = f"its updates hold the gradient with large entries cut off, at {int((~kept).sum())} of {len(kept)}"
        return StepRule("clipping by value", f"{said} recorded steps", times)
    if first_change[0] < _EQUAL < np.quantile(change[1:], _FEW) and kept[seen].sum() <= 1:
        said = "its first update is as declared, and later ones are not"
        return StepRule("another momentum", said, times)
    said = f"its updates hold the gradient turned, at {int((~kept).sum())} of {len(kept)} recorded steps"
    return StepRule("preconditioner or another rule", said, times)


def _of_factors(factors: np.ndarray, norms: np.ndarray, times: float) -> StepRule:
    """Clipping by tensor, whose factors are at most one and bring the norm to one value, or another rate."""
    low, high = factors.min(), factors.max()
    if max(-low, high) < _EQUAL:
        return StepRule("frozen layer", "its updates hold nothing of its gradient", times)
    if high - low < _EQUAL * abs(high):
        return StepRule("learning rate of its own", f"its gradient is multiplied by {high:.4g} at every step", times)
    cut = factors < 1 - _EQUAL
    length = (factors * norms)[cut]
    if high < 1 + _EQUAL and length.max() - length.min() < _FITS * length.max():
        said = f"its gradient is brought to the norm {length.mean():.4g} at {int(cut.sum())} of {len(cut)} steps"
        return StepRule("clipping by tensor", said, times)
    return StepRule("learning rate of its own", f"its gradient is multiplied by {low:.4g} to {high:.4g}", times)


def _ratio(one: np.ndarray, other: np.ndarray) -> float:
    """The multiple of one that is nearest to the other."""
    squares = float(np.sum(one**2))
    return float(np.sum(one * other)) / squares if squares > 0 else 0.0
