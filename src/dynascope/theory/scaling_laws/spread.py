"""Where the loss of a further run is to be expected, by a power law that was fitted."""

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
    """What a fitted law says of a loss.

    Attributes:
        loss: The law.
        low: Lower end of the interval that holds the loss of a further run as often as its confidence says.
        high: Its upper end.
    """

    loss: Float[np.ndarray, ...]
    low: Float[np.ndarray, ...]
    high: Float[np.ndarray, ...]

    __repr__ = short_repr


class Spread(NamedTuple):
    """How uncertain a fitted law is, and how far single runs are from it, in logarithms of L − known + missing.

    Attributes:
        influences: What each run, or of a single one each point, contributes to the error of level, exponent and floor;
            shape (contributions, 3). Their products sum up to the covariance of the estimates.
        scatter: Standard deviation of a single loss about the law.
        freedom: Degrees of freedom of both.
        known: The floor that was given.
    """

    influences: Float[np.ndarray, "contributions 3"]
    scatter: float
    freedom: int
    known: float

    __repr__ = short_repr

    def width(self, x: Float[np.ndarray, " points"], law: RaisedPowerLaw, confidence: float) -> np.ndarray:
        """Half the width, in logarithms, of the interval for another run at ln x."""
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
    """The spread of runs about the law that was fitted to their mean."""
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
