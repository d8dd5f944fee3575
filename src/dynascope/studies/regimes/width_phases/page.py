"""Figures and text of the study `width-phases`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.width_phases.study import WidthPhases

__all__ = ["figures", "meaning"]

_WIDTH = "width κ, or output multiplier"


def figures(study: WidthPhases, result: Comparison) -> list[Chart]:
    """The figures: change in the NTK against κ, fitted exponents and, if they were trained, networks on digits."""
    charts = [
        Chart(
            "log_kernel_change",
            over="scaling_parameter",
            log="x",
            title="Change in the NTK",
            caption="Change in the NTK during training, relative to its initial norm, against the scaling parameter κ: "
            "the width or, in lazy training, the output multiplier. Each line shows one parametrisation. If the line "
            "is flat, networks learn features at any width; if it falls, the NTK of wide networks stays constant. The "
            'suffix "learning" or "kernel" means that an output multiplier moves the parametrisation into that phase.',
            x_label=_WIDTH,
        ),
        Chart(
            ("kernel_exponent", "speed_exponent"),
            over="architecture",
            title="Exponents of each parametrisation",
            caption="Exponents of κ in the NTK change and in the learning speed, fitted to training. The "
            "kernel exponent is zero in the feature-learning phase and negative in the kernel phase. A speed exponent "
            "of zero means stable training; other parametrisations become stable if the learning rates also scale with "
            "κ.",
            words=("NTK change", "learning speed"),
            x_label="parametrisation",
            y_label="exponent of κ",
        ),
    ]
    if study.digits_seeds:
        charts.append(
            Chart(
                "digits_log_kernel_change",
                over="scaling_parameter",
                log="x",
                title="Change in the NTK on digits",
                caption="Mean change in the NTK of ReLU networks that classify handwritten digits (number of networks "
                f"per parametrisation: {study.digits_seeds}). No closed form is known. {_judged(result)}",
                x_label=_WIDTH,
            )
        )
    return charts


def meaning(study: WidthPhases, result: Comparison) -> str:
    """Summarise the measured and predicted range of the kernel exponents."""
    seen, predicted = (side["kernel_exponent"] for side in (result.observed, result.predicted))
    error = percent(result.quantities["kernel_exponent_maximum"].error)
    digits = f" ReLU networks also learned to classify handwritten digits. {_judged(result)}"
    return (
        "Several parametrisations of the initial weights and the output scale are in use for wide networks: NTK, mean "
        f"field, Xavier, Kaiming and lazy training. For each of these parametrisations, "
        f"{study.seeds} two-layer linear networks learned a "
        "linear function at every value of the scaling parameter κ, which is the width or, in lazy training, the "
        "output multiplier. Some parametrisations have a suffix in their name: an output multiplier moves them into "
        'the phase in which networks learn features ("learning") or into the phase in which the NTK stays constant '
        '("kernel"). The change in the NTK '
        f"scales as a power of κ, with exponents from {rounded(seen.min())} to {rounded(seen.max())} across the "
        "parametrisations; "
        f"theory predicts {rounded(predicted.min())} to {rounded(predicted.max())}. The fitted exponents differ from "
        f"the predicted ones by at most {error} of the largest exponent. According to the theory, the parametrisation "
        "determines whether a wide network learns features, and an output multiplier can change the outcome. The "
        f"predicted exponents are exact for linear networks on a line." + (digits if study.digits_seeds else "")
    )


def _judged(result: Comparison) -> str:
    """State whether networks on digits count towards the verdict."""
    if "digits_keeps_kernel" in result.quantities:
        return "For these networks, the verdict depends only on whether the NTK stays constant."
    return "These networks do not count towards the verdict, because a fitted exponent lies halfway between the phases."
