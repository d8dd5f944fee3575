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
    """The change of weights and charges, the effect of ε where a network has it, and the loss."""
    charts = [
        Chart(
            ("moved", "drift"),
            "time",
            "Distance from the initial weights, relative to their norm, and largest change of a charge, relative to "
            "the squared norm of the weights. The solver causes the change of the charges, and its tolerance is larger "
            'at the kinks of ReLU. In the network "epsilon", the ε > 0 of the normalisation causes the change.',
            words=("weights", "charges"),
            log="y",
            title="Change of weights and charges",
            y_label="relative change",
        ),
        Chart("loss", "time", "Loss of each network.", log="y", title="Training loss"),
    ]
    effect = Chart(
        "epsilon_change",
        "time",
        f"Change of the squared norms of the channels before a normalisation with ε = {rounded(study.epsilon)}. The "
        "theory predicts it (dashed) as the integral of 4 ε ∂L/∂ε along the run.",
        symbols={"neuron": "channel"},
        title="Charges moved by ε",
        y_label="change of the squared norm",
    )
    return [charts[0], effect, charts[1]] if "epsilon_change" in result.observed else charts


def meaning(study: Conservation, result: Comparison) -> str:
    """How far weights moved, how closely charges kept their values, and what ε does."""
    moved = result.observed["moved"].isel(time=-1)
    corrected = ""
    if "epsilon_change" in result.observed:
        corrected = (
            " The small number ε that implementations add to the variance in a normalisation breaks the symmetry and "
            "moves its charges slowly. This error is computed after subtracting the predicted effect of ε."
        )
    return (
        "Gradient flow conserves a charge for each linear symmetry of a network with a symmetric generator, for any "
        "data. For example, the outputs do not change if the incoming weights of a ReLU neuron are scaled up and its "
        "outgoing weights down, and the difference of their squared norms is conserved. Training moved the weights by "
        f"{_range(moved)} of their initial norm, while the charges kept their initial "
        f"values with a relative error of {rounded(result.quantities['charges'].error)}.{corrected} These conservation "
        "laws hold for gradient flow; steps of finite size also move the charges."
    )


def _range(shares: xr.DataArray) -> str:
    least, most = percent(shares.min()), percent(shares.max())
    return least if least == most else f"{least} to {most}"
