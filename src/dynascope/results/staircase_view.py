"""The record of a staircase as its readers see it: columns over the jumps, and one row for each jump."""

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
_KINDS = 3  # reasons in a sentence
_SHORT = 30  # letters of what is said again


@dataclasses.dataclass(frozen=True)
class SeenJump:
    """What was observed of a predicted jump.

    Attributes:
        time: Gradient-flow time; NaN if the jump was not reached.
        time_error: Predicted over observed time, less one.
        loss_before: Loss of the plateau before it.
        loss_after: Loss of the plateau after it.
        status: "judged"; "slow", if theory knows its time only roughly; "unclear", if a user's curve does not
            tell it; or "not due", if the run ended before.
        slope: Difference of its times at two scales over that of the units of accelerated time; None for one scale.
    """

    time: float
    time_error: float
    loss_before: float
    loss_after: float
    status: str
    slope: float | None


@dataclasses.dataclass(frozen=True)
class Jump:
    """One jump of a predicted staircase. Numbers that the record does not hold are NaN, words are empty.

    Attributes:
        number: From one.
        time: Gradient-flow time at the scale of the record.
        accelerated_time: Limit of the time over the unit of accelerated time.
        loss_before: Loss of the plateau before it.
        loss_after: Loss of the plateau after it.
        learned: What is learned at it.
        slow: Whether its time approaches the limit only slowly, so that it is not judged.
        reason: Why it is slow.
        seen: What was observed of it, if the record is compared with an observation.
        step: The step of an optimiser at which it comes, where a learning rate was said.
        epoch: The epoch, where a batch size was said.
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
        """Whether it is "judged", "slow" or "not due", where there is an observation; else whether it can be judged."""
        if self.seen is not None:
            return self.seen.status
        return names.SLOW if self.slow else names.JUDGED


class SeedJump(NamedTuple):
    """A jump over many draws of the weights.

    Attributes:
        number: From one.
        seen: How many draws have it.
        median: Of its times.
        earliest: Of them.
        latest: Of them.
        learned: How many draws learn what.
    """

    number: int
    seen: int
    median: float
    earliest: float
    latest: float
    learned: dict[str, int]


@dataclasses.dataclass(frozen=True)
class StaircaseView:
    """The record of a staircase for its readers.

    Attributes:
        record: The prediction, with at least the times and the losses before and after each jump.
        residual: What `compare` found of it, if an observation is there.

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
        """Limit of each time over the unit of accelerated time."""
        return self.record[names.ACCELERATED_TIME].to_numpy()

    @property
    def levels(self) -> Float[np.ndarray, " level"]:
        """Loss of each plateau; the first is the initial loss, NaN if the record knows neither it nor a jump."""
        before, after = (self.record[name].to_numpy() for name in (names.LOSS_BEFORE, names.LOSS_AFTER))
        first = before[:1] if len(before) else [float(self.record.attrs.get(names.INITIAL_LOSS, np.nan))]
        return np.append(first, after)

    @property
    def slow(self) -> Bool[np.ndarray, "*members jump"]:
        """Whether each jump approaches its limit only slowly."""
        return self.record[names.SLOW].to_numpy() if names.SLOW in self.record else np.zeros(self.times.shape, bool)

    @property
    def time_uncertainty(self) -> Float[np.ndarray, " jump"] | None:
        """How far each time may be off at the scale of the record, relatively, if that is known."""
        return self._column_or_none(names.TIME_UNCERTAINTY)

    @property
    def level_uncertainty(self) -> Float[np.ndarray, " jump"] | None:
        """How far each loss after a jump may be off, over the initial loss; infinite where nothing is known of it."""
        return self._column_or_none(names.LEVEL_UNCERTAINTY)

    @property
    def curve(self) -> xr.DataArray | None:
        """The loss at the scale of the record over time, if it was predicted too."""
        curve = self.record.get(names.CURVE_LOSS)
        return curve if curve is not None and curve.dims == ("time",) else None

    @property
    def settling_times(self) -> Float[np.ndarray, " jump"] | None:
        """How long after each jump its plateau is flat, if the theory knows."""
        return self._column_or_none(names.SETTLING_TIME)

    @property
    def complete(self) -> bool:
        """Whether there are no further jumps."""
        return bool(self.record.attrs.get("complete", 1))

    @property
    def exponential(self) -> bool:
        """Whether small neurons grow exponentially, so that a plateau lasts long in units of the growth time."""
        return is_exponential(**self._clock)

    @property
    def clock(self) -> str:
        """What its times count: "step" in the record of a user's curve, else "time"."""
        return "step" if self.record[names.JUMP_TIME].attrs.get("units") == STEPS else "time"

    def unit(self, scale: float | None = None) -> float:
        """The unit of accelerated time at a scale, that of the record if none is said."""
        return time_unit(float(self.record.attrs["scale"]) if scale is None else scale, **self._clock)

    @functools.cached_property
    def rows(self) -> list[Jump]:
        """The jumps one by one; of an ensemble the medians, and the words of the first member."""
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
        """The share of the initial loss that a jump must explain for a row of the table."""
        return float(self.record.attrs.get("smallest_jump", _SMALLEST))

    @property
    def shown(self) -> list[Jump]:
        """The jumps that a table has rows for: those that explain enough of the initial loss, and a single other one.

        Enough is a thousandth, or what the attribute `smallest_jump` says.
        """
        least = self.smallest * self.levels[0]
        large = [row for row in self.rows if not row.loss_before - row.loss_after < least]
        return large if len(self.rows) - len(large) > 1 else self.rows

    @property
    def gathered(self) -> str:
        """A sentence on the jumps that are not shown; empty if there are none."""
        shown = {row.number for row in self.shown}
        rest = [row for row in self.rows if row.number not in shown]
        if not rest:
            return ""
        share = sum(row.loss_before - row.loss_after for row in rest) / self.levels[0]
        return f"{len(rest)} further jumps explain {number(100 * share, 2)} % of the loss together."

    @property
    def slow_sentence(self) -> str:
        """One sentence on all slow jumps and why they are slow; empty if there are none."""
        kinds = gathered_reasons([(row.number, row.reason) for row in self.rows])
        if not kinds:
            return ""
        slow = sorted(jump for jumps, _ in kinds for jump in jumps)
        one = len(slow) == 1
        subject = (
            f"Jump {slow[0]} approaches its predicted time"
            if one
            else f"Jumps {numbered(slow)} approach their predicted times"
        )
        why = [
            reason if len(kinds) == 1 else f"{reason} (jump{'s' * (len(own) > 1)} {numbered(own)})"
            for own, reason in kinds
        ]
        rest = [f"{len(kinds) - _KINDS} further reasons"] if len(kinds) > _KINDS + 1 else why[_KINDS:]
        return f"{subject} slowly and {'is' if one else 'are'} not judged: {'; '.join([*why[:_KINDS], *rest])}."

    @functools.cached_property
    def over_seeds(self) -> list[SeedJump]:
        """What many draws of the weights say of each jump; empty where there is one only."""
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
        """How many draws of the weights were predicted."""
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
            strict=True,
        )
        return [SeenJump(*row) for row in columns]


