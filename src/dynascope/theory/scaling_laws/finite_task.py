"""Effects of a finite number of skills on the power law in time, and the window of times in which the law holds."""

from __future__ import annotations

import math

import numpy as np

from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.scaling_laws.skill_model import skill_model
from dynascope.theory.units import in_units
from dynascope.validation import require
from dynascope.validation.bounded import PositiveFloat

__all__ = ["learning_folds", "missing_loss", "smooth_steps", "time_window"]

_GENTLE = 4.0  # least number of e-folds: at smaller ln c, skills are not learned faster


@in_units("target_scale", "learning_rate", target_scale="s", initial_strength="s", learning_rate="h", gives="s^-1 h^-1")
def time_window(
    exponent: PositiveFloat,
    skills: PositiveFloat,
    *,
    target_scale: PositiveFloat,
    initial_strength: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
) -> tuple[float, float]:
    """Window of times in which a task of n_s skills follows its power law, for `fit(..., window=…)`.

        10 ln c/(2 η S A) < T < 0.05 n_s^(α+1)/(2 η S A)

    Here c = S/R₀ − 1, and A normalises the frequencies P(k) = A k^−(α+1). The first skills are learned well before the
    window, and the last skills have hardly been learned at its end. For small initial weights, the loss falls in steps,
    skill by skill, until skill k = (α + 1) ln c is learned, at time ln c k^(α+1)/(2 η S A). If this time is later than
    the lower end of the window, use it as the lower end instead.

    Args:
        exponent: α > 0 of the frequencies P(k) ∝ k^−(α+1).
        skills: Number of skills n_s > 0.
        target_scale: Target strength S > 0.
        initial_strength: Initial strength R₀, between 0 and ½ S.
        learning_rate: η > 0.

    Raises:
        InputError: If a number is out of range, or the task has too few skills for a window.

    Example:
        >>> low, high = time_window(0.6, 50_000, target_scale=1.0, initial_strength=0.01)
        >>> print(f"{low:.1f} {high:.3g}")
        52.5 1.88e+06
    """
    given = {"initial_strength": initial_strength, "learning_rate": learning_rate, "skills": skills}
    model = skill_model(exponent, target_scale=target_scale, **given)
    require(
        model.contrast > 1,
        f"initial_strength is {initial_strength}, which is not below half of target_scale = {target_scale}",
        argument="initial_strength",
        value=initial_strength,
        remedy="choose a smaller initial_strength, so that skills emerge at distinct times",
    )
    with np.errstate(over="ignore"):
        last = float(np.power(skills, exponent + 1.0))
    low, high = 10 * math.log(model.contrast) / model.rate, 0.05 * last / model.rate
    require(
        low < high,
        f"the power law of {skills} skills ends at time {high:.3g}, before it begins at time {low:.3g}",
        argument="skills",
        value=skills,
        remedy="use more skills or a larger initial_strength",
    )
    return low, high


@finite_answers()
def missing_loss(exponent: PositiveFloat, skills: PositiveFloat, *, target_scale: PositiveFloat) -> float:
    """Loss of the rare skills of an infinite task that are absent from a task of n_s skills.

        L_C = S² A n_s^−α/(2α)

    Here A normalises the frequencies P(k) = A k^−(α+1). The loss L = ½ E(f − y)² of a task with finitely many skills
    falls faster than its power law. L + L_C follows the law until the network starts to learn the last skills. Pass L_C
    to `fit` as `missing`.

    Args:
        exponent: α > 0 of the frequencies P(k) ∝ k^−(α+1).
        skills: Number of skills n_s > 0.
        target_scale: Target strength S > 0. S − R₀ is more accurate, because unlearned skills have strength R₀.

    Raises:
        InputError: If a number is out of range.

    References:
        Nam, DPhil thesis (2024), equation C.2, which omits R₀.

    Example:
        >>> print(f"{missing_loss(0.6, 50_000, target_scale=1.0):.6f}")
        0.000553
    """
    model = skill_model(exponent, target_scale=target_scale, initial_strength=target_scale / 2, skills=skills)
    return model.weight / exponent * skills**-exponent


def learning_folds(contrast: float) -> float:
    """Number of e-folds over which a skill is learned: ln c, but at least 4 for initial strengths near ½ S."""
    return max(math.log(contrast), _GENTLE)


def smooth_steps(
    exponent: float,
    *,
    target_scale: float,
    initial_strength: float,
    learning_rate: float = 1.0,
    skills: float | None = None,
) -> float:
    """Number of steps after which `time_law` has a relative error below 1e-4.

    The error arises because `time_law` replaces a sum by an integral. The number is at least ten times ln c/(2 η S A),
    the time at which the first skill is half learned. When skill k is half learned, k/((α + 1) ln c) skills are being
    learned; while this ratio is below one, the loss falls in steps. If ln c is below 4, the function uses 4 instead.
    """
    given = {"initial_strength": initial_strength, "learning_rate": learning_rate, "skills": skills}
    model = skill_model(exponent, target_scale=target_scale, **given)
    folds = learning_folds(model.contrast)
    return folds / model.rate * max(10.0, ((exponent + 1) * folds) ** (exponent + 1))
