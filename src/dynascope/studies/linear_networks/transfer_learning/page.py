"""Figures and text of the page of transfer-learning."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "loss",
        log="y",
        decades=8,
        title="A new readout on old features",
        caption="The loss of a new output that reads what the first layer has learned of an old task. With a large "
        "second layer (λ > 0) it may end on a floor: what the old task did not need is gone. With a large first "
        "layer (λ < 0) it goes on falling.",
    ),
    Chart(
        "mode_strength",
        places={"mode": (-1,)},
        title="What is learned along the direction that mattered least",
        caption="The part of the new target along the input direction that the old task used least, or not at all. "
        "It is one once learned.",
    ),
    Chart(
        ("old_loss", "new_loss"),
        log="y",
        places={"balance": (0, -1)},
        decades=8,
        title="All layers trained on both tasks",
        caption="What the old task loses for a while, and what the new one gains, at the smallest and the largest "
        "balance.",
        words=("old task", "new task"),
        y_label="loss",
    ),
)

MEANING = (
    "Linear networks learned a task that uses {parameters.rank} of {parameters.dimension} directions of its "
    "inputs; then a new output was trained, for a task that uses all of them, first with the old features frozen. "
    "Along the direction that the old task used least the output learned, of what there was to learn, "
    "{observed.mode_strength[balance=first][mode=last][time=last]:percent} at λ = −{parameters.largest_balance} "
    "and {observed.mode_strength[balance=last][mode=last][time=last]:percent} at λ = {parameters.largest_balance}; "
    "theory says {predicted.mode_strength[balance=first][mode=last][time=last]:percent} and "
    "{predicted.mode_strength[balance=last][mode=last][time=last]:percent}. By theory a network with a large first "
    "layer keeps features that its task does not need, and they serve the next one; a large second layer keeps "
    "those of the task alone. The old training is taken to have converged."
)
