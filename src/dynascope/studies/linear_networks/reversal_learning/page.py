"""Figures and text of the study `reversal-learning`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.linear_networks.reversal_learning.study import ReversalLearning

__all__ = ["figures", "meaning"]


def figures(study: ReversalLearning, result: Comparison) -> list[Chart]:
    """The figures: the strength of the weakest mode over time, and the reversal times against the imbalance."""
    # Negative balances cannot be drawn on a logarithmic axis.
    straight = " On this logarithmic axis, the points approach straight lines as λ → 0." if study.sign > 0 else ""
    return [
        Chart(
            "mode_strength",
            places={"mode": (-1,)},
            title="Strength of the weakest mode",
            caption="Strength of the weakest mode after all targets have changed sign. The mode must cross zero, where "
            "its gradient vanishes if the layers are balanced. The closer λ is to 0, the longer the mode stays near "
            "zero.",
        ),
        Chart(
            "reversal_time",
            over="balance",
            log="x" if study.sign > 0 else "",
            title="Reversal time",
            caption="Time at which each mode crosses zero, against the imbalance λ. The theory predicts that this time "
            f"grows as log(1/|λ|).{straight}",
            points=True,
        ),
    ]


def meaning(study: ReversalLearning, result: Comparison) -> str:
    """Summarise the reversal times of the networks with the largest and the smallest imbalance."""
    sizes = np.abs(result.observed["balance"].to_numpy())
    observed, predicted = (side["reversal_time"] for side in (result.observed, result.predicted))
    least = {"balance": int(np.argmax(sizes))}
    most = {"balance": int(np.argmin(sizes))}
    return (
        "Linear networks were trained to convergence on a task, and then on the same task with the sign of all targets "
        "changed. Each mode must cross zero, which is a saddle of the loss: exactly balanced networks (λ = 0) would "
        f"converge to this saddle. In the network with the largest imbalance, |λ| = {rounded(study.largest_balance)}, "
        f"the first mode crosses zero at t = {rounded(observed.isel(least).min())} (predicted: "
        f"{rounded(predicted.isel(least).min())}). In the network with the smallest imbalance, |λ| = "
        f"{rounded(study.smallest_balance)}, the last mode crosses zero at t = {rounded(observed.isel(most).max())} "
        f"(predicted: {rounded(predicted.isel(most).max())}). According to the theory, a small imbalance between the "
        "layers is enough for a network to relearn quickly. The theory describes gradient flow; the noise of "
        "stochastic gradients would also move a network away from the saddle."
    )
