"""What a finite number of skills does to the power law in time, and where the law can be seen."""

from __future__ import annotations

import math

import numpy as np

from dynascope.theory.finite_answers import finite_answers
from dynascope.theory.scaling_laws.skill_model import skill_model
from dynascope.theory.units import in_units
from dynascope.validation import require
from dynascope.validation.bounded import PositiveFloat

__all__ = ["learning_folds", "missing_loss", "smooth_steps", "time_window"]

_GENTLE = 4.0  # ln c below which skills are learned, and losses rise, no faster


@in_units("target_scale", "learning_rate", target_scale="s", initial_strength="s", learning_rate="h", gives="s^-1 h^-1")
def time_window(
    exponent: PositiveFloat,
    skills: PositiveFloat,
    *,
    target_scale: PositiveFloat,
    initial_strength: PositiveFloat,
    learning_rate: PositiveFloat = 1.0,
) -> tuple[float, float]:
    """The times between which a task of n_s skills follows its power law, for `fit(..., window=…)`.

    From 10 ln c/(2 η S A), when the first skills have long been learned, to 0.05 n_s^(α+1)/(2 η S A), when the last
    ones have not begun. At small initial weights the loss still falls in steps, skill by skill, until k = (α + 1) ln c
    of them are learned, at ln c k^(α+1)/(2 η S A); begin there if that is later.

    Args:
        exponent: α > 0.
        skills: n_s > 0.
        target_scale: S > 0.
        initial_strength: R₀, between 0 and ½ S.
        learning_rate: η > 0.

    Raises:
        InputError: A number out of range, or too few skills for a window.

    Example:
        >>> low, high = time_window(0.6, 50_000, target_scale=1.0, initial_strength=0.01)
        >>> print(f"{low:.1f} {high:.3g}")
        52.5 1.88e+06
    """
    given = {"initial_strength": initial_strength, "learning_rate": learning_rate, "skills": skills}
    model = skill_model(exponent, target_scale=target_scale, **given)
    require(
        model.contrast > 1,
        f"initial_strength is {initial_strength} and target_scale is {target_scale}",
        argument="initial_strength",
        value=initial_strength,
        remedy="start below half of target_scale, where skills emerge at a time",
    )
    with np.errstate(over="ignore"):
        last = float(np.power(skills, exponent + 1.0))
    low, high = 10 * math.log(model.contrast) / model.rate, 0.05 * last / model.rate
    require(
        low < high,
        f"the law of {skills} skills ends at {high:.3g} and begins at {low:.3g}",
        argument="skills",
        value=skills,
        remedy="take more skills or a larger start",
    )
    return low, high


@finite_answers()
def missing_loss(exponent: PositiveFloat, skills: PositiveFloat, *, target_scale: PositiveFloat) -> float:
    """The loss L_C = S² A n_s^−α/(2α) of the rare skills that a task of n_s skills lacks.

    The loss is ½ E(f − y)². A task with finitely many skills falls faster than its power law; L + L_C follows it, as
    long as the last skills have not begun to be learned. Give it to `fit` as `missing`.

    Args:
        exponent: α > 0.
        skills: n_s > 0.
        target_scale: S > 0, or better S − R₀, as skills that have not begun have their strength R₀ at the start.

    Raises:
        InputError: A number out of range.

    References:
        Nam, DPhil thesis (2024), equation C.2, which leaves out R₀.

    Example:
        >>> print(f"{missing_loss(0.6, 50_000, target_scale=1.0):.6f}")
        0.000553
    """
    model = skill_model(exponent, target_scale=target_scale, initial_strength=target_scale / 2, skills=skills)
    return model.weight / exponent * skills**-exponent


def learning_folds(contrast: float) -> float:
    """The e-folds over which a skill is learned: ln c, or 4 where it is less, as for a start near the half."""
    return max(math.log(contrast), _GENTLE)


def smooth_steps(
    exponent: float,
    *,
    target_scale: float,
    initial_strength: float,
    learning_rate: float = 1.0,
    skills: float | None = None,
) -> float:
    """The steps from which on the law in time holds, which integrates over skills, to a relative 1e-4.

    Ten times those after which the first skill is half learned, ln c/(2 η S A), or more: k/((α + 1) ln c) skills are
    being learned when the skill k is half learned, and while they are less than one the loss falls in steps. For ln c
    stands 4 where it is less.
    """
    given = {"initial_strength": initial_strength, "learning_rate": learning_rate, "skills": skills}
    model = skill_model(exponent, target_scale=target_scale, **given)
    folds = learning_folds(model.contrast)
    return folds / model.rate * max(10.0, ((exponent + 1) * folds) ** (exponent + 1))
