"""The answer to the question whether training is lazy or rich."""

from __future__ import annotations

import dataclasses

from dynascope.prediction.lazy_or_rich.labels import (
    DEFINITION,
    FROZEN,
    LEAST_RATIO,
    MOST_RATIO,
    RUN_LAZY,
    RUN_RICH,
    Label,
)

__all__ = ["Regime", "Turn"]


@dataclasses.dataclass(frozen=True)
class Turn:
    """A turn of the dial that changes the regime.

    Attributes:
        label: The regime after the turn.
        output_scale: Factor on the outputs, with the loss divided by its square; equivalently, the targets divided by
            it. It is 1 if the learning rate or, for the cross-entropy, the scale of the initial weights is the dial.
        init_scale: Equivalent factor on all initial weights; None if the network is not known to be homogeneous. For
            the cross-entropy, the factor on all initial weights and biases at the same learning rates.
        learning_rate: Factor on the learning rate; 1 unless training is unstable.
        kernel_distance: S after the turn; None if it is estimated by a theory and not measured.
    """

    label: Label
    output_scale: float = 1.0
    init_scale: float | None = None
    learning_rate: float = 1.0
    kernel_distance: float | None = None

    def __str__(self) -> str:
        measured = "estimated" if self.kernel_distance is None else f"measured: S = {self.kernel_distance:.2g}"
        if self.learning_rate != 1:
            speed = f"{self.learning_rate:.3g} times the learning rate"
            return f"With {speed}, training is stable, and {self.label} ({measured})."
        factor = self.output_scale
        if factor == 1:
            by = f"multiply all initial weights and biases by {self.init_scale:.3g}"
            return f"To make it {self.label}, {by} ({measured})."
        by = f"multiply the outputs by {factor:.3g} and divide the loss by {factor:.3g}²"
        twins = [f"{'divide' if factor > 1 else 'multiply'} the targets by {max(factor, 1 / factor):.3g}"]
        if self.init_scale is not None:
            twins.append(f"multiply all initial weights by {self.init_scale:.3g} at matched learning rates")
        return f"To make it {self.label}, {by}, or {', or '.join(twins)} ({measured})."


@dataclasses.dataclass(frozen=True)
class Regime:
    """Whether training is lazy or rich, and what changes it.

    `print(regime)` gives the answer in sentences.

    Attributes:
        label: "lazy", "rich", "delayed rich", "unstable" or "undecided".
        theory: Name of the theory that decides; empty if training was measured, or if nothing decides.
        reason: The deciding number and its threshold, in a sentence.
        number: The deciding number; NaN if there is none.
        threshold: Its threshold.
        kernel_distance: S, the kernel distance when 90 % of the loss is gone; NaN if it was not measured.
        ratio: S(α)/S(2α); NaN if it was not measured.
        final_kernel_distance: S at the end of training.
        hamming_distance: Fraction of activation patterns that have changed when 90 % of the loss is gone; None if it
            was not measured, or if the network has no patterns.
        turns: Turns of the dial that lead to another regime, the nearest first.
        notes: Limitations of the answer.
    """

    label: Label
    theory: str
    reason: str
    number: float = float("nan")
    threshold: float = float("nan")
    kernel_distance: float = float("nan")
    ratio: float = float("nan")
    final_kernel_distance: float = float("nan")
    hamming_distance: float | None = None
    turns: tuple[Turn, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def dial(self) -> dict[str, float]:
        """The first turn, as arguments of `interventions.regime_dial`; empty if there is none.

        It is also empty if training is unstable, because the learning rate is then the dial. An undecided regime can
        have a second turn in the other direction.
        """
        if not self.turns or self.turns[0].learning_rate != 1:
            return {}
        turn = self.turns[0]
        if turn.output_scale == 1 and turn.init_scale is not None:
            return {"init_scale": turn.init_scale}
        return {"output_scale": turn.output_scale}

    def __str__(self) -> str:
        undecided = "It is undecided whether training is lazy or rich."
        lines = [undecided if self.label == "undecided" else f"Training is {self.label}.", self.reason]
        if self.hamming_distance is not None:
            lines.append(f"{100 * self.hamming_distance:.2g} % of the activation patterns have changed by then.")
        lines += map(str, self.turns)
        lines += self.notes
        return " ".join(lines)


def measured_reason(label: Label, distance: float, ratio: float, *, single: bool, centred: bool) -> str:
    """Return the sentence that states the measured numbers and thresholds."""
    moved = f"the neural tangent kernel (NTK) moves by S = {distance:.2g} until 90 % of the loss is gone"
    if single:
        rule = f"lazy: S ≤ {RUN_LAZY:g}; rich: S ≥ {RUN_RICH:g}"
        return f"Measured in one training run: {moved} ({rule})."
    trained = "Measured by training with centred outputs f − f₀" if centred else "Measured by training"
    if label == "lazy" and distance <= FROZEN:
        return f"{trained}: {moved} (lazy: S ≤ {FROZEN:g})."
    compared = f"S falls by a factor of {ratio:.2g} if the outputs are multiplied by 2"
    if label == "undecided":
        return f"{trained}: {moved}, and {compared}; {DEFINITION}."
    wanted = f"rich: S ≥ 0.05, factor < {MOST_RATIO:g}" if "rich" in label else f"lazy: factor ≥ {LEAST_RATIO:g}"
    return f"{trained}: {moved}, and {compared} ({wanted})."
