"""Figures and text of the study `conservation`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import xarray as xr

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.conservation.study import Conservation

__all__ = ["figures", "meaning"]


def figures(study: Conservation, result: Comparison) -> list[Chart]:
    """The figures: change of weights and charges, drift due to ε if a network has it, and loss."""
    charts = [
        Chart(
            ("moved", "drift"),
            "time",
            "Distance of the weights from their initial values, relative to their initial norm, and largest change in "
            "a charge, relative to the squared norm of the weights. The charges change only by solver errors, which "
            "are larger "
            'at the kinks of ReLU. The exception is the network "epsilon", in which ε > 0 breaks the symmetry.',
            words=("weights", "charges"),
            log="y",
            title="Change of weights and charges",
            y_label="relative change",
        ),
        Chart("loss", "time", "Loss of each network over time.", log="y", title="Training loss"),
    ]
    effect = Chart(
        "epsilon_change",
        "time",
        "Change over time in the squared weight norm of each channel followed by a normalisation layer, for ε = "
        f"{rounded(study.epsilon)}. Theory predicts that the change equals the integral of 4 ε ∂L/∂ε along the run "
        "(dashed).",
        symbols={"neuron": "channel"},
        title="Drift of charges due to ε",
        y_label="change of the squared norm",
    )
    return [charts[0], effect, charts[1]] if "epsilon_change" in result.observed else charts


def meaning(study: Conservation, result: Comparison) -> str:
    """Summarise how far the weights moved, how well charges were conserved, and the effect of ε."""
    moved = result.observed["moved"].isel(time=-1)
    corrected = ""
    if "epsilon_change" in result.observed:
        corrected = (
            " The small constant ε in a normalisation layer breaks the symmetry, so the corresponding charges drift "
            "slowly; the predicted drift is subtracted before the error is computed."
        )
    return (
        "Gradient flow conserves a charge for each linear symmetry with a symmetric generator, whatever the data. For "
        "example, the outputs of a network do not change if the incoming weights of a ReLU neuron are scaled up and "
        "its outgoing weights are scaled down. The difference of their squared norms is therefore conserved. Training "
        f"moved the weights by {_range(moved)} of their initial norm, while the charges kept their initial values to "
        f"within a relative error of {rounded(result.quantities['charges'].error)}.{corrected} These laws hold for "
        "gradient flow; the finite steps of gradient descent change the charges."
    )


def _range(shares: xr.DataArray) -> str:
    least, most = percent(shares.min()), percent(shares.max())
    return least if least == most else f"{least} to {most}"
