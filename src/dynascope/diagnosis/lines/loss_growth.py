"""The growth of the loss of a run, which shows whether training diverged."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dynascope.diagnosis.run_facts import RunFacts
from dynascope.prediction.lazy_or_rich.labels import UNSTABLE

__all__ = ["LossGrowth", "loss_growth"]

_RECOVERED = 0.5  # a run that ends below this share of its initial loss has recovered from a rise


class LossGrowth(NamedTuple):
    """The growth of the loss.

    Attributes:
        largest: The largest loss divided by the initial loss; ∞ if a loss is not finite, NaN if there is no loss.
        step: The step of the row in which the loss was largest or first not finite; −1 if there is no loss.
        final: The last finite loss, divided by the initial loss; NaN if there is no loss.
        on_reference: Whether the losses are those of the reference batch, which do not vary with the batch.
    """

    largest: float
    step: int
    final: float
    on_reference: bool

    @property
    def diverged(self) -> bool:
        """Whether a loss was not finite, or exceeded the initial loss by the factor of `regime`.

        The losses of small batches can differ by this factor. A run without losses on the reference batch has therefore
        not diverged if it ends below half of its initial loss.
        """
        lasting = self.on_reference or math.isinf(self.largest) or self.final > _RECOVERED
        return self.largest > UNSTABLE and lasting

    @property
    def failed(self) -> bool:
        """Whether the loss rose by half or more and did not recover: it ended near or above its initial value."""
        return self.largest > 1.5 and self.final > 0.9


def loss_growth(run: RunFacts) -> LossGrowth:
    """Return the growth of the loss on the reference batch, or else of the training loss, from its first value.

    Example:
        >>> from dynascope.results import make_record
        >>> mean, largest = (["step"], [np.nan, 2.0, 3.0]), (["step"], [np.nan, 2.0, 9.0])
        >>> record = make_record({"mean_loss": mean, "max_loss": largest}, {"step": [0, 1, 10]})
        >>> loss_growth(RunFacts(record))
        LossGrowth(largest=4.5, step=10, final=1.5, on_reference=False)
    """
    record, reference = run.record, run.known("reference_loss")
    if "mean_loss" not in record:
        return LossGrowth(math.nan, -1, math.nan, on_reference=False)
    mean, steps = record["mean_loss"].to_numpy().astype(float), record["step"].to_numpy()
    largest = np.fmax(mean, record["max_loss"].to_numpy()) if "max_loss" in record else mean
    counts = record["loss_count"].to_numpy() if "loss_count" in record else np.zeros(len(steps))
    broken = np.isinf(largest) | ((counts > 0) & ~np.isfinite(mean))
    on_reference = reference is not None and len(reference) > 1
    if reference is not None and on_reference:
        steps_of_losses, losses = reference["step"].to_numpy(), reference.to_numpy().astype(float)
        highest = losses
    else:
        finite = np.isfinite(mean)
        steps_of_losses, losses, highest = steps[finite], mean[finite], largest[finite]
    initial = losses[0] if len(losses) else math.nan
    final = float(losses[-1] / initial) if initial > 0 else math.nan
    if broken.any():
        return LossGrowth(math.inf, int(steps[int(np.argmax(broken))]), final, on_reference)
    if not initial > 0:
        return LossGrowth(math.nan, -1, math.nan, on_reference)
    place = int(np.argmax(highest))
    return LossGrowth(float(highest[place] / initial), int(steps_of_losses[place]), final, on_reference)
