"""Figures and text of the study `symmetry-breaking`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.symmetry_breaking.study import SymmetryBreaking

__all__ = ["figures", "meaning"]


def figures(study: SymmetryBreaking, result: Comparison) -> list[Chart]:
    """The figures: losses, accuracies, alignment of keys, and tuning."""
    return [
        Chart(
            "mean_loss",
            over="optimizer",
            title="Held-out loss",
            y_label="held-out loss (nats per character)",
            caption=f"Cross-entropy on held-out windows after {study.steps} steps with the tuned learning rate; mean "
            f"over {study.seeds} initialisations.",
            points=True,
        ),
        Chart(
            "mean_known_accuracy",
            over="optimizer",
            title="Questions about chains of known lengths",
            y_label="accuracy",
            caption="Accuracy on new questions about chains of implications, with the numbers of implications that "
            f"occur in training ({', '.join(map(str, study.lengths))}). Guessing has an accuracy of 50 %.",
            points=True,
        ),
        Chart(
            "mean_longer_accuracy",
            over="optimizer",
            title="Questions about longer chains",
            y_label="accuracy",
            caption=f"Accuracy on questions about chains of {study.longer} implications, which do not occur in "
            "training. Guessing has an accuracy of 50 %.",
            points=True,
        ),
        Chart(
            "mean_alignment",
            over="token_class",
            title="Alignment of keys with the mean query bias",
            x_label="class of characters",
            y_label="alignment beyond random directions",
            caption="Mean cosine between the keys of a class of characters and the mean query bias, in the head in "
            "which it is largest, minus the 95 % quantile of the same number for 1000 random directions; mean over "
            "optimisers and initialisations. Networks with intact symmetry have no query bias, so their keys are "
            "aligned by chance only.",
            points=True,
        ),
        Chart(
            "tuning_loss",
            over="trial",
            title="Choice of the learning rate",
            x_label="tuning run, by increasing learning rate",
            y_label="held-out loss (nats per character)",
            caption=f"Held-out loss after {study.tuning_steps} steps for each learning rate that was tried. Each "
            "optimiser has as many tuning runs with intact as with broken symmetry. Runs that diverged are missing.",
            points=True,
            joined=True,
        ),
    ]


def meaning(study: SymmetryBreaking, result: Comparison) -> str:
    """Summarise the losses, the tuning and the accuracies."""
    observed = result.observed
    losses = "; ".join(
        f"{name} {rounded(observed['mean_loss'].sel(optimizer=name, attention='intact'))} with intact and "
        f"{rounded(observed['mean_loss'].sel(optimizer=name, attention='broken'))} with broken symmetry"
        for name in study.optimizers
    )
    longer, known = observed["mean_longer_accuracy"], observed["mean_known_accuracy"]
    trials = observed.sizes["trial"]
    at_end = int((observed["tuning_loss"].fillna(float("inf")).argmin("trial") % (trials - 1) == 0).sum())
    edge = (
        f" In {at_end} cases, the best rate is the smallest or the largest one, so a wider range may contain a better "
        "one."
        if at_end
        else ""
    )
    return (
        "Attention does not change if queries and keys, or values and outputs, are transformed by opposite matrices. "
        "Biases that are drawn for every batch and not learned break this symmetry, which should help optimisers that "
        f"commute with rotations of the weights. After {study.steps} steps, the mean held-out losses are: {losses}. "
        f"Each learning rate is the best of {trials}, chosen separately for each optimiser and for intact and broken "
        f"symmetry.{edge} On questions about chains of implications, the accuracy is between {percent(known.min())} "
        f"and {percent(known.max())} for the lengths in training, and between {percent(longer.min())} and "
        f"{percent(longer.max())} for longer chains; guessing gives 50 %."
    )
