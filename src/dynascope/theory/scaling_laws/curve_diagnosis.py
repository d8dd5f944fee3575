"""Checks of a power law fitted to a curve: outlying points, and systematic misfit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dynascope.theory.scaling_laws.diagnosis import (
    UNLIKELY,
    MisfitWarning,
    OutlierWarning,
    misfit_sentence,
    outlier_sentence,
)
from dynascope.theory.scaling_laws.forward_search import Family, outlying_points
from dynascope.theory.scaling_laws.misfit import EXACT, FEWEST, misfit_p_value
from dynascope.theory.scaling_laws.straight_window import line_through
from dynascope.theory.scaling_laws.unknown_floor import (
    STEEPEST,
    RaisedPowerLaw,
    fit_above_floor,
    raised_residuals,
    raised_starts,
)

__all__ = ["CurveDiagnosis", "diagnose_curve", "nearest_power_law", "suspect_points"]


class CurveDiagnosis(NamedTuple):
    """Result of the checks of a fitted power law.

    Attributes:
        suspects: Mask of the points that contradict the law fitted to all other points.
        misfit_p_value: P value of the test for systematic misfit, for the law fitted without the suspects.
        warnings: Category and text of the warning for each failed check.
    """

    suspects: Bool[np.ndarray, " points"]
    misfit_p_value: float | None
    warnings: tuple[tuple[type[Warning], str], ...]


def diagnose_curve(
    x: Float[np.ndarray, " points"],
    runs: Float[np.ndarray, "runs points"],
    law: RaisedPowerLaw,
    positions: np.ndarray,
    recorded: int,
    *,
    floor_known: bool,
    offset: float,
) -> CurveDiagnosis:
    """Check a power law fitted to a curve for outlying points and systematic misfit.

    Args:
        x: ln of the resource at the fitted points.
        runs: Losses at the fitted points, plus the `missing` loss of `fit`, minus the floor if it was given.
        law: The law fitted to the mean of the runs.
        positions: Indices of the fitted points among all recorded points.
        recorded: Number of recorded points.
        floor_known: Whether the floor was given.
        offset: The difference between L and `runs`.
    """
    mean, issues = runs.mean(axis=0), []
    suspects = suspect_points(x, np.log(mean), law, floor_known=floor_known)
    x_kept, kept, others = x[~suspects], runs[:, ~suspects], law
    if suspects.any():
        others = nearest_power_law(x_kept, kept, floor_known=floor_known)
        expected = np.exp(others.logarithm(x[suspects]))
        excess = (mean[suspects] - expected) / (expected + offset)
        exponents = [(law.exponent, others.exponent)]
        sentence = outlier_sentence("point", positions[suspects], excess, (recorded,), exponents, left_out=False)
        issues.append((OutlierWarning, sentence))
    p_value = misfit_p_value(x_kept, kept, others, floor_known=floor_known)
    if p_value is not None and p_value < UNLIKELY:
        evidence = "they stay on one side of the law for longer than chance explains"
        issues.append((MisfitWarning, misfit_sentence(p_value, evidence)))
    return CurveDiagnosis(suspects, p_value, tuple(issues))


def nearest_power_law(
    x: Float[np.ndarray, " points"], runs: Float[np.ndarray, "runs points"], *, floor_known: bool
) -> RaisedPowerLaw:
    """Fit a power law by least squares of the log mean loss; the floor is fitted unless it is known."""
    y = np.log(runs.mean(axis=0))
    if not floor_known:
        return fit_above_floor(x, y)
    level, exponent = line_through(x, y)
    return RaisedPowerLaw(float(level), float(exponent), 0.0)


def suspect_points(
    x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], law: RaisedPowerLaw, *, floor_known: bool
) -> Bool[np.ndarray, " points"]:
    """Mark the points whose losses contradict the power law fitted to the others, using `outlying_points`.

    No point is marked if there are fewer than six points, or if all points are within 0.1 % of the law.
    """
    if len(x) < FEWEST or np.max(np.abs(y - law.logarithm(x))) < EXACT:
        return np.zeros(len(x), bool)
    # Centred at the mean of the points and in units of the mean loss, the coefficients of the law are of order one.
    z, rest = x - x.mean(), y - y.mean()
    numbers = 2 if floor_known else 3

    def residuals(laws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        whole = np.pad(laws, ((0, 0), (0, 3 - numbers)))
        found, slopes = raised_residuals(whole, z, rest)
        return found, slopes[..., :numbers]

    def start(rows: np.ndarray) -> np.ndarray:
        if floor_known:
            return np.array(line_through(z[rows], rest[rows]))
        starts = raised_starts(z[rows], rest[rows])
        return starts[np.argmin(np.sum(residuals(starts)[0][:, rows] ** 2, axis=1))]

    lower, upper = np.array([-np.inf, -np.inf if floor_known else 0.0, 0.0]), np.array([np.inf, STEEPEST, np.inf])
    centred = np.array([law.level - law.exponent * x.mean() - y.mean(), law.exponent, law.floor * np.exp(-y.mean())])
    family = Family(residuals, start, lower[:numbers], upper[:numbers], (z,))
    return outlying_points(family, centred[:numbers])
