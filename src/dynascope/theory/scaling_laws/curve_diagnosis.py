"""Check a power law that was fitted to a curve: single points that contradict it, and a misfit of all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from dynascope.theory.scaling_laws.curve_outliers import suspect_points
from dynascope.theory.scaling_laws.diagnosis import (
    UNLIKELY,
    MisfitWarning,
    OutlierWarning,
    misfit_sentence,
    outlier_sentence,
)
from dynascope.theory.scaling_laws.misfit import misfit_p_value
from dynascope.theory.scaling_laws.straight_window import line_through
from dynascope.theory.scaling_laws.unknown_floor import RaisedPowerLaw, fit_above_floor

__all__ = ["CurveDiagnosis", "diagnose_curve", "nearest_power_law"]


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
