"""Check a power law that was fitted to a curve: single points that contradict it, and a misfit of all."""

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
    """What contradicts a fitted power law.

    Attributes:
        suspects: Marks the points that contradict the law of the others.
        misfit_p_value: That of the law of the others, as `misfit_p_value`.
        warnings: A category and a sentence for each failure.
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
    """Check the law of a curve.

    Args:
        x: ln of the resource at the fitted points.
        runs: L + missing there, above the floor if it was given.
        law: Fitted to the logarithm of their mean.
        positions: Those of the fitted points among all.
        recorded: Number of all points.
        floor_known: Whether the floor was given.
        offset: L less `runs`.
    """
    mean, heard = runs.mean(axis=0), []
    suspects = suspect_points(x, np.log(mean), law, floor_known=floor_known)
    x_kept, kept, others = x[~suspects], runs[:, ~suspects], law
    if suspects.any():
        others = nearest_power_law(x_kept, kept, floor_known=floor_known)
        expected = np.exp(others.logarithm(x[suspects]))
        excess = (mean[suspects] - expected) / (expected + offset)
        exponents = [(law.exponent, others.exponent)]
        sentence = outlier_sentence("point", positions[suspects], excess, (recorded,), exponents, left_out=False)
        heard.append((OutlierWarning, sentence))
    p_value = misfit_p_value(x_kept, kept, others, floor_known=floor_known)
    if p_value is not None and p_value < UNLIKELY:
        evidence = "they are on one side of it for longer than chance explains"
        heard.append((MisfitWarning, misfit_sentence(p_value, evidence)))
    return CurveDiagnosis(suspects, p_value, tuple(heard))


def nearest_power_law(
    x: Float[np.ndarray, " points"], runs: Float[np.ndarray, "runs points"], *, floor_known: bool
) -> RaisedPowerLaw:
    """Least squares of the logarithm of the mean loss: a line, or a line and a floor."""
    y = np.log(runs.mean(axis=0))
    if not floor_known:
        return fit_above_floor(x, y)
    level, exponent = line_through(x, y)
    return RaisedPowerLaw(float(level), float(exponent), 0.0)


def suspect_points(
    x: Float[np.ndarray, " points"], y: Float[np.ndarray, " points"], law: RaisedPowerLaw, *, floor_known: bool
) -> Bool[np.ndarray, " points"]:
    """Mark the points whose losses contradict the power law of the others, by `outlying_points`.

    None is marked among fewer than six points, or if all are within 0.1 % of the law.
    """
    if len(x) < FEWEST or np.max(np.abs(y - law.logarithm(x))) < EXACT:
        return np.zeros(len(x), bool)
    # About the middle of the points, in units of the mean loss, the numbers of the law are of order one.
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
