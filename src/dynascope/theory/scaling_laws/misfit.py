"""Losses that no power law above a floor has: those that drift about it, and those of models that are not alike."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy.stats import f as fisher
from scipy.stats import norm as normal
from scipy.stats import t as student

from dynascope.theory.scaling_laws.forward_search import ROUNDING
from dynascope.theory.scaling_laws.joint_diagnosis import SAME, basis
from dynascope.theory.scaling_laws.profile_intervals import slopes_of
from dynascope.theory.scaling_laws.unknown_floor import RaisedPowerLaw
from dynascope.validation import require

__all__ = ["EXACT", "FEWEST", "misfit_p_value", "require_one_law"]

EXACT = 1e-3  # relative deviation from the law that is negligible, such as that of a theory with small corrections
FEWEST = 6  # points that allow a test of the law

_DRIFT = 0.1  # fraction of the false alarms that the test of all residuals may cause
_APART = 1.2  # ratio of the losses of runs from which it is asked why they differ
_SORTED = 5  # runs of which one order in sixty has levels that rise or fall all along
_CLEARER = 2.0  # times less variance, about rows that differ by a constant than about rows that differ by a factor


def misfit_p_value(
    x: Float[np.ndarray, " points"],
    runs: Float[np.ndarray, "runs points"],
    law: RaisedPowerLaw,
    *,
    floor_known: bool = False,
) -> float | None:
    """Probability that losses of a power law deviate from the fitted one as systematically by chance.

    The smaller p value of two tests of the residuals of ln L, increased as there are two: one of the term (ln x)², and
    one of all residuals, which finds any other smooth deviation and may cause a tenth of the false alarms. Of one run
    these are an F test and von Neumann's ratio of neighbouring residuals, which both take points to be independent. Of
    several runs, whole curves may differ: Student's t compares the curvatures of single runs, and an F ratio compares
    the deviation of the mean with that of single runs from all laws, with the degrees of freedom that the spectrum of
    these deviations has.

    Returns:
        The p value; one if the law is within 0.1 % of the losses; None if there are fewer than six points.
    """
    mean, count, points = runs.mean(axis=0), len(runs), len(x)
    if points < FEWEST:
        return None
    residual = np.log(mean) - law.logarithm(x)
    size = float(residual @ residual)
    if math.sqrt(size / points) < EXACT:
        return 1.0
    # A floor of zero is at its bound, and was not fitted.
    numbers = 2 if floor_known or law.floor == 0 else 3
    fitted = basis(slopes_of(x, np.array(law)[None])[0][:, :numbers], 0.0)
    term = ((x - x.mean()) / np.ptp(x))[:, None] ** 2
    curved = basis(term - fitted @ (fitted.T @ term), SAME * float(np.linalg.norm(term))).sum(axis=1)
    if count == 1:
        freedom = points - fitted.shape[1] - 1
        left = residual - fitted @ (fitted.T @ residual)
        explained = float(curved @ left) ** 2
        curvature = fisher.sf(explained * freedom / max(float(left @ left) - explained, ROUNDING**2), 1, freedom)
        # The ratio of independent numbers is two, with this standard deviation.
        ratio, deviation = np.sum(np.diff(residual) ** 2) / size, 2 * math.sqrt((points - 2) / (points**2 - 1))
        drift = normal.sf((2 - ratio) / deviation)
    else:
        deviations = runs / mean - 1
        own = deviations - (deviations @ fitted) @ fitted.T
        products = own @ own.T / (count - 1)
        scatter = float(np.trace(products))
        if scatter <= 1e-12 * size:
            return 0.0
        freedom = scatter**2 / float(np.sum(products**2))
        drift = fisher.sf(size * count / scatter, freedom, freedom * (count - 1))
        spread = max(float(np.std(own @ curved, ddof=1)), ROUNDING)
        curvature = 2 * student.sf(abs(float(curved @ residual)) * math.sqrt(count) / spread, count - 1)
    return min(1.0, float(min(curvature / (1 - _DRIFT), drift / _DRIFT)))


def require_one_law(runs: Float[np.ndarray, "runs points"]) -> None:
    """Refuse losses of models of different size, in rows: these are no runs of one law.

    Runs that differ by their seeds come in any order, and differ by a share of the loss. Rows of a surface are ordered
    by size, or differ by what their size adds to every loss.
    """
    if len(runs) < 3 or not np.all(runs > 0):
        return
    logs = np.log(runs)
    levels = logs.mean(axis=1)
    if np.ptp(levels) < math.log(_APART):
        return
    steps = np.diff(levels)
    ordered = len(runs) >= _SORTED and bool(np.all(steps > 0) or np.all(steps < 0))
    mean = runs.mean(axis=0)
    by_factor = np.sum((logs - levels[:, None] - logs.mean(axis=0) + levels.mean()) ** 2)
    by_constant = np.sum(((runs - runs.mean(axis=1)[:, None] - mean + mean.mean()) / mean) ** 2)
    require(
        not (ordered or by_factor > _CLEARER * by_constant + 1e-12 * logs.size),
        f"the {len(runs)} rows of losses differ by {math.exp(float(np.ptp(levels))) - 1:.0%}, as those of models of "
        "different size do and not runs of one model",
        argument="losses",
        value=runs.shape,
        remedy="give a law of both resources to fit_joint, or one row at a time to fit",
    )
