"""Figures and text of the study `grokking-imbalance`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded
from dynascope.studies.grokking.grokking_imbalance.experiment import SETTINGS

if TYPE_CHECKING:
    from dynascope.studies.grokking.grokking_imbalance.study import GrokkingImbalance

__all__ = ["figures", "meaning"]


def figures(study: GrokkingImbalance, result: Comparison) -> list[Chart]:
    """The figures: times to grok over α, and the accuracies of each network and optimiser."""
    level, total = percent(study.threshold), int(result.observed["generalised"].size)
    unreached = total - int(result.observed["generalised"].sum())
    return [
        Chart(
            "relative_time",
            over="relative_scale",
            log="xy",
            symbols={"setting": ""},
            title="Time to grok",
            caption=f"Step at which the test accuracy reaches {level}, divided by the step at α = 1 for the same seed, "
            f"as a geometric mean over {study.seeds} seeds. Points above 1 grok later than networks with α = 1. "
            f"Upstream networks are on the right (α > 1). {unreached} of {total} runs do not reach this accuracy; "
            "their last step enters the mean, which is then a bound.",
        ),
        Chart(
            "reached",
            over="relative_scale",
            log="x",
            title="Runs that generalise",
            caption=f"Fraction of the runs whose test accuracy reaches {level} by the end of training.",
        ),
        *(
            Chart(
                ("mean_accuracy", "mean_test_accuracy"),
                over="recorded_step",
                log="x",
                members={"setting": (setting,)},
                words=("training", "test"),
                y_label="accuracy",
                x_label="training step",
                title=f"Accuracy: {setting}",
                caption="Mean accuracy over seeds on the training and test pairs, at each relative scale α. The time "
                "to grok is measured on the test pairs.",
            )
            for setting in SETTINGS
        ),
    ]


def meaning(study: GrokkingImbalance, result: Comparison) -> str:
    """Summarise the times to grok, the runs that do not generalise, and the initial outputs."""
    found = result.observed
    largest = study.relative_scales[-1]
    parts = []
    for setting in SETTINGS:
        at = found.sel(setting=setting)
        even, up = (at["test_step"].sel(relative_scale=each) for each in (1.0, largest))
        ratio = at["relative_time"].sel(relative_scale=largest)
        parts.append(f"{setting}: {rounded(even.mean())} and {rounded(up.mean())} (mean ratio {rounded(ratio)})")
    projections = found["transformer_projection"].mean("seed")
    change = max(abs(float(projections.max()) - 1), abs(float(projections.min()) - 1))
    missing = int((~found["generalised"].astype(bool)).sum())
    return (
        f"Networks were trained on {percent(study.train_fraction)} of the table of sums modulo {study.p}. The mean "
        f"steps at which the test accuracy reached {percent(study.threshold)} were, at α = 1 and {rounded(largest)}: "
        f"{'; '.join(parts)}. {missing} runs did not reach it, so their last steps enter these means. Each claim "
        "compares runs from the same seed, and is undecided if longer training could change its outcome. For the "
        f"transformer, α also changes the initial outputs: their projection on those at α = 1 differs from 1 by up to "
        f"{rounded(change)}, because the attention scores are of degree two in the embeddings. AdamW makes the steps "
        "of all layers equally large, so with AdamW α changes the distance that a layer has to move relative to its "
        "weights, but not the order of the learning speeds of gradient flow."
    )
