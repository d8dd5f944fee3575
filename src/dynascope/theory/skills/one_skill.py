"""The strength of one skill that is trained alone, in one run or several."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import numpy as np
from annotated_types import Ge
from jaxtyping import Float, Real
from numpy.typing import ArrayLike

from dynascope.validation import require, require_increasing, require_shape
from dynascope.validation.bounded import FiniteNumbers

__all__ = ["Amounts", "Strengths", "checked_curves"]

_ABOVE_ONE = 0.05  # by which any strength may exceed that of a perfect network, as measured ones do
_DEVIATIONS = 5.0  # and by how many of the scatter between neighbours

Amounts: TypeAlias = Annotated[Real[ArrayLike, " values"], Ge(0)]
Strengths: TypeAlias = FiniteNumbers


def checked_curves(
    name: str, amounts: ArrayLike, strength: ArrayLike
) -> tuple[Float[np.ndarray, " values"], Float[np.ndarray, "runs values"]]:
    """Amounts and R/S of every run, after checking that they fit together."""
    amounts, runs = np.asarray(amounts), np.asarray(strength)
    require_increasing(name, amounts, fewest=2)
    require_shape("strength", runs, (len(amounts),) if runs.ndim <= 1 else (None, len(amounts)))
    runs = np.atleast_2d(runs)
    require(len(runs) > 0, "there are no runs", argument="strength", value=0, remedy="give at least one")
    highest = float(runs.max())
    require(
        highest <= 1 + max(_ABOVE_ONE, _DEVIATIONS * _scatter_when_learned(runs)),
        f"the strength reaches {highest:.3g}, and that of a perfect network is one",
        argument="strength",
        value=highest,
        remedy="give R/S: divide by the strength S of a network that has learned the skill",
    )
    return amounts, runs


def _scatter_when_learned(runs: Float[np.ndarray, "runs values"]) -> float:
    """Standard deviation of single values where the strength has stopped growing, by its bends."""
    # Second differences do not see the slow end of the growth.
    bends = np.diff(runs, n=2, axis=1)[(runs[:, 2:] > 0.8) & (runs[:, 1:-1] > 0.8) & (runs[:, :-2] > 0.8)]
    return float(np.sqrt(np.mean(bends**2) / 6)) if len(bends) >= 5 else 0.0
