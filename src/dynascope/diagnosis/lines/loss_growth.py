"""The growth of the training loss of a run, which shows whether training diverged."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynascope.diagnosis.run_facts import RunFacts
from dynascope.prediction.lazy_or_rich.labels import UNSTABLE

__all__ = ["LossGrowth", "loss_growth"]


class LossGrowth(NamedTuple):
    """The growth of the training loss.

    Attributes:
        largest: The largest loss divided by the initial loss; ∞ if a loss is not finite, NaN if there is no loss.
        step: The step of the row in which the loss was largest or first not finite; −1 if there is no loss.
        final: The mean loss of the last row with a finite loss, divided by the initial loss; NaN if there is no loss.
    """

    largest: float
    step: int
    final: float

    @property
    def diverged(self) -> bool:
        """Whether a loss was not finite, or exceeded the initial loss by the factor of `regime`."""
        return self.largest > UNSTABLE

    @property
    def failed(self) -> bool:
        """Whether the loss rose by half or more and did not recover: it ended near or above its initial value."""
        return self.largest > 1.5 and self.final > 0.9


def loss_growth(run: RunFacts) -> LossGrowth:
    """Return the growth of the training loss relative to its first recorded value.

    Example:
        >>> from dynascope.results import make_record
        >>> mean, largest = (["step"], [np.nan, 2.0, 3.0]), (["step"], [np.nan, 2.0, 9.0])
        >>> record = make_record({"mean_loss": mean, "max_loss": largest}, {"step": [0, 1, 10]})
        >>> loss_growth(RunFacts(record))
        LossGrowth(largest=4.5, step=10, final=1.5)
    """
    record = run.record
    if "mean_loss" not in record:
        return LossGrowth(math.nan, -1, math.nan)
    mean, steps = record["mean_loss"].to_numpy().astype(float), record["step"].to_numpy()
    largest = np.fmax(mean, record["max_loss"].to_numpy()) if "max_loss" in record else mean
    counts = record["loss_count"].to_numpy() if "loss_count" in record else np.zeros(len(steps))
    broken = np.isinf(largest) | ((counts > 0) & ~np.isfinite(mean))
    finite = mean[np.isfinite(mean)]
    initial = finite[0] if len(finite) else math.nan
    final = float(finite[-1] / initial) if initial > 0 else math.nan
    if broken.any():
        return LossGrowth(math.inf, int(steps[int(np.argmax(broken))]), final)
    if not initial > 0:
        return LossGrowth(math.nan, -1, math.nan)
    place = int(np.nanargmax(largest))
    return LossGrowth(float(largest[place] / initial), int(steps[place]), final)
