"""What was recorded of a run, step by step: series of numbers, and hyperparameters that may follow a schedule."""

from __future__ import annotations

import functools
from typing import cast

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from dynascope.symmetry.step_rules import RULES, Rule
from dynascope.theory.domain import covers
from dynascope.validation import require, require_array, require_choice

__all__ = [
    "NEUTRAL",
    "covers_linear_symmetry",
    "initial_charge",
    "known_rule",
    "per_step",
    "recorded_series",
    "require_steps",
]

# Optimisers that divide by statistics of each weight, under which no charge of a rotation or a scale has a law.
NEUTRAL = ("adam", "adamw", "adagrad", "rmsprop", "nadam", "radam", "adadelta", "adamax", "lion", "soap", "shampoo")


covers_linear_symmetry = functools.partial(
    covers,
    network="any with a linear symmetry, such as ReLU neurons",
    data="any, in any batches",
    start="any",
    reference="arXiv:2012.04728",
)


def recorded_series(name: str, values: ArrayLike, *, like: np.ndarray | None = None) -> Float[np.ndarray, "steps ..."]:
    """The values as float64 with the steps first, checked."""
    shape = (None,) * max(1, np.ndim(values)) if like is None else like.shape
    return require_array(name, values, shape)


def initial_charge(name: str, value: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """The value in the shape of the charges that are recorded at one step."""
    array = np.asarray(value)
    fits = array.ndim <= len(shape) and all(
        got in (1, want) for got, want in zip(array.shape[::-1], shape[::-1], strict=False)
    )
    require(
        fits,
        f"{name} has shape {array.shape}, and what is recorded at one step {shape}",
        argument=name,
        value=array.shape,
        remedy="give one number for each charge",
    )
    return np.broadcast_to(array, shape)


def per_step(name: str, value: ArrayLike, count: int) -> Float[np.ndarray, " steps"]:
    """A hyperparameter at each step, of one number or one for each."""
    array = np.asarray(value)
    require(
        array.shape in ((), (count,)),
        f"{name} has shape {array.shape}, and {count} steps are recorded",
        argument=name,
        value=array.shape,
        remedy="give one number, or one for each step",
    )
    return np.broadcast_to(array, (count,))


def require_steps(steps: ArrayLike | None, count: int) -> None:
    """Raise `InputError` unless every step from the first on is there: laws of steps say nothing of checkpoints."""
    if steps is None:
        return
    numbers = require_array("steps", steps, (count,))
    gaps = np.flatnonzero(np.diff(numbers) != 1)
    require(
        not gaps.size,
        f"steps are missing after step {numbers[gaps[0]] if gaps.size else 0:g}",
        argument="steps",
        value=int(gaps.size),
        remedy="record every step, because the law holds from one step to the next",
    )


def known_rule(optimizer: str) -> Rule:
    """The optimiser, under which charges have a law."""
    require(
        optimizer.lower().replace("_", "") not in NEUTRAL,
        f"no charge has a law under {optimizer}, which does not keep the symmetry",
        argument="optimizer",
        value=optimizer,
        remedy="split what was measured with charge_drift",
    )
    require_choice("optimizer", optimizer, RULES)
    return cast(Rule, optimizer)
