"""How claims are made from runs, and how a record reports on them."""

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
    """A claim about the mean over runs, with its Student interval of 95 %.

    Args:
        name: A short name.
        statement: The claim in words.
        runs: The measured value of each run, shape (n,) with n ≥ 2.
        least: The least that is claimed of the mean.
        most: The most that is claimed of it.

    Raises:
        InputError: Fewer than two runs, values that are not finite, or bounds that claim nothing.

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
        remedy="give a row of at least two runs, from which their mean is told from chance",
    )
    mean, half = float(np.mean(values)), student_half(float(np.var(values, ddof=1)), len(values))
    return Claim(name, statement, mean, mean - half, mean + half, float(least), float(most))


def report_claims(claims: Sequence[Claim]) -> dict[str, tuple[tuple[str], Any]]:
    """The variables over the dimension `hypothesis` by which a record reports on claims; a page shows their table.

    Returns:
        `statement`, `change` (the value), `low`, `high`, `least`, `most`, `holds` (the outcome) and `why_undecided`
        (the reason), by name, and the names of the claims as labels.

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
