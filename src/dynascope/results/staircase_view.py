"""A view of a staircase record: columns over the jumps, and one row for each jump."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from dynascope.results import staircase_names as names
from dynascope.results.clock import is_exponential, time_unit
from dynascope.results.names import STEPS
from dynascope.results.numbers import number
from dynascope.results.repeated_sentences import gathered_reasons, numbered

__all__ = ["Jump", "SeedJump", "SeenJump", "StaircaseView", "counted_words", "is_staircase"]


_SMALLEST = 1e-3  # share of the initial loss
_KINDS = 3  # reasons listed in a sentence
_SHORT = 30  # length up to which a repeated description is shown


@dataclasses.dataclass(frozen=True)
class SeenJump:
    """The observation of a predicted jump.

    Attributes:
        time: Gradient-flow time; NaN if the jump was not reached.
        time_error: Relative error of the time, (predicted − observed)/observed.
        loss_before: Loss of the plateau before the jump.
        loss_after: Loss of the plateau after the jump.
        status: "judged" if the jump is scored; "slow" if theory predicts its time only roughly; "unclear" if a user's
            curve does not resolve it; or "not due" if it is predicted after the end of the run.
        slope: Difference between the times of the jump at two scales, divided by the difference in `results.time_unit`;
            None for a single scale.
        settled: Whether the plateau after the jump is flat where its level is read.
        time_tolerance: Tolerance of `time_error`; NaN if unknown.
    """

    time: float
    time_error: float
    loss_before: float
    loss_after: float
    status: str
    slope: float | None
    settled: bool = True
    time_tolerance: float = math.nan


@dataclasses.dataclass(frozen=True)
class Jump:
    """One jump of a predicted staircase. Numbers missing from the record are NaN, and missing strings are empty.

    Attributes:
        number: Index, counted from 1.
        time: Gradient-flow time at the scale of the record.
        accelerated_time: Small-scale limit of the time divided by `results.time_unit`.
        loss_before: Loss of the plateau before the jump.
        loss_after: Loss of the plateau after the jump.
        learned: Description of the feature learned at the jump.
        slow: Whether the time of the jump converges slowly to the small-scale limit; slow jumps are not scored.
        reason: Reason why the jump is slow.
        seen: The observation of the jump, if the record was compared with a run.
        step: The training step of the jump, if a learning rate is given.
        epoch: The epoch of the jump, if a batch size is given.
    """

    number: int
    time: float
    accelerated_time: float
    loss_before: float
    loss_after: float
    learned: str
    slow: bool
    reason: str
    seen: SeenJump | None
    step: float = math.nan
    epoch: float = math.nan

    @property
    def status(self) -> str:
        """The status of the observation; without an observation, "slow" or "judged"."""
        if self.seen is not None:
            return self.seen.status
        return names.SLOW if self.slow else names.JUDGED


class SeedJump(NamedTuple):
    """Statistics of a jump over many draws of the initial weights.

    Attributes:
        number: Index, counted from 1.
        seen: Number of draws with this jump.
        median: Median time.
        earliest: Earliest time.
        latest: Latest time.
        learned: Descriptions of the learned features, each with the number of draws.
    """

    number: int
    seen: int
    median: float
    earliest: float
    latest: float
    learned: dict[str, int]


@dataclasses.dataclass(frozen=True)
class StaircaseView:
    """A read-only view of a staircase record.

    Attributes:
        record: The prediction, with at least the times and the losses before and after each jump.
        residual: The residual of `compare`, if there is an observation.

    Example:
        >>> from dynascope.results import make_record
        >>> record = make_record(
        ...     {"jump_time": (["jump"], [3.0]), "loss_before": (["jump"], [1.0]), "loss_after": (["jump"], [0.2])},
        ...     {"jump": [1]},
        ... )
        >>> view = StaircaseView(record)
        >>> view.levels, view.rows[0].time
        (array([1. , 0.2]), 3.0)
    """

    record: xr.Dataset
    residual: xr.Dataset | None = None

    @property
    def times(self) -> Float[np.ndarray, "*members jump"]:
        """Gradient-flow time of each jump."""
        return self.record[names.JUMP_TIME].to_numpy()

    @property
    def accelerated_times(self) -> Float[np.ndarray, "*members jump"]:
        """Small-scale limit of each time divided by `results.time_unit`."""
        return self.record[names.ACCELERATED_TIME].to_numpy()

    @property
    def levels(self) -> Float[np.ndarray, " level"]:
        """Loss of each plateau; the first is the initial loss, NaN if unknown."""
        before, after = (self.record[name].to_numpy() for name in (names.LOSS_BEFORE, names.LOSS_AFTER))
        first = before[:1] if len(before) else [float(self.record.attrs.get(names.INITIAL_LOSS, np.nan))]
        return np.append(first, after)

    @property
    def slow(self) -> Bool[np.ndarray, "*members jump"]:
        """Whether the time of each jump converges slowly to the small-scale limit."""
        return self.record[names.SLOW].to_numpy() if names.SLOW in self.record else np.zeros(self.times.shape, bool)

    @property
    def time_uncertainty(self) -> Float[np.ndarray, " jump"] | None:
        """Estimated relative error of each time at the scale of the record, if known."""
        return self._column_or_none(names.TIME_UNCERTAINTY)

    @property
    def level_uncertainty(self) -> Float[np.ndarray, " jump"] | None:
        """Estimated error of each loss after a jump, relative to the initial loss; infinite if unknown."""
        return self._column_or_none(names.LEVEL_UNCERTAINTY)

    @property
    def curve(self) -> xr.DataArray | None:
        """The predicted loss curve at the scale of the record, if there is one."""
        curve = self.record.get(names.CURVE_LOSS)
        return curve if curve is not None and curve.dims == ("time",) else None

    @property
    def settling_times(self) -> Float[np.ndarray, " jump"] | None:
        """Time from each jump until its plateau is flat, if predicted."""
        return self._column_or_none(names.SETTLING_TIME)

    @property
    def complete(self) -> bool:
        """Whether the staircase contains all jumps."""
        return bool(self.record.attrs.get("complete", 1))

    @property
    def exponential(self) -> bool:
        """Whether small neurons grow exponentially."""
        return is_exponential(**self._clock)

    @property
    def clock(self) -> str:
        """The unit of the times: "step" for a user's curve, otherwise "time"."""
        return "step" if self.record[names.JUMP_TIME].attrs.get("units") == STEPS else "time"

    def unit(self, scale: float | None = None) -> float:
        """`results.time_unit` at a scale, by default at the scale of the record."""
        return time_unit(float(self.record.attrs["scale"]) if scale is None else scale, **self._clock)

    @functools.cached_property
    def rows(self) -> list[Jump]:
        """The jumps one by one; for an ensemble, the medians of numbers and the strings of the first member."""
        predicted = functools.partial(_column, self.record, self.record["jump"])
        columns = zip(
            self.record["jump"].to_numpy().tolist(),
            predicted(names.JUMP_TIME),
            predicted(names.ACCELERATED_TIME),
            predicted(names.LOSS_BEFORE),
            predicted(names.LOSS_AFTER),
            predicted(names.LEARNED, ""),
            predicted(names.SLOW, False),
            predicted(names.REASON, ""),
            self._seen(),
            predicted(names.JUMP_STEP),
            predicted(names.JUMP_EPOCH),
            strict=True,
        )
        return [Jump(*row) for row in columns]

    @property
    def smallest(self) -> float:
        """The minimum drop, as a fraction of the initial loss, of a jump in the table."""
        return float(self.record.attrs.get("smallest_jump", _SMALLEST))

    @property
    def shown(self) -> list[Jump]:
        """The jumps in the table: those with at least the minimum drop, or all jumps if only one is smaller.

        The minimum drop is a thousandth of the initial loss, or the attribute `smallest_jump`.
        """
        least = self.smallest * self.levels[0]
        large = [row for row in self.rows if not row.loss_before - row.loss_after < least]
        return large if len(self.rows) - len(large) > 1 else self.rows

    @property
    def gathered(self) -> str:
        """A sentence about the jumps not in the table; empty if there are none."""
        shown = {row.number for row in self.shown}
        rest = [row for row in self.rows if row.number not in shown]
        if not rest:
            return ""
        share = sum(row.loss_before - row.loss_after for row in rest) / self.levels[0]
        return f"{len(rest)} further jumps together account for {number(100 * share, 2)} % of the initial loss."

    @property
    def slow_sentence(self) -> str:
        """One sentence about all slow jumps, with the reasons; empty if there are none."""
        kinds = gathered_reasons([(row.number, row.reason) for row in self.rows])
        if not kinds:
            return ""
        slow = sorted(jump for jumps, _ in kinds for jump in jumps)
        one = len(slow) == 1
        subject = f"Jump {slow[0]} is slow" if one else f"Jumps {numbered(slow)} are slow"
        why = [
            reason if len(kinds) == 1 else f"{reason} (jump{'s' * (len(own) > 1)} {numbered(own)})"
            for own, reason in kinds
        ]
        rest = [f"{len(kinds) - _KINDS} further reasons"] if len(kinds) > _KINDS + 1 else why[_KINDS:]
        return f"{subject} and therefore not scored: {'; '.join([*why[:_KINDS], *rest])}."

    @functools.cached_property
    def over_seeds(self) -> list[SeedJump]:
        """The jumps over many draws of the weights; empty for a single draw."""
        if names.SEED_JUMP_TIME not in self.record:
            return []
        times, learned = (self.record[name].to_numpy().T for name in (names.SEED_JUMP_TIME, names.SEED_LEARNED))
        rows = []
        for jump, own, words in zip(self.record["jump"].to_numpy().tolist(), times, learned, strict=True):
            seen = np.isfinite(own)
            median, earliest, latest = map(float, np.nanquantile(own, (0.5, 0.0, 1.0)))
            counts = dict(Counter(words[seen].tolist()).most_common())
            rows.append(SeedJump(jump, int(seen.sum()), median, earliest, latest, counts))
        return rows

    @property
    def seeds(self) -> int:
        """Number of draws of the weights."""
        return self.record.sizes.get("seed", 1)

    def members(self) -> Iterator[StaircaseView]:
        """The staircases of an ensemble, one by one."""
        others = [name for name in self.record[names.JUMP_TIME].dims if name != "jump"]
        for index in np.ndindex(*(self.record.sizes[name] for name in others)):
            yield StaircaseView(self.record.isel(dict(zip(others, index, strict=True))))

    def _column_or_none(self, name: str) -> np.ndarray | None:
        return self.record[name].to_numpy() if name in self.record else None

    @property
    def _clock(self) -> dict:
        attributes = self.record.attrs
        return {"degree": int(attributes.get("degree", 2)), "normalised": bool(attributes.get("normalised", 0))}

    def _seen(self) -> list[SeenJump | None]:
        if self.residual is None or names.OBSERVED_JUMP_TIME not in self.residual:
            return [None] * self.record.sizes["jump"]
        observed = functools.partial(_column, self.residual, self.record["jump"])
        columns = zip(
            observed(names.OBSERVED_JUMP_TIME),
            observed(names.TIME_ERROR),
            observed(names.OBSERVED_LOSS_BEFORE),
            observed(names.OBSERVED_LOSS_AFTER),
            observed(names.STATUS, names.JUDGED),
            observed(names.SLOPE) if names.SLOPE in self.residual else [None] * self.record.sizes["jump"],
            observed(names.SETTLED, True),
            observed(names.TIME_TOLERANCE),
            strict=True,
        )
        return [SeenJump(*row) for row in columns]


