"""Series recorded at every step of a run, and hyperparameters that may vary with the step."""

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
    "WITHOUT_LAW",
    "covers_linear_symmetry",
    "initial_charge",
    "known_rule",
    "per_step",
    "recorded_series",
    "require_steps",
]

# Optimisers with per-weight statistics or preconditioners, under which charges of rotations or scales obey no law.
WITHOUT_LAW = ("adam", "adamw", "adagrad", "rmsprop", "nadam", "radam", "adadelta", "adamax", "lion", "soap", "shampoo")


covers_linear_symmetry = functools.partial(
    covers,
    network="any with a linear symmetry, such as ReLU neurons",
    data="any, in any batches",
    start="any",
    reference="arXiv:2012.04728",
)


def recorded_series(name: str, values: ArrayLike, *, like: np.ndarray | None = None) -> Float[np.ndarray, "steps ..."]:
    """Check a series, and convert it to float64 with the steps on the first axis."""
    shape = (None,) * max(1, np.ndim(values)) if like is None else like.shape
    return require_array(name, values, shape)


def initial_charge(name: str, value: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Broadcast a value to the shape of the charges at one step."""
    array = np.asarray(value)
    fits = array.ndim <= len(shape) and all(
        size in (1, expected) for size, expected in zip(array.shape[::-1], shape[::-1], strict=False)
    )
    require(
        fits,
        f"{name} has shape {array.shape}, but the record of one step has shape {shape}",
        argument=name,
        value=array.shape,
        remedy="give one number per charge",
    )
    return np.broadcast_to(array, shape)


def per_step(name: str, value: ArrayLike, count: int) -> Float[np.ndarray, " steps"]:
    """Broadcast a hyperparameter, a number or one per step, to all steps."""
    array = np.asarray(value)
    require(
        array.shape in ((), (count,)),
        f"{name} has shape {array.shape}, but the expected length is {count}",
        argument=name,
        value=array.shape,
        remedy="give one number, or one for each step or group",
    )
    return np.broadcast_to(array, (count,))


def require_steps(steps: ArrayLike | None, count: int) -> None:
    """Raise `InputError` if a step is missing; the laws relate consecutive steps, not checkpoints."""
    if steps is None:
        return
    numbers = require_array("steps", steps, (count,))
    gaps = np.flatnonzero(np.diff(numbers) != 1)
    require(
        not gaps.size,
        f"steps are missing after step {numbers[gaps[0]] if gaps.size else 0:g}",
        argument="steps",
        value=int(gaps.size),
        remedy="record every step, because the law relates consecutive steps",
    )


def known_rule(optimizer: str) -> Rule:
    """Check that charges obey a law under the optimiser, and return the name of the optimiser."""
    require(
        optimizer.lower().replace("_", "") not in WITHOUT_LAW,
        f"charges obey no exact law under {optimizer}, which breaks the symmetry",
        argument="optimizer",
        value=optimizer,
        remedy="split the measured drift with charge_drift",
    )
    require_choice("optimizer", optimizer, RULES)
    return cast(Rule, optimizer)
