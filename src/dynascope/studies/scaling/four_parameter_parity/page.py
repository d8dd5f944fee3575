"""Figures and text of the study `four-parameter-parity`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.scaling.four_parameter_parity.study import FourParameterParity

__all__ = ["figures", "meaning"]


def figures(study: FourParameterParity, result: Comparison) -> list[Chart]:
    """The strength of the skill and of its parts, the half-saturation times and the loss."""
    return [
        Chart(
            ("mode_strength", "strength", "multilinear_strength"),
            "time",
            f"Strength of the parity over time, from the initialisation of scale {rounded(study.scales[-1])}: the "
            "parts of the three neurons (modes 1, 2 and 3) and their sum. The dashed curve labelled “single mode” is "
            "the logistic curve of the multilinear model; it is shown and not judged.",
            words=("", "sum", "single mode"),
            places={"scale": (-1,)},
            title="Strength of the skill and of its three parts",
            y_label="strength of the skill (1: learned)",
        ),
        Chart(
            "half_saturation_time",
            "scale",
            "Time at which each neuron first reaches half of its final strength, over the scale of the initial "
            "weights. For small scales the time grows linearly with the logarithm of the scale.",
            log="x",
            title="Half-saturation times of the neurons",
            points=True,
        ),
        Chart(
            "loss",
            "time",
            "Loss over time, one curve for each scale of the initial weights. Theory predicts an exponential decay "
            "after the last neuron has learned its part.",
            decades=4,
            log="y",
            title="Loss",
        ),
    ]


def meaning(study: FourParameterParity, result: Comparison) -> str:
    """Why the skill saturates more slowly than a single mode, with the half-saturation times."""
    observed, predicted = (
        ", ".join(rounded(side["half_saturation_time"].isel(scale=-1).sel(mode=mode)) for mode in (1, 2, 3))
        for side in (result.observed, result.predicted)
    )
    return (
        "A network of three neurons with tied weights has four parameters. It is trained on all inputs of three bits "
        "to output their parity: whether the number of ones is even or odd. From the initialisation of scale "
        f"{rounded(study.scales[-1])}, its three neurons reach half of their final strength at the times {observed}. "
        f"The equations of the four parameters predict {predicted}. Where these times differ, the skill as a whole "
        "saturates more slowly than a single mode. A forecast from a single-mode curve can then match the rise of a "
        "skill but not its saturation. This example is small enough to solve; in larger networks a skill has many "
        "parts, and they are not known beforehand."
    )
