"""What is claimed of SGD at the end of linear regression: its moments, its stationary law and its currents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.stats

from dynascope.comparison import Claim
from dynascope.results.numbers import number
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
_SMALL = 0.05  # by how much the exact stationary variances may differ from the law of small steps, for it to be judged
# How near that law is claimed to be: variances to twice that; distributions to the 0.02 that such a variance makes and
# the 0.025 that 4000 runs leave to chance; and currents, which are differences of neighbouring steps, to a fifth.
_VARIANCES, _EQUIPARTITION, _LAW, _CURRENTS = 0.1, 0.1, 0.05, 0.2


def limiting_claims(
    *,
    worst: Sequence[float],
    allowed: Sequence[float],
    laws: RegressionLaws,
    late: PhaseSpace,
    modified_loss: np.ndarray,
) -> list[Claim]:
    """The claims on SGD and on Langevin runs; what rests on the law of small steps is undecided where steps are large.

    Args:
        worst: The largest deviation of the moments of SGD, and of Langevin runs, in standard errors.
        allowed: What chance allows of these.
        laws: Theory.
        late: SGD at rest, at steps that follow each other.
        modified_loss: κΦ of each run and mode at the end, shape (runs, modes).
    """
    said = ("All means and covariances of SGD are the exact ones", "Those of Langevin runs are those of their law")
    of_moments = "; the largest deviation, in standard errors, is one of chance."
    moments = [
        Claim(name, text + of_moments, float(most), most=float(by))
        for name, text, most, by in zip(LIMITING_CLAIMS[:2], said, worst, allowed, strict=True)
    ]
    # Steps of one run are not independent; their mean is that of a run, and runs are.
    a, b = np.mean(late.position**2, axis=0).T, np.mean(late.velocity**2, axis=0).T
    ratio = laws.equipartition[:, None]
    squares, balance = a / laws.limit.position_variance[:, None], (b - ratio * a) / b.mean(axis=1, keepdims=True)
    distances = np.array([scipy.stats.kstest(each, "expon").statistic for each in modified_loss.T])
    stationary, equal, modified, currents = LIMITING_CLAIMS[2:]
    of_law = "Var a is that of Langevin dynamics along all modes, over which it is 1."
    of_ratio = "Var b is 2h/(η(1 + β)) Var a along all modes; by how much less or more, over Var b."
    of_loss = "κΦ is exponential along all modes; the distance of its distribution."
    of_currents = "Modes that swing circle at −s/(S(1 − β)), over which it is 1."
    law = [
        close_to(stationary, of_law, Means.of(squares), np.ones(len(a)), most=_VARIANCES),
        close_to(equal, of_ratio, Means.of(balance), np.zeros(len(a)), most=_EQUIPARTITION),
        law_of_samples(modified, of_loss, distances, len(modified_loss), most=_LAW),
    ]
    if laws.swings.any():
        circling = (late.circulation(laws.learning_rate) / laws.circulation).T[laws.swings]
        law.append(close_to(currents, of_currents, Means.of(circling), np.ones(len(circling)), most=_CURRENTS))
    else:
        law.append(Claim(currents, of_currents, 0.0, most=_CURRENTS).if_known(False, "no mode swings at this momentum"))
    off = float(np.abs(laws.off).max())
    large = f"steps are too large: the exact variances differ from the law of small steps by {number(100 * off, 2)} %"
    return [*moments, *(each.if_known(off < _SMALL, large) for each in law)]
