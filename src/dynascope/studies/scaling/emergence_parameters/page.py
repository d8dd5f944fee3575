"""Figures and text of the study `emergence-parameters`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent
from dynascope.studies.scaling.skill_needs_page import claim_chart, half_amounts, half_chart, strength_chart

if TYPE_CHECKING:
    from dynascope.studies.scaling.emergence_parameters.study import EmergenceParameters

__all__ = ["figures", "meaning"]


def figures(study: EmergenceParameters, result: Comparison) -> list[Chart]:
    """The figures: strengths, required numbers of neurons, claims, and the solvable model."""
    setting = study.setting
    strengths = (
        f"Strength of each skill in networks of N neurons after training, with standard errors over {setting.runs} "
        "networks. Dashed curves show the forecast. The forecast assigns to each skill, the most frequent first, the "
        "number of neurons that networks need to learn a single skill."
    )
    return [
        strength_chart("neurons", strengths),
        half_chart("neurons", result),
        claim_chart(),
        Chart(
            "basis_strength",
            "neurons",
            f"Strengths in the solvable model, in which a skill is a sum of {setting.features} features and each "
            "neuron represents one feature: trained (points) and exact law (dashed).",
            title="Strength of the skills in the solvable model",
            points=True,
        ),
    ]


def meaning(study: EmergenceParameters, result: Comparison) -> str:
    """Summarise the measured and forecast numbers of neurons that skills need."""
    setting, swapped = study.setting, result.observed["out_of_order"].max()
    return (
        f"Small two-layer networks are trained on {setting.skills} skills of decreasing frequency, each the parity of "
        f"{setting.relevant_bits} input bits. Theory predicts that neurons are assigned to the most frequent skill "
        "until it is learned and then to the next one; the number of neurons per skill is calibrated on networks "
        "trained on a single skill. On average, "
        f"{half_amounts(result, 'neurons', setting.neurons)}. Individual networks can deviate from this order: the "
        "fraction of networks in which a rarer skill is clearly stronger than a more frequent one reaches "
        f"{percent(swapped)}."
    )