def counted_words(jump: SeedJump, *, most: int) -> str:
    """Format the features that the draws learn at a jump, with counts, the most common first.

    Example:
        >>> counted_words(SeedJump(1, 5, 2.0, 1.0, 3.0, {"age": 3, "height": 2}), most=4)
        'age (3), height (2)'
        >>> counted_words(SeedJump(1, 5, 2.0, 1.0, 3.0, {"age": 5}), most=4)
        'age'
    """
    if len(jump.learned) == 1:
        (words,) = jump.learned
        return words if len(words) <= _SHORT else "the same in all draws"
    parts = [f"{words} ({count})" for words, count in jump.learned.items()]
    return ", ".join([*parts[:most], *(["…"] if len(parts) > most else [])])


def is_staircase(record: xr.Dataset) -> bool:
    """Whether a record contains the times and losses of jumps.

    Example:
        >>> from dynascope.results import make_record
        >>> is_staircase(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}))
        False
    """
    return {names.JUMP_TIME, names.LOSS_BEFORE, names.LOSS_AFTER} <= set(record)


def _column(record: xr.Dataset, jumps: xr.DataArray, name: str, absent: object = np.nan) -> list:
    """Return a variable over the jumps as plain values; for an ensemble the median, logical or, or first string."""
    if name not in record:
        return [absent] * len(jumps)
    values = record[name]
    others = [dimension for dimension in values.dims if dimension != "jump"]
    if values.dtype.kind == "U":
        values = values.isel(dict.fromkeys(others, 0))
    elif others:
        values = values.any(others) if values.dtype.kind == "b" else values.median(others)
    # Reindexing is slow, and rarely needed.
    if not np.array_equal(values["jump"], jumps):
        values = values.reindex(jump=jumps)
    return values.to_numpy().tolist()
