"""Prediction intervals for the loss of a further run, from a fitted power law."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy.stats import t as student

from dynascope.results.named_tuples import short_repr
from dynascope.theory.scaling_laws.profile_intervals import slopes_of
from dynascope.theory.scaling_laws.unknown_floor import RaisedPowerLaw

__all__ = ["ExpectedLoss", "Spread", "spread_of"]


class ExpectedLoss(NamedTuple):
    """Loss predicted by a fitted law, with a prediction interval.

    Attributes:
        loss: The predicted loss.
        low: Lower end of the prediction interval, which contains the loss of a further run with the chosen confidence.
        high: Upper end of the prediction interval.
    """

    loss: Float[np.ndarray, ...]
    low: Float[np.ndarray, ...]
    high: Float[np.ndarray, ...]

    __repr__ = short_repr


class Spread(NamedTuple):
    """Uncertainty of a fitted law, and scatter of individual runs about the law, for the logarithm of the loss.

    Attributes:
        influences: Contribution of each run (of each point, for a single run) to the errors of level, exponent and
            floor; shape (contributions, 3). The sum of their outer products is the covariance of the estimates.
        scatter: Standard deviation of individual losses about the law.
        freedom: Degrees of freedom of the influences and the scatter.
        known: The given floor, which is subtracted before the logarithm is taken; zero if the floor was fitted.
    """

    influences: Float[np.ndarray, "contributions 3"]
    scatter: float
    freedom: int
    known: float

    __repr__ = short_repr

    def width(self, x: Float[np.ndarray, " points"], law: RaisedPowerLaw, confidence: float) -> np.ndarray:
        """Half the width, in ln L, of the prediction interval for another run at ln x."""
        errors = np.linalg.norm(slopes_of(x, np.array(law)[None])[0] @ self.influences.T, axis=-1)
        return np.asarray(student.ppf((1 + confidence) / 2, self.freedom) * np.hypot(errors, self.scatter))


def spread_of(
    x: Float[np.ndarray, " points"],
    runs: Float[np.ndarray, "runs points"],
    law: RaisedPowerLaw,
    *,
    fixed: Sequence[int],
    known: float,
) -> Spread:
    """Compute the spread of runs about the law fitted to the mean of the runs."""
    mean, count = runs.mean(axis=0), len(runs)
    free = [k for k in range(3) if k not in fixed]
    gains = np.zeros((3, len(x)))
    gains[free] = np.linalg.pinv(slopes_of(x, np.array(law)[None])[0][:, free])
    if count > 1:
        deviations = runs / mean - 1
        influences = deviations @ gains.T / math.sqrt(count * (count - 1))
        return Spread(influences, float(np.sqrt(np.sum(deviations**2) / (count - 1) / len(x))), count - 1, known)
    freedom = len(x) - len(free)
    residual = np.log(mean) - law.logarithm(x)
    scatter = math.sqrt(float(residual @ residual) / freedom)
    return Spread(scatter * gains.T, scatter, freedom, known)
