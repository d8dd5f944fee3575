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
    """The strengths, the required samples, the claims and the model of the theory."""
    setting = study.setting
    strengths = (
        f"Strength of each skill after training on D samples, with standard errors over {setting.runs} training sets. "
        "The dashed curve is the forecast. It uses only the frequencies of the skills and the number of samples that "
        "networks need to learn one skill alone."
    )
    return [
        strength_chart("samples", strengths, log="x"),
        half_chart("samples", result, log="y"),
        claim_chart(),
        Chart(
            "basis_strength",
            "samples",
            f"The model of the theory, in which a skill is a sum of {setting.features} generic features: mean over "
            f"{setting.draws} training sets (points) and the exact law (dashed).",
            log="x",
            title="Strength of the skills in the theory's model",
            points=True,
        ),
    ]


def meaning(study: EmergenceData, result: Comparison) -> str:
    """How many samples each skill needs, measured and forecast."""
    setting, left = study.setting, result.observed["training_loss"].max()
    return (
        f"Two-layer networks are trained for {setting.steps} steps on fixed training sets, after which their training "
        f"loss is at most {percent(left)} of its value for the zero function. Each sample requires one skill; the "
        f"number of skills is {setting.skills}, and each is less frequent than the one before. A skill is the parity "
        f"of {setting.relevant_bits} input bits. Theory predicts that a skill is learned in proportion to its number "
        "of samples and calibrates the number that it needs on networks that learn one skill alone. Networks need "
        f"{half_amounts(result, 'samples', setting.samples)}. In a network the samples of one skill interfere with the "
        "other skills; the theory does not include this interference. The verdict states whether networks learn half "
        "of every skill at a number of samples closer to the forecast for this skill than to that for any other."
    )
