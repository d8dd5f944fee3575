"""Claims about the mean over runs, and the record variables that report claims."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from annotated_types import IsFinite
from numpy.typing import ArrayLike

from dynascope.comparison.interval import student_half
from dynascope.results.claim import Claim
from dynascope.validation import require

__all__ = ["Claim", "claim_on_mean", "report_claims"]


def claim_on_mean(
    name: str,
    statement: str,
    runs: IsFinite[ArrayLike],
    *,
    least: float = -math.inf,
    most: float = math.inf,
) -> Claim:
    """Make a claim about the mean over runs, with its 95 % Student confidence interval.

    Args:
        name: A short name.
        statement: The claim as a sentence.
        runs: The measured value of each run, shape (n,) with n ≥ 2.
        least: Claimed lower bound on the mean.
        most: Claimed upper bound on the mean.

    Raises:
        InputError: There are fewer than two runs, values that are not finite, or no finite bound.

    Example:
        >>> claim = claim_on_mean("fewer", "The mean is below one.", [0.5, 0.6, 0.4], most=1)
        >>> claim.interval[0] < 0.5 < claim.interval[1], claim.outcome
        (True, 'holds')
    """
    values = np.asarray(runs)
    require(
        values.ndim == 1 and len(values) >= 2,
        f"runs has shape {values.shape}",
        argument="runs",
        value=values.shape,
        remedy="give the values of at least two runs",
    )
    mean, half = float(np.mean(values)), student_half(float(np.var(values, ddof=1)), len(values))
    return Claim(name, statement, mean, mean - half, mean + half, float(least), float(most))


def report_claims(claims: Sequence[Claim]) -> dict[str, tuple[tuple[str], Any]]:
    """Return the record variables that report claims, over the dimension `hypothesis`; pages show them as a table.

    Returns:
        The variables by name: `statement`, `change` (the value), `low`, `high`, `least`, `most`, `holds` (the outcome)
        and `why_undecided` (the reason). The labels of the dimension are the names of the claims.

    Example:
        >>> report_claims([Claim("width", "A width of 2 is enough.", 2, most=2)])["holds"][1].tolist()
        ['holds']
    """
    columns = {
        "statement": [each.statement for each in claims],
        "change": [float(each.value) for each in claims],
        "low": [float(each.interval[0]) for each in claims],
        "high": [float(each.interval[1]) for each in claims],
        "least": [float(each.least) for each in claims],
        "most": [float(each.most) for each in claims],
        "holds": [each.outcome for each in claims],
        "why_undecided": [each.why_undecided for each in claims],
        "hypothesis": [each.name for each in claims],
    }
    return {name: (("hypothesis",), np.array(values)) for name, values in columns.items()}
