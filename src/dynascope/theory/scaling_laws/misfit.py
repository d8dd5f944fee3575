"""Tests for losses that no power law above a floor describes, and for rows that come from different models."""

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

EXACT = 1e-3  # negligible relative deviation from the law, such as the small corrections of a theory
FEWEST = 6  # least number of points for a test of the law

_DRIFT = 0.1  # fraction of the false alarms assigned to the test of all residuals
_APART = 1.2  # ratio of the mean losses of runs above which their order and differences are tested
_SORTED = 5  # least number of runs for the test of their order; one order in sixty is monotonic by chance
_CLEARER = 2.0  # least ratio of the variances about rows that differ by a factor and rows that differ by a constant


def misfit_p_value(
    x: Float[np.ndarray, " points"],
    runs: Float[np.ndarray, "runs points"],
    law: RaisedPowerLaw,
    *,
    floor_known: bool = False,
) -> float | None:
    """P value of a test for systematic deviations of the losses from the fitted power law.

    The p value combines two tests of the residuals of ln L, corrected for multiple testing: a test of the term (ln x)²,
    and a test of all residuals. The second test detects any other smooth deviation and contributes a tenth of the false
    alarms. For a single run, the tests are an F test and von Neumann's ratio of neighbouring residuals, and both assume
    independent points. For several runs, deviations may be correlated along a curve. Student's t test then compares the
    curvature of the mean with the scatter among the runs. An F ratio compares the deviation of the mean from the law
    with the scatter of the runs about the mean. The degrees of freedom of the F ratio follow from the spectrum of this
    scatter.

    Returns:
        The p value; 1 if the root mean square residual is below 0.1 %; None if there are fewer than six points.
    """
    mean, count, points = runs.mean(axis=0), len(runs), len(x)
    if points < FEWEST:
        return None
    residual = np.log(mean) - law.logarithm(x)
    size = float(residual @ residual)
    if math.sqrt(size / points) < EXACT:
        return 1.0
    # A floor of zero is at its bound and does not count as fitted.
    numbers = 2 if floor_known or law.floor == 0 else 3
    fitted = basis(slopes_of(x, np.array(law)[None])[0][:, :numbers], 0.0)
    term = ((x - x.mean()) / np.ptp(x))[:, None] ** 2
    curved = basis(term - fitted @ (fitted.T @ term), SAME * float(np.linalg.norm(term))).sum(axis=1)
    if count == 1:
        freedom = points - fitted.shape[1] - 1
        left = residual - fitted @ (fitted.T @ residual)
        explained = float(curved @ left) ** 2
        curvature = fisher.sf(explained * freedom / max(float(left @ left) - explained, ROUNDING**2), 1, freedom)
        # For independent residuals, the ratio has mean 2 and this standard deviation.
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
    """Raise `InputError` if the rows look like losses of models of different sizes rather than losses of one model.

    Runs with different seeds are in no particular order, and their losses differ by a factor. In contrast, rows for
    models of different sizes are ordered by size, or their losses differ by an additive constant.
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
        f"the {len(runs)} rows of losses differ by {math.exp(float(np.ptp(levels))) - 1:.0%} and resemble losses of "
        "models of different sizes, not of one model",
        argument="losses",
        value=runs.shape,
        remedy="use fit_joint to fit both resources, or fit one row at a time",
    )
