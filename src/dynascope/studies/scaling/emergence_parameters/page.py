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
    """The strengths, the required neurons, the claims and the model of the theory."""
    setting = study.setting
    strengths = (
        f"Strength of each skill in networks of N neurons after training, with standard errors over {setting.runs} "
        "networks. The dashed curve is the forecast. It uses the number of neurons that networks need to learn one "
        "skill alone and assigns neurons to the most frequent skill first."
    )
    return [
        strength_chart("neurons", strengths),
        half_chart("neurons", result),
        claim_chart(),
        Chart(
            "basis_strength",
            "neurons",
            f"The model of the theory, in which a skill is a sum of {setting.features} features and a neuron "
            "represents one feature: trained (points) and exact law (dashed).",
            title="Strength of the skills in the theory's model",
            points=True,
        ),
    ]


def meaning(study: EmergenceParameters, result: Comparison) -> str:
    """How many neurons each skill needs, measured and forecast."""
    setting, swapped = study.setting, result.observed["out_of_order"].max()
    return (
        "Two-layer networks of few neurons are trained on multitask sparse parity. The number of skills is "
        f"{setting.skills}, and each is less frequent than the one before. A skill is the parity of "
        f"{setting.relevant_bits} input bits. Theory predicts that neurons go to the most frequent skill until it is "
        "learned and then to the next one. It calibrates the number of neurons per skill on networks that learn one "
        f"skill alone. On average, networks need {half_amounts(result, 'neurons', setting.neurons)}. Single networks "
        "can deviate from this order: the share of networks in which a rarer skill is clearly stronger than a more "
        f"frequent one is at most {percent(swapped)} at any width. The verdict states whether networks on average "
        "learn half of every skill at a number of neurons closer to the forecast for this skill than to that for any "
        "other."
    )
