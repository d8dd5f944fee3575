"""Losses that no power law above a floor has: those that drift about it, and those of models that are not alike."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float
from scipy.stats import f as fisher

from dynascope.arguments import require
from dynascope.theory.scaling_laws.profile_intervals import FLOOR, slopes_of
from dynascope.theory.scaling_laws.unknown_floor import RaisedPowerLaw

__all__ = ["drifts", "require_one_law"]

_EXACT = 1e-3  # scatter about a law, as a share of the loss, that no drift is worth a word of
_UNLIKELY = 3.3  # standard deviations, and
_RARE = 1e-3  # the probability of as much
_APART = 1.2  # ratio of the losses of runs from which it is asked why they differ
_SORTED = 5  # runs of which one order in sixty has levels that rise or fall all along
_CLEARER = 2.0  # times less variance, about rows that differ by a constant than about rows that differ by a factor


def drifts(x: Float[np.ndarray, " points"], runs: Float[np.ndarray, "runs points"], law: RaisedPowerLaw) -> bool:
    """Whether losses are on one side of a fitted law for longer than chance has it.

    Of one run by von Neumann's ratio of what is left at neighbouring points. Of several by the distance of their mean
    from the law, over what single runs do that no other law of the kind would follow, which may be of whole curves: an
    F ratio with the degrees of freedom that the spectrum of these has.
    """
    mean, count, points = runs.mean(axis=0), len(runs), len(x)
    residual = np.log(mean) - law.logarithm(x)
    size = float(residual @ residual)
    if math.sqrt(size / points) < _EXACT:
        return False
    if count == 1:
        # The ratio of independent numbers is two, with this standard deviation.
        ratio, deviation = np.sum(np.diff(residual) ** 2) / size, 2 * math.sqrt((points - 2) / (points**2 - 1))
        return bool(ratio < 2 - _UNLIKELY * deviation)
    slopes = slopes_of(x, np.array(law)[None])[0]
    slopes = slopes if law.floor > 0 else slopes[:, :FLOOR]
    deviations = runs / mean - 1
    own = deviations - (deviations @ np.linalg.pinv(slopes).T) @ slopes.T
    products = own @ own.T / (count - 1)
    scatter = float(np.trace(products))
    if scatter <= 1e-12 * size:
        return True
    freedom = scatter**2 / float(np.sum(products**2))
    return size * count / scatter > float(fisher.isf(_RARE, freedom, freedom * (count - 1)))


def require_one_law(runs: Float[np.ndarray, "runs points"]) -> None:
    """Refuse losses of models of different size, in rows: these are no runs of one law.

    Runs that differ by their seeds come in any order, and differ by a share of the loss. Rows of a surface are ordered
    by size, or differ by what their size adds to every loss.

    Raises:
        InputError: Rows that differ by more than a fifth, in order or by constants.
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
