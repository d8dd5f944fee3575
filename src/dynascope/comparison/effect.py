"""Empirical hypotheses: a factor is expected to change a metric in a given direction."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np
from annotated_types import Interval
from numpy.typing import ArrayLike

from dynascope.comparison.interval import fewest_for_median, median_interval, student_half
from dynascope.results.judgement import Outcome
from dynascope.results.numbers import number
from dynascope.validation import checked, require, require_array
from dynascope.validation.bounded_scalars import OpenFraction

__all__ = ["Effect", "Hypothesis", "report_effects", "report_runs"]

_ONE_RUN = "an interval requires at least two runs"


class Effect(NamedTuple):
    """Trend of a metric from the lowest to the highest level of a factor.

    Attributes:
        change: Mean trend over runs: the least-squares slope against the index of the level, times the number of levels
            minus one. With two levels, the change is the difference between them.
        low: Lower end of the confidence interval of the change; −∞ for a single run.
        high: Upper end of the interval; ∞ for a single run.
        size: The change divided by the standard deviation between runs at the same level; NaN for medians, or if this
            deviation is zero or unknown.
        sign: +1 or −1 if the interval excludes zero, otherwise 0.
        holds: "holds" if the sign is the expected one, "does not hold" if it is the opposite, "undecided" if it is 0.
        why_undecided: The reason why the effect is undecided; empty if it is decided.
    """

    change: float
    low: float
    high: float
    size: float
    sign: int
    holds: Outcome
    why_undecided: str = ""


@checked
@dataclasses.dataclass(frozen=True)
class Hypothesis:
    """The hypothesis that a metric rises (+1), falls (−1) or stays constant (0) as a factor grows.

    An interval that excludes zero refutes an expected 0, but an interval that includes zero does not confirm it.

    Attributes:
        factor: The factor that is varied.
        metric: The metric that is measured.
        direction: +1, −1 or 0.
        name: Short name, such as "H1".
        statement: The claim as a sentence.
        median: Whether the claim is about the median over runs. Use it for skewed metrics, or metrics that can be ∞,
            such as the delay until a run generalises.

    Example:
        >>> claim = Hypothesis(factor="number of samples", metric="kappa_cka", direction=-1)
        >>> effect = claim.compare([[0.50, 0.52, 0.49], [0.40, 0.43, 0.41], [0.31, 0.29, 0.30]])
        >>> round(effect.change, 3), effect.sign, effect.holds
        (-0.203, -1, 'holds')
    """

    factor: str
    metric: str
    direction: Annotated[int, Interval(ge=-1, le=1)]
    name: str = ""
    statement: str = ""
    median: bool = False

    def compare(self, runs: ArrayLike, *, paired: bool = True, confidence: OpenFraction = 0.95) -> Effect:
        """Compute the effect over runs at increasing levels of the factor, with its Student interval.

        The interval has its stated coverage if the trends of the runs are normally distributed, even for two runs. For
        unpaired runs, the interval is conservative. For a single run, the interval is infinite and the effect is
        undecided. The interval of a median consists of two order statistics of the paired trends (`median_interval`);
        at least six runs are required for 95 %.

        Args:
            runs: The metric, shape (levels, runs), levels in increasing order of the factor.
            paired: Whether column j belongs to the same seed at every level, so that each seed has its own trend.
            confidence: Confidence level, above 0 and below 1.

        Raises:
            InputError: There are fewer than two levels, no runs, values that are not finite, or a confidence outside
                (0, 1).
        """
        values = require_array("runs", runs, (None, None), infinite=self.median)
        require(
            values.shape[0] >= 2 and values.shape[1] >= 1,
            f"runs has shape {values.shape}",
            argument="runs",
            value=values.shape,
            remedy="give at least two levels of the factor, with at least one run each",
        )
        count = values.shape[1]
        levels = np.arange(len(values)) - (len(values) - 1) / 2
        weights = levels * (len(values) - 1) / np.sum(levels**2)
        if self.median:
            return self._of_median(weights, values, confidence)
        trends = weights @ values
        change = float(np.mean(trends))
        if count == 1:
            return Effect(change, -np.inf, np.inf, np.nan, 0, "undecided", _ONE_RUN)
        variances = np.var(values, axis=1, ddof=1)
        variance = np.var(trends, ddof=1) if paired else weights**2 @ variances
        half = student_half(float(variance), count, confidence)
        low, high = change - half, change + half
        spread = float(np.sqrt(np.mean(variances)))
        sign = int(np.sign(change)) if low > 0 or high < 0 else 0
        size = change / spread if spread > 0 else np.nan
        return Effect(change, low, high, size, sign, self._outcome(sign), _why(low, high))

    def _of_median(self, weights: np.ndarray, values: np.ndarray, confidence: float) -> Effect:
        with np.errstate(invalid="ignore"):  # infinities that cancel are rejected below
            trends = weights @ np.where(weights[:, None] == 0, 0.0, values)
        require(
            not np.isnan(trends).any(),
            f"the trend is undefined for {np.isnan(trends).sum()} of {len(trends)} runs",
            argument="runs",
            value=values,
            remedy="give finite numbers, with ∞ at no more than one level per run",
        )
        low, high = median_interval(trends, confidence)
        sign = 1 if low > 0 else -1 if high < 0 else 0
        why = _why(low, high)
        if len(trends) < (fewest := fewest_for_median(confidence)):
            why = f"an interval of the median requires at least {fewest} runs, not {len(trends)}"
        return Effect(float(np.median(trends)), low, high, np.nan, sign, self._outcome(sign), why)

    def _outcome(self, sign: int) -> Outcome:
        if sign == 0:
            return "undecided"
        return "holds" if sign == self.direction else "does not hold"


def _why(low: float, high: float) -> str:
    """Explain why an effect with this interval is undecided; empty if the interval excludes zero."""
    return "" if low > 0 or high < 0 else f"the interval {number(low, 3)} to {number(high, 3)} includes zero"


def report_effects(hypotheses: Sequence[Hypothesis], effects: Sequence[Effect]) -> dict[str, tuple[tuple[str], Any]]:
    """Return the record variables that report hypotheses, over the dimension `hypothesis`; pages show them as a table.

    Returns:
        The variables by name: `statement`, `factor`, `metric` and `direction` of the hypotheses, and all fields of the
        effects. The labels of the dimension are the names of the hypotheses.

    Example:
        >>> claim = Hypothesis("width", "loss", -1, "H1", "Wide networks learn more.")
        >>> effect = claim.compare([[3.0, 3.1], [2.0, 2.1]])
        >>> report_effects([claim], [effect])["holds"]
        (('hypothesis',), array(['holds'], dtype='<U5'))
    """
    stated = {
        name: [getattr(each, name) for each in hypotheses] for name in ("statement", "factor", "metric", "direction")
    }
    found = {name: [getattr(each, name) for each in effects] for name in Effect._fields}
    return {name: (("hypothesis",), np.array(values)) for name, values in {**stated, **found}.items()}


def report_runs(
    claims: Sequence[tuple[Hypothesis, ArrayLike]], *, undecided: Mapping[str, str] = MappingProxyType({})
) -> dict[str, tuple[tuple[str], Any]]:
    """Test hypotheses on their runs and report the effects, labelled by the names of the hypotheses.

    Args:
        claims: Pairs of a hypothesis and its runs, as accepted by `Hypothesis.compare`.
        undecided: The reason, by name, for each hypothesis that the runs cannot decide.

    Example:
        >>> claim = Hypothesis("width", "loss", -1, "H1", "Wide networks learn more.")
        >>> report_runs([(claim, [[3.0, 3.1], [2.0, 2.1]])])["holds"][1].tolist()
        ['holds']
    """
    hypotheses, effects = [each for each, _ in claims], [each.compare(runs) for each, runs in claims]
    decided = [
        effect._replace(holds="undecided", why_undecided=undecided[each.name]) if each.name in undecided else effect
        for each, effect in zip(hypotheses, effects, strict=True)
    ]
    names = np.array([each.name for each in hypotheses])
    return report_effects(hypotheses, decided) | {"hypothesis": (("hypothesis",), names)}
