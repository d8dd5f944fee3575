"""How wide a network must be for its training to reach a loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynascope.flows.steps.descend import descend
from dynascope.protocols import Learnable

__all__ = ["smallest_width"]


def smallest_width(
    networks: Callable[[int], Sequence[Any]],
    task: Learnable,
    target: float,
    *,
    smallest: int,
    largest: int,
    steps: int,
    **options: Any,
) -> tuple[int, float]:
    """The smallest width, by doubling, at which the best of several networks reaches a loss, and the loss there.

    Args:
        networks: Those of a width.
        task: What they learn.
        target: The loss to reach.
        smallest: Width at which to start.
        largest: Width at which to stop; where none reaches the loss the width is 0.
        steps: Of each training.
        **options: Of `flows.descend`.
    """
    loss, width = float("inf"), smallest
    while width <= largest:
        record = descend(networks(width), task, steps=steps, record_steps=[0, steps], **options)
        loss = float(record["loss"].isel(step=-1).min())
        if loss <= target:
            return width, loss
        width *= 2
    return 0, loss
