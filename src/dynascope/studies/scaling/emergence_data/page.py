"""Figures and text of the study `emergence-data`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent
from dynascope.studies.scaling.skill_needs_page import claim_chart, half_amounts, half_chart, strength_chart

if TYPE_CHECKING:
    from dynascope.studies.scaling.emergence_data.study import EmergenceData

__all__ = ["figures", "meaning"]


def figures(study: EmergenceData, result: Comparison) -> list[Chart]:
    """The figures: strengths, required numbers of samples, claims, and the solvable model."""
    setting = study.setting
    strengths = (
        f"Strength of each skill after training on D samples, with standard errors over {setting.runs} training sets. "
        "Dashed curves show the forecast, which uses only the skill frequencies and the number of samples that "
        "networks need to learn a single skill."
    )
    return [
        strength_chart("samples", strengths, log="x"),
        half_chart("samples", result, log="y"),
        claim_chart(),
        Chart(
            "basis_strength",
            "samples",
            f"Strengths in the solvable model, in which a skill is a sum of {setting.features} generic features: mean "
            f"over {setting.draws} training sets (points) and the exact law (dashed).",
            log="x",
            title="Strength of the skills in the solvable model",
            points=True,
        ),
    ]


def meaning(study: EmergenceData, result: Comparison) -> str:
    """Summarise the measured and forecast numbers of samples that skills need."""
    setting, left = study.setting, result.observed["training_loss"].max()
    return (
        f"Two-layer networks are trained on fixed training sets with {setting.skills} skills of decreasing frequency, "
        f"each the parity of {setting.relevant_bits} input bits. Their final training loss is at most {percent(left)} "
        "of the loss of the zero function. Theory predicts that a skill is learned in proportion to its number of "
        "samples; the number of samples needed is calibrated on networks trained on a single skill. On average, "
        f"{half_amounts(result, 'samples', setting.samples)}. The theory neglects interference between samples of "
        "different skills, which increases the number of samples needed."
    )