def counted_words(jump: SeedJump, *, most: int) -> str:
    """What draws learn at a jump, the most common first, with how many they are.

    Example:
        >>> counted_words(SeedJump(1, 5, 2.0, 1.0, 3.0, {"age": 3, "height": 2}), most=4)
        'age 3, height 2'
        >>> counted_words(SeedJump(1, 5, 2.0, 1.0, 3.0, {"age": 5}), most=4)
        'age'
    """
    if len(jump.learned) == 1:
        (words,) = jump.learned
        return words if len(words) <= _SHORT else "the same in all"
    told = [f"{words} {count}" for words, count in jump.learned.items()]
    return ", ".join([*told[:most], *(["…"] if len(told) > most else [])])


def is_staircase(record: xr.Dataset) -> bool:
    """Whether the record holds the times and the losses of jumps.

    Example:
        >>> from dynascope.results import make_record
        >>> is_staircase(make_record({"loss": (["time"], [1.0, 0.5])}, {"time": [0.0, 1.0]}))
        False
    """
    return {names.JUMP_TIME, names.LOSS_BEFORE, names.LOSS_AFTER} <= set(record)


def _column(record: xr.Dataset, jumps: xr.DataArray, name: str, absent: object = np.nan) -> list:
    """A variable over the jumps, as plain values: the median over an ensemble, whether any is true, the first text."""
    if name not in record:
        return [absent] * len(jumps)
    values = record[name]
    others = [dimension for dimension in values.dims if dimension != "jump"]
    if values.dtype.kind == "U":
        values = values.isel(dict.fromkeys(others, 0))
    elif others:
        values = values.any(others) if values.dtype.kind == "b" else values.median(others)
    # To put them in the order that they are in takes most of the time.
    if not np.array_equal(values["jump"], jumps):
        values = values.reindex(jump=jumps)
    return values.to_numpy().tolist()
