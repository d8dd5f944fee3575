"""The definition of lazy and rich training by the movement of the neural tangent kernel (NTK)."""

from __future__ import annotations

from typing import Literal, NamedTuple

from dynascope.validation.bounded_scalars import NonNegativeFloat

__all__ = [
    "DEFINITION",
    "DELAYED",
    "FITTED",
    "LAZY",
    "RICH",
    "RUN_LAZY",
    "RUN_RICH",
    "UNSTABLE",
    "Label",
    "Movement",
    "label_of",
    "label_of_run",
]

Label = Literal["lazy", "rich", "delayed rich", "unstable", "undecided"]

FITTED = 0.9  # fraction of the removable loss that is gone when the kernel is measured
LAZY, FROZEN, RICH = 0.02, 0.002, 0.05  # kernel distances
LEAST_RATIO, MOST_RATIO = 1.5, 2.0  # ratios of kernel distances at α and 2α
UNSTABLE = 4.0  # ratio of the largest loss to the initial loss
DELAYED = 1 / 3  # ratio of the kernel distance at 90 % to the final one
RUN_LAZY, RUN_RICH = 0.01, 0.1  # kernel distances of a single run

DEFINITION = (
    f"lazy: S ≤ {LAZY:g} and S(α)/S(2α) ≥ {LEAST_RATIO:g}, or S ≤ {FROZEN:g}; "
    f"rich: S ≥ {RICH:g} and S(α)/S(2α) < {MOST_RATIO:g}"
)


class Movement(NamedTuple):
    """How far the NTK moves in one training run.

    Attributes:
        fitted: S = 1 − ⟨K₀, K⟩/(‖K₀‖‖K‖) between the NTKs at the start and when 90 % of the loss is gone; NaN if the
            loss does not fall.
        final: S between the NTKs at the start and at the end of training.
        growth: The largest loss relative to the initial loss.
    """

    fitted: float
    final: float
    growth: float = 1.0


def label_of(run: Movement, doubled: Movement) -> Label:
    """Classify a training run by the kernel movement at the output scales α and 2α.

    Args:
        run: The run at the output scale α.
        doubled: The run at 2α, with the loss divided by the square of the output scale.

    Example:
        >>> label_of(Movement(0.01, 0.01), Movement(0.003, 0.003)), label_of(Movement(0.3, 0.3), Movement(0.25, 0.3))
        ('lazy', 'rich')
        >>> label_of(Movement(0.01, 0.4), Movement(0.003, 0.35))
        'delayed rich'
    """
    if run.growth > UNSTABLE:
        return "unstable"
    if _is_rich(run.fitted, doubled.fitted):
        return "rich"
    if _is_rich(run.final, doubled.final) and run.fitted < DELAYED * run.final:
        return "delayed rich"
    if run.fitted <= FROZEN or (run.fitted <= LAZY and run.fitted >= LEAST_RATIO * doubled.fitted):
        return "lazy"
    return "undecided"


def _is_rich(distance: float, doubled: float) -> bool:
    return distance >= RICH and distance < MOST_RATIO * doubled


def label_of_run(distance: NonNegativeFloat) -> Literal["lazy", "rich", "undecided"]:
    """Classify a single recorded run by its kernel distance alone, with a wider undecided band than `label_of`.

    Args:
        distance: S between the NTKs at the start and when 90 % of the loss is gone.

    Example:
        >>> label_of_run(0.005), label_of_run(0.05), label_of_run(0.2)
        ('lazy', 'undecided', 'rich')
    """
    if distance <= RUN_LAZY:
        return "lazy"
    return "rich" if distance >= RUN_RICH else "undecided"
