"""Whether a recorded run was lazy or rich, by the movement of its neural tangent kernel (NTK)."""

from __future__ import annotations

import math
from typing import NamedTuple

import xarray as xr

from dynascope.diagnosis.known_values import known_losses, known_values
from dynascope.diagnosis.line import Line
from dynascope.diagnosis.lines.loss_growth import loss_growth
from dynascope.diagnosis.run_facts import RunFacts
from dynascope.prediction.lazy_or_rich.labels import (
    DELAYED,
    FITTED,
    RUN_LAZY,
    RUN_RICH,
    UNSTABLE,
    Label,
    label_of_run,
)
from dynascope.results.numbers import percent, rounded

__all__ = ["RunRegime", "regime", "run_regime"]

_TOPIC = "regime"
_LEAST = 0.1  # share of the initial loss by which it must fall; otherwise, little was learned in either way
_THEORY = (
    "Lazy training keeps the NTK constant (arXiv:1812.07956). The rule for one run covers any network that is trained "
    "by gradient descent until most of the decrease of the loss is over."
)


class RunRegime(NamedTuple):
    """The regime of a recorded run.

    Attributes:
        label: The label by the rule for one run.
        distance: S, the kernel distance when 90 % of the decrease of the loss was over.
        final: The kernel distance at the end.
        step: The step of `distance`.
        kernel: "kernel", or "pseudo-kernel" if only the kernel of the sum of the outputs was recorded.
        halves: Distance between the initial pseudo-kernels of two halves of the examples, for comparison; NaN if it was
            not recorded.
    """

    label: Label
    distance: float
    final: float
    step: int
    kernel: str
    halves: float

    @property
    def sentence(self) -> str:
        """The label, with the numbers and thresholds."""
        named = "undecided between lazy and rich" if self.label == "undecided" else self.label
        sentence = (
            f"Training was {named}, judged by one run: when 90 % of the decrease of the loss was over (step "
            f"{self.step}), the {self.kernel} was at distance {rounded(self.distance, 2)} (lazy: at most {RUN_LAZY:g}; "
            f"rich: at least {RUN_RICH:g})"
        )
        if self.label == "delayed rich":
            sentence += f", and at the end at {rounded(self.final, 2)}"
        if not math.isnan(self.halves):
            sentence += (
                "; the pseudo-kernels of two halves of the examples were initially at distance "
                f"{rounded(self.halves, 2)}"
            )
        if self.kernel == "pseudo-kernel" and self.label == "undecided":
            sentence += (
                ". The pseudo-kernel, of the sum of the outputs, can move less than the kernel of all outputs (probe "
                '"exact_kernel")'
            )
        return f"{sentence}."


def run_regime(record: xr.Dataset) -> RunRegime | None:
    """Classify a recorded run; None if the loss fell by less than 10 %, or if the kernel was not measured afterwards.

    Args:
        record: The record of a run, over `step`.
    """
    kernel, distance = "kernel", known_values(record, "exact_kernel_distance")
    if distance is None:
        kernel, distance = "pseudo-kernel", known_values(record, "kernel_distance")
    loss, halves = known_losses(record), known_values(record, "kernel_distance_of_halves")
    if loss is None or distance is None or len(distance) < 2 or not loss[-1] < loss[0]:
        return None
    lowest = float(loss.min())
    if float(loss[0]) - lowest < _LEAST * abs(float(loss[0])):
        return None
    gone = loss["step"].to_numpy()[(loss <= lowest + (1 - FITTED) * (float(loss[0]) - lowest)).to_numpy()][0]
    later = distance[distance["step"].to_numpy() >= gone]
    if not len(later):
        return None
    moved, final = max(float(later[0]), 0.0), float(distance[-1])
    label: Label = label_of_run(moved)
    if label != "rich" and final >= RUN_RICH and moved < DELAYED * final:
        label = "delayed rich"
    null = math.nan if halves is None else float(halves[0])
    return RunRegime(label, moved, final, int(later["step"][0]), kernel, null)


def regime(run: RunFacts) -> Line:
    """Tell whether training was lazy or rich, and how to change that."""
    if loss_growth(run).diverged:
        sentence = f"The loss exceeded {UNSTABLE:g} times its initial value, so training was neither lazy nor rich."
        return Line(_TOPIC, "unstable", sentence, theory=_THEORY, weight=0)  # the line of the stability says more
    found = run_regime(run.record)
    if found is None:
        sentence = (
            f"Whether training was lazy or rich was not measured: this requires a loss that falls by "
            f"{percent(_LEAST)} or more, and two rows with the kernel (preset standard)."
        )
        return Line(_TOPIC, "not measured", sentence, theory=_THEORY)
    return Line(
        _TOPIC,
        found.label,
        found.sentence,
        found.distance,
        RUN_LAZY if found.label == "lazy" else RUN_RICH,
        _THEORY,
        _action(found, run.criterion),
        1 if found.label == "undecided" else 2,
    )


def _action(found: RunRegime, criterion: str) -> str:
    if found.label != "lazy":
        return ""
    if "CrossEntropy" in criterion or "NLL" in criterion:
        return "To make training rich, use smaller initial weights; `dynascope.regime` measures how much smaller."
    # In lazy training of smooth networks, S falls as 1/α² with the output scale α.
    factor = math.sqrt(max(found.distance, 1e-12) / RUN_RICH)
    return (
        f"To make training rich, multiply the outputs by about {rounded(factor, 1)} and divide the loss by the square "
        "of this factor (`interventions.regime_dial`); `dynascope.regime` measures the factor."
    )
