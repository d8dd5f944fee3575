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
            "saliency of its outgoing weights (dashed), which is equal according to the theory.",
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
            "Difference between the GraSP scores of the incoming and the outgoing weights of every unit (points), and "
            "the predicted difference ‖g_out‖² − ‖g_in‖² (dashed).",
            title="Violation by GraSP",
            points=True,
        ),
        Chart(
            "tanh_difference",
            "tanh_unit",
            "Difference between the saliency of the incoming and the outgoing weights of tanh units (points), and "
            "the predicted difference Σ g (φ'(z) z − φ(z)) (dashed).",
            title="Violation by tanh",
            points=True,
        ),
        Chart(
            "running_mean_difference",
            "channel",
            "Drop in saliency across a batch-normalisation layer in evaluation mode (points), and the "
            "predicted drop Σ g γ μ/σ (dashed). Without running means μ, saliency is conserved.",
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
        f"The saliencies of the incoming and the outgoing weights of {found.sizes['unit']} units are up to {size} in "
        f"absolute value; their relative difference is {rounded(errors['incoming_saliency'].error)}. The saliencies of "
        f"{found.sizes['cut']} cuts differ from ⟨∂R/∂y, y⟩ at the outputs y by a relative error of "
        f"{rounded(errors['cut_saliency'].error)}. A score that is conserved in this way is low on average for the "
        "weights of large layers, because every layer has the same total. One-shot pruning therefore empties the "
        f"largest layers first; pruning in rounds avoids this. Conservation fails in three other cases, by up to "
        f"{grasp} for the scores of GraSP, {tanh} for tanh units, and {mean} for batch normalisation with running "
        "means. Closed forms predict each of these differences."
    )
