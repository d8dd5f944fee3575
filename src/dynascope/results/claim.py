"""Claims that a number or effect lies within bounds, decided by the confidence interval of the measured value."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from typing import Any

import xarray as xr

from dynascope.results.judgement import Outcome
from dynascope.results.names import Names, describe, names_of
from dynascope.results.numbers import number
from dynascope.results.quantities import NONE
from dynascope.validation import require

__all__ = ["Claim", "reported_claims"]

_CLAIMED = ("statement", "change", "low", "high", "holds")  # variables of every record with claims
_BOUNDS, _EFFECT = ("least", "most"), ("factor", "metric", "direction")  # one of these two sets is also present
_BOUNDS_OF_EFFECTS = {1: (0.0, math.inf), -1: (-math.inf, 0.0), 0: (0.0, 0.0)}  # by expected direction


@dataclasses.dataclass(frozen=True)
class Claim:
    """A claim about one number, with the measured value.

    An effect is a claim about how a quantity changes with a factor: a change above zero means that the quantity rises.

    Attributes:
        name: A short name.
        statement: The claim as a sentence.
        value: The measured value; for an effect, the measured change.
        low: The lower end of its confidence interval; the value itself if it is known exactly, such as a count.
        high: The upper end.
        least: The lower bound of the claim.
        most: The upper bound of the claim.
        unknown: Why the measurement cannot decide the claim regardless of its interval; empty if it can.
        factor: For an effect, the varied factor.
        quantity: For an effect, the quantity that changes.
        units: Units of the value; empty if it is dimensionless.
        decides: Whether the claim decides the verdict of its comparison; other claims are only reported.

    Raises:
        InputError: The ends are in the wrong order, or both bounds are infinite.

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
    factor: str = ""
    quantity: str = ""
    units: str = ""
    decides: bool = False

    def __post_init__(self):
        for end in ("low", "high"):
            if getattr(self, end) is None:
                object.__setattr__(self, end, self.value)
        require(
            not (self.interval[0] > self.value or self.value > self.interval[1]),
            f"the value {self.value} is outside the interval {self.interval}",
            argument="low",
            value=self.interval,
            remedy="give numbers with low ≤ value ≤ high",
        )
        require(
            self.least <= self.most and not (math.isinf(self.least) and math.isinf(self.most)),
            f"least is {self.least} and most is {self.most}",
            argument="least",
            value=(self.least, self.most),
            remedy="give one bound, or both with least ≤ most",
        )

    def if_known(self, known: bool, reason: str) -> Claim:
        """Return the claim, or an undecided claim if the measurement cannot decide it.

        Args:
            known: Whether the measurement can decide the claim: for example, whether the network has learned.
            reason: Why the measurement cannot decide the claim, without a full stop.

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
        """Holds if the whole interval is within the bounds, does not hold if none of it is; otherwise undecided."""
        low, high = self.interval
        if self.unknown or math.isnan(low) or math.isnan(high):
            return "undecided"
        if self.least <= low and high <= self.most:
            return "holds"
        return "does not hold" if high < self.least or low > self.most else "undecided"

    @property
    def why_undecided(self) -> str:
        """The reason why the claim is undecided; empty if it is decided.

        Example:
            >>> Claim("slope", "The loss falls as 1/n.", -0.9, low=-1.2, high=-0.6, least=-1.05).why_undecided
            'the interval −1.2 to −0.6 overlaps the claimed range (at least −1.05) only partly'
        """
        if self.outcome != "undecided" or self.unknown:
            return self.unknown
        if any(map(math.isnan, self.interval)):
            return "it was not measured"
        low, high = (number(each, 3) for each in self.interval)
        allowed = _between(self.least, self.most, 3)
        return f"the interval {low} to {high} overlaps the claimed range ({allowed}) only partly"

    @property
    def digits(self) -> int:
        """The number of significant digits, two to six, that distinguish the ends of the interval.

        Example:
            >>> Claim("slope", "The ratio is one.", 1.002, low=0.995, high=1.009, least=0.8).digits
            3
        """
        width = self.interval[1] - self.interval[0]
        if not (0 < width < math.inf and self.value):
            return 2
        return min(max(2, 1 + math.ceil(math.log10(abs(self.value) / width))), 6)

    @property
    def about(self) -> str:
        """For an effect, the factor and the quantity that changes with it; otherwise empty."""
        return f"{self.factor} → {self.quantity}" if self.quantity else ""

    @property
    def expected(self) -> str:
        """The expected range of the value or, for an effect, the expected direction.

        Example:
            >>> Claim("width", "Training needs fewer than 100 neurons.", 40, most=99).expected
            'at most 99'
            >>> Claim("H1", "Wide networks learn more.", -1.0, most=0.0, factor="width", quantity="loss").expected
            'falls'
        """
        if not self.quantity:
            return _between(self.least, self.most)
        return "stays" if self.least == self.most else "falls" if math.isinf(self.least) else "rises"


def reported_claims(observed: xr.Dataset | None, deciding: Collection[str] = ()) -> dict[str, Claim]:
    """Return the claims in an observed record, by name.

    Args:
        observed: A record with variables over `hypothesis`, as returned by `comparison.report_claims` and
            `comparison.report_effects`; other records have no claims.
        deciding: Names of the claims that decide the verdict.

    Raises:
        InputError: A claim in `deciding` is not in the record, or the interval of a claim contradicts its stored
            outcome.

    Example:
        >>> from dynascope.comparison import report_claims
        >>> record = xr.Dataset(report_claims([Claim("width", "A width of 2 is enough.", 2, most=2)]))
        >>> claim = reported_claims(record, ["width"])["width"]
        >>> claim.outcome, claim.expected, claim.decides
        ('holds', 'at most 2', True)
    """
    claims = {} if observed is None else {each.name: each for each in _claims_in(observed, deciding)}
    unknown = sorted(set(deciding) - set(claims))
    require(
        not unknown,
        f"the observed record contains no claim {', '.join(unknown)}",
        argument="claims",
        value=unknown,
        remedy=f"choose from {', '.join(claims)}" if claims else "add them with report_claims",
    )
    return claims


def _claims_in(record: xr.Dataset, deciding: Collection[str]) -> list[Claim]:
    variables = {str(name): each for name, each in record.variables.items() if each.dims == ("hypothesis",)}
    if not variables.keys() >= {*_CLAIMED} or not (variables.keys() >= {*_BOUNDS} or variables.keys() >= {*_EFFECT}):
        return []
    names = [str(each) for each in record["hypothesis"].to_numpy().tolist()]
    require(
        len(set(names)) == len(names),
        f"two of the claims {', '.join(names)} have the same name",
        argument="hypothesis",
        value=names,
        remedy="give each claim a unique name",
    )
    rows = zip(*(each.to_numpy().tolist() for each in variables.values()), strict=True)
    words = names_of(record)
    return [
        _claim(name, name in deciding, dict(zip(variables, row, strict=True)), words)
        for name, row in zip(names, rows, strict=True)
    ]


def _claim(name: str, decides: bool, row: Mapping[str, Any], words: Names) -> Claim:
    """Return the claim in one row of the variables over `hypothesis`."""
    claimed: dict[str, Any] = {each: row[each] for each in _BOUNDS if each in row}
    if "direction" in row:
        require(
            row["direction"] in _BOUNDS_OF_EFFECTS,
            f"the direction of the claim {name!r} is {row['direction']}",
            argument="direction",
            value=row["direction"],
            remedy="give 1 (rises), -1 (falls) or 0 (stays constant)",
        )
        least, most = _BOUNDS_OF_EFFECTS[row["direction"]]
        quantity, units = describe(str(row["metric"]), words)
        claimed = {"least": least, "most": most, "factor": str(row["factor"]).replace("_", " "), "quantity": quantity}
        claimed["units"] = "" if units == NONE else units
    # An interval that ends at zero does not decide an effect, although it is within the bounds.
    unknown = row.get("why_undecided", "") if row["holds"] == "undecided" else ""
    measured = {"value": row["change"], "low": row["low"], "high": row["high"]}
    claim = Claim(name, row["statement"], **measured, **claimed, unknown=unknown, decides=decides)
    require(
        claim.outcome == row["holds"],
        f"the record states {row['holds']!r} for the claim {name!r}, but the interval implies {claim.outcome!r}",
        argument="holds",
        value=row["holds"],
        remedy="create the record again",
    )
    return claim


def _between(least: float, most: float, digits: int = 4) -> str:
    if math.isinf(most):
        return f"at least {number(least, digits)}"
    if math.isinf(least):
        return f"at most {number(most, digits)}"
    return f"{number(least, digits)} to {number(most, digits)}"
