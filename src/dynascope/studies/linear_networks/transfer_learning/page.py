"""Figures and text of the study `transfer-learning`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.linear_networks.transfer_learning.study import TransferLearning

__all__ = ["figures", "meaning"]


def figures(study: TransferLearning, result: Comparison) -> list[Chart]:
    """The figures: loss and weakest mode of the new readout, and both losses if all layers are trained."""
    floor = result.predicted["floor"].isel(balance=-1)
    return [
        Chart(
            "loss",
            log="y",
            decades=8,
            title="Loss of a new readout on old features",
            caption="Loss of a new readout trained on the frozen first layer. With larger weights in the second layer "
            "(λ > 0), the loss can converge to a floor, because the first layer has lost the directions that the old "
            f"task did not need. At the largest λ, the predicted floor is {rounded(floor)}. With larger weights in the "
            "first layer (λ < 0), there is no floor.",
        ),
        Chart(
            "mode_strength",
            places={"mode": (-1,)},
            title="Learning along the least used direction",
            caption="Learned fraction of the new target along the input direction that the old task used least (or "
            "did not use at all).",
        ),
        Chart(
            ("old_loss", "new_loss"),
            log="y",
            places={"balance": (0, -1)},
            decades=8,
            title="All layers trained on both tasks",
            caption="Losses on the old and the new task for the smallest and the largest λ, with all layers trained on "
            "both tasks. The old task is already learned at t = 0. While the network learns the new task, the loss on "
            f"the old task is at most {rounded(result.observed['old_loss'].max())} for every λ.",
            words=("old task", "new task"),
            y_label="loss",
        ),
    ]


def meaning(study: TransferLearning, result: Comparison) -> str:
    """Summarise the learned fraction along the direction that the old task used least."""
    observed, predicted = (
        side["mode_strength"].isel(mode=-1, time=-1, balance=[0, -1]) for side in (result.observed, result.predicted)
    )
    largest = rounded(study.largest_balance)
    return (
        f"Linear networks were trained to convergence on a task that uses {study.rank} of {study.dimension} input "
        "directions. Then a new readout was trained on their frozen first layer, for a target that uses all directions "
        f"equally. Along the direction that the old task used least, the readout learned {percent(observed[0])} of the "
        f"target at λ = −{largest} (predicted: {percent(predicted[0])}) and {percent(observed[1])} at λ = {largest} "
        f"(predicted: {percent(predicted[1])}). According to the theory, a network with larger weights in the first "
        "layer (λ < 0) keeps features that its task does not need but that a new task can use. A network with larger "
        "weights in the second layer (λ > 0) keeps only the features of its task. The theory assumes that training on "
        "the old task has converged."
    )
