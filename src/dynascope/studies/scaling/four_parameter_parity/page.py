"""Figures and text of the study `four-parameter-parity`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.scaling.four_parameter_parity.study import FourParameterParity

__all__ = ["figures", "meaning"]


def figures(study: FourParameterParity, result: Comparison) -> list[Chart]:
    """The figures: strength of the skill and of its parts, half-saturation times, and loss."""
    return [
        Chart(
            ("mode_strength", "strength", "multilinear_strength"),
            "time",
            f"Strength of the parity over time for initial weights of scale {rounded(study.scales[-1])}: the "
            "contributions of the three neurons (modes 1, 2 and 3) and their sum. The dashed curve labelled “single "
            "mode” is the logistic curve of the multilinear model, which does not affect the verdict.",
            words=("", "sum", "single mode"),
            places={"scale": (-1,)},
            title="Strength of the skill and of its three parts",
            y_label="strength of the skill (1: learned)",
        ),
        Chart(
            "half_saturation_time",
            "scale",
            "Time at which each neuron first reaches half of its final strength, against the scale of the initial "
            "weights. At small scales, the time is linear in the logarithm of the scale.",
            log="x",
            title="Half-saturation times of the neurons",
            points=True,
        ),
        Chart(
            "loss",
            "time",
            "Loss over time, one curve for each scale of the initial weights. Theory predicts an exponential decay "
            "once the last neuron has learned its part.",
            decades=4,
            log="y",
            title="Loss",
        ),
    ]


def meaning(study: FourParameterParity, result: Comparison) -> str:
    """Explain why the skill saturates more slowly than a single mode, with the half-saturation times."""
    observed, predicted = (
        "{}, {} and {}".format(*map(rounded, side["half_saturation_time"].isel(scale=-1).sel(mode=[1, 2, 3])))
        for side in (result.observed, result.predicted)
    )
    return (
        "A network of three neurons with four parameters learns the parity of three bits. From initial weights of "
        f"scale {rounded(study.scales[-1])}, the three neurons reach half of their final strength at times {observed}; "
        f"the equations for the four parameters predict {predicted}. If these times differ, the skill as a whole "
        "saturates more slowly than a single mode. A forecast from a single-mode curve can therefore match the rise of "
        "a skill but not its saturation. In larger networks, a skill has many parts, which are not known in advance."
    )
