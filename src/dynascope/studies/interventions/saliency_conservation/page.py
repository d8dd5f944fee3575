"""Figures and text of the study `saliency-conservation`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.interventions.saliency_conservation.study import SaliencyConservation

__all__ = ["figures", "meaning"]


def figures(study: SaliencyConservation, result: Comparison) -> list[Chart]:
    """The figures: both laws, and the three violations."""
    return [
        Chart(
            "incoming_saliency",
            "unit",
            "Saliency of the incoming weights and the bias of every hidden unit of all networks (points), and the "
            "saliency of its outgoing weights (dashed), which theory states to be equal.",
            title="Both sides of every unit",
            points=True,
        ),
        Chart(
            "cut_saliency",
            "cut",
            "Saliency of every cut of all networks, including skip connections and the biases at or after the cut "
            "(points), and ⟨∂R/∂y, y⟩ at the outputs (dashed).",
            title="Every cut",
            points=True,
        ),
        Chart(
            "grasp_difference",
            "unit",
            "Difference of the GraSP scores of the incoming and of the outgoing weights of every unit (points), and "
            "the predicted difference ‖g_out‖² − ‖g_in‖² (dashed).",
            title="Violation by GraSP",
            points=True,
        ),
        Chart(
            "tanh_difference",
            "tanh_unit",
            "Difference of the saliency of the incoming and of the outgoing weights of units with tanh (points), and "
            "the predicted difference Σ g (φ'(z) z − φ(z)) (dashed).",
            title="Violation by tanh",
            points=True,
        ),
        Chart(
            "running_mean_difference",
            "channel",
            "Difference of the saliency before and after a batch normalisation in evaluation mode (points), and the "
            "predicted difference Σ g γ μ/σ (dashed). Without running means μ, both sides are equal.",
            title="Violation by running means",
            points=True,
        ),
    ]


def meaning(study: SaliencyConservation, result: Comparison) -> str:
    """Summarise both laws and the violations."""
    found, errors = result.observed, result.quantities
    size = rounded(float(np.abs(found["incoming_saliency"]).max()))
    grasp, tanh, mean = (
        rounded(float(np.abs(found[f"{name}_difference"]).max())) for name in ("grasp", "tanh", "running_mean")
    )
    return (
        f"The study compares both sides of {found.sizes['unit']} units, whose saliency is up to {size} in absolute "
        f"value; the relative difference is {rounded(errors['incoming_saliency'].error)}. The saliency of "
        f"{found.sizes['cut']} cuts differs from its value at the outputs by a relative error of "
        f"{rounded(errors['cut_saliency'].error)}. A score that is conserved in this way is low on average for the "
        "weights of large layers, because every layer has the same sum. Pruning once therefore empties the largest "
        "layers first; pruning in rounds avoids this. Conservation fails for three other cases, by up to "
        f"{grasp} for the scores of GraSP, {tanh} for units with tanh, and {mean} for running means of a batch "
        "normalisation, and closed forms predict each of these differences."
    )
