"""Claims: a number, a count or an effect lies between bounds, and the interval of what was measured says whether."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from dynascope.arguments import require, require_array
from dynascope.comparison.interval import student_half
from dynascope.results.judgement import Outcome
from dynascope.results.numbers import number
from dynascope.results.result import WHY_UNDECIDED

__all__ = [
    "Claim",
    "claim_outcomes",
    "further_outcomes",
    "report_claims",
]


@dataclasses.dataclass(frozen=True)
class Claim:
    """What is claimed of one number, and what was measured of it.

    Attributes:
        name: A short name.
        statement: The claim in words.
        value: What was measured.
        low: The low end of its interval; the value itself where it is known exactly, as a count is.
        high: The high end.
        least: The least that the claim allows.
        most: The most that it allows.
        unknown: Why the measurement cannot decide the claim, whatever its interval; empty where it can.

    Raises:
        InputError: The ends are in the wrong order, or no bound says what is claimed.

    Example:
        >>> Claim("width", "Training needs fewer than 100 neurons.", 40, most=99).outcome
        'holds'
        >>> Claim("slope", "The loss falls as 1/n.", -0.9, low=-1.2, high=-0.6, least=-1.05, most=-0.95).outcome
        'undecided'
    """

    name: str
    statement: str
    value: float
    low: float | None = None
    high: float | None = None
    least: float = -math.inf
    most: float = math.inf
    unknown: str = ""

    def __post_init__(self):
        for end in ("low", "high"):
            if getattr(self, end) is None:
                object.__setattr__(self, end, self.value)
        require(
            not (self.interval[0] > self.value or self.value > self.interval[1]),
            f"the value {self.value} lies outside its interval {self.interval}",
            argument="low",
            value=self.interval,
            remedy="give low ≤ value ≤ high",
        )
        require(
            self.least <= self.most and not (math.isinf(self.least) and math.isinf(self.most)),
            f"least is {self.least} and most is {self.most}",
            argument="least",
            value=(self.least, self.most),
            remedy="give one bound or both, least ≤ most",
        )

    @classmethod
    def of_runs(cls, name: str, statement: str, runs: ArrayLike, **bounds: float) -> Claim:
        """A claim on the mean over runs, with the Student interval of 95 % in which it lies.

        Args:
            name: A short name.
            statement: The claim in words.
            runs: What was measured of each run, shape (n,) with n ≥ 2.
            **bounds: `least`, `most` or both.

        Raises:
            InputError: Fewer than two runs, values that are not finite, or bounds that claim nothing.

        Example:
            >>> claim = Claim.of_runs("fewer", "The mean is below one.", [0.5, 0.6, 0.4], most=1)
            >>> claim.interval[0] < 0.5 < claim.interval[1], claim.outcome
            (True, 'holds')
        """
        values = require_array("runs", runs, (None,))
        require(
            len(values) >= 2,
            f"runs has {len(values)} values",
            argument="runs",
            value=len(values),
            remedy="give at least two runs, from which their mean is told from chance",
        )
        mean, half = float(np.mean(values)), student_half(float(np.var(values, ddof=1)), len(values))
        limits: dict[str, Any] = bounds
        return cls(name, statement, mean, mean - half, mean + half, **limits)

    def if_known(self, known: bool, reason: str) -> Claim:
        """Return the claim, or an undecided claim where the measurement cannot decide it.

        Args:
            known: Whether the measurement can decide the claim: for example, whether the network has learned.
            reason: Why it cannot, in plain words, without a full stop.

        Example:
            >>> claim = Claim("width", "Training needs fewer than 100 neurons.", 40, most=99)
            >>> claim.if_known(False, "one of three networks did not learn").outcome
            'undecided'
        """
        return self if known or self.unknown else dataclasses.replace(self, unknown=reason)

    @property
    def interval(self) -> tuple[float, float]:
        """Both ends of the interval."""
        assert self.low is not None
        assert self.high is not None
        return self.low, self.high

    @property
    def outcome(self) -> Outcome:
        """Holds where the whole interval is allowed, does not hold where none of it is; otherwise undecided."""
        low, high = self.interval
        if self.unknown or math.isnan(low) or math.isnan(high):
            return "undecided"
        if self.least <= low and high <= self.most:
            return "holds"
        return "does not hold" if high < self.least or low > self.most else "undecided"

    @property
    def why_undecided(self) -> str:
        """The reason why the claim is undecided, in plain words; empty where it is decided.

        Example:
            >>> Claim("slope", "The loss falls as 1/n.", -0.9, low=-1.2, high=-0.6, least=-1.05).why_undecided
            'its interval, −1.2 to −0.6, lies only partly in the claimed range, at least −1.05'
        """
        if self.outcome != "undecided" or self.unknown:
            return self.unknown
        if any(map(math.isnan, self.interval)):
            return "nothing was measured of it"
        low, high, least, most = (number(each, 3) for each in (*self.interval, self.least, self.most))
        between = f"{least} to {most}" if math.isfinite(self.most) else f"at least {least}"
        allowed = between if math.isfinite(self.least) else f"at most {most}"
        return f"its interval, {low} to {high}, lies only partly in the claimed range, {allowed}"


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
        WHY_UNDECIDED: [each.why_undecided for each in claims],
        "hypothesis": [each.name for each in claims],
    }
    return {name: (("hypothesis",), np.array(values)) for name, values in columns.items()}


def claim_outcomes(observed: xr.Dataset, claims: Collection[str]) -> dict[str, Outcome]:
    """What a record says of these claims.

    Args:
        observed: A record with `holds` over `hypothesis`, as `report_claims` and `report_effects` make it.
        claims: Names of claims.

    Raises:
        InputError: The record reports on no such claim.
    """
    told = _told(observed)
    unknown = sorted(set(claims) - set(told))
    require(
        not unknown,
        f"claims names {', '.join(unknown)}, on which the observed record does not report",
        argument="claims",
        value=unknown,
        remedy=f"choose from {', '.join(map(str, told))}" if told else "report on them by report_claims",
    )
    return {name: told[name] for name in told if name in claims}


def further_outcomes(observed: xr.Dataset, claims: Collection[str]) -> dict[str, Outcome]:
    """What a record says of all other claims, which do not decide the verdict."""
    return {name: outcome for name, outcome in _told(observed).items() if name not in claims}


def _told(observed: xr.Dataset) -> dict[str, Outcome]:
    return {} if "holds" not in observed else observed["holds"].to_series().to_dict()
