"""Claims about SGD on linear regression: its moments, its stationary distribution and its currents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.stats

from dynascope.comparison import Claim
from dynascope.results.numbers import percent
from dynascope.studies.noise.joint_claims import Means, close_to, law_of_samples
from dynascope.studies.noise.limiting_dynamics.phase_space import PhaseSpace
from dynascope.studies.noise.limiting_dynamics.regression_laws import RegressionLaws

__all__ = ["LIMITING_CLAIMS", "limiting_claims"]

LIMITING_CLAIMS = (
    "SGD: moments",
    "Langevin: moments",
    "SGD: stationary variances",
    "SGD: equipartition",
    "SGD: modified loss",
    "SGD: currents",
)
# Claims that rely on the small-step law are undecided if the exact stationary variances differ from it by more.
_SMALL = 0.05
# Tolerances of the small-step law. Variances: twice `_SMALL`. Distributions: `_SMALL` in the variance contributes 0.02,
# and the sampling error of 4000 runs 0.025. Currents are differences between consecutive steps and therefore noisier.
_VARIANCES, _EQUIPARTITION, _LAW, _CURRENTS = 0.1, 0.1, 0.05, 0.2


def limiting_claims(
    *,
    worst: Sequence[float],
    allowed: Sequence[float],
    laws: RegressionLaws,
    late: PhaseSpace,
    modified_loss: np.ndarray,
) -> list[Claim]:
    """Evaluate the claims about SGD and the Langevin runs.

    Claims that rely on the small-step law are undecided if the learning rate is too large for this law.

    Args:
        worst: Largest deviation of a moment from theory in standard errors, for SGD and for the Langevin runs.
        allowed: Largest deviation expected by chance, for SGD and for the Langevin runs.
        laws: The predicted laws.
        late: SGD in the stationary state, at consecutive steps.
        modified_loss: κΦ of each run and mode at the last step, shape (runs, modes).
    """
    moments = [
        Claim(
            name,
            f"All means and covariances of {runs} agree with theory (largest deviation in standard errors).",
            float(deviation),
            most=float(limit),
        )
        for name, runs, deviation, limit in zip(
            LIMITING_CLAIMS[:2], ("SGD", "Langevin runs"), worst, allowed, strict=True
        )
    ]
    # Steps within a run are correlated, so each run contributes its mean; the runs are independent.
    a, b = np.mean(late.position**2, axis=0).T, np.mean(late.velocity**2, axis=0).T
    ratio = laws.equipartition[:, None]
    squares, balance = a / laws.limit.position_variance[:, None], (b - ratio * a) / b.mean(axis=1, keepdims=True)
    distances = np.array([scipy.stats.kstest(each, "expon").statistic for each in modified_loss.T])
    stationary, equal, modified, currents = LIMITING_CLAIMS[2:]
    of_law = (
        "Along every mode, the position variance Var a agrees with Langevin dynamics (largest relative difference)."
    )
    of_ratio = "Along every mode, the velocity variance Var b equals 2h/(η(1 + β)) Var a (largest relative difference)."
    of_loss = (
        "Along every mode, the modified loss κΦ is exponentially distributed (largest Kolmogorov-Smirnov distance)."
    )
    of_currents = "Oscillating modes circulate at the predicted rate −s/(S(1 − β)) (largest relative difference)."
    law = [
        close_to(stationary, of_law, Means.of(squares), np.ones(len(a)), most=_VARIANCES),
        close_to(equal, of_ratio, Means.of(balance), np.zeros(len(a)), most=_EQUIPARTITION),
        law_of_samples(modified, of_loss, distances, len(modified_loss), most=_LAW),
    ]
    if laws.swings.any():
        circling = (late.circulation(laws.sgd.learning_rate) / laws.circulation).T[laws.swings]
        law.append(close_to(currents, of_currents, Means.of(circling), np.ones(len(circling)), most=_CURRENTS))
    else:
        law.append(
            Claim(currents, of_currents, 0.0, most=_CURRENTS).if_known(False, "no mode oscillates at this momentum")
        )
    off = float(np.abs(laws.off).max())
    large = f"the learning rate is too large: the exact variances differ from the small-step law by {percent(off, 2)}"
    return [*moments, *(each.if_known(off < _SMALL, large) for each in law)]
