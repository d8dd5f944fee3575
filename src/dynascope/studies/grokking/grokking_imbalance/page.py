"""Figures and text of the study `grokking-imbalance`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded
from dynascope.studies.grokking.grokking_imbalance.experiment import SETTINGS

if TYPE_CHECKING:
    from dynascope.studies.grokking.grokking_imbalance.study import GrokkingImbalance

__all__ = ["figures", "meaning"]


def figures(study: GrokkingImbalance, result: Comparison) -> list[Chart]:
    """The figures: times to grok over α, and the accuracies of each network and optimiser."""
    level, total = percent(study.threshold), int(result.observed["generalised"].size)
    missing = total - int(result.observed["generalised"].sum())
    bounds = f" Runs that do not reach this accuracy ({missing} of {total}) enter the mean with their last step."
    return [
        Chart(
            "relative_time",
            over="relative_scale",
            log="xy",
            title="Time to grok",
            caption="The first layer is divided by the relative scale α at the start of training, and the last layer "
            "is multiplied by a power of α. Networks on the right (α > 1) are upstream: their first layer is smaller. "
            f"The curves show the step at which the test accuracy reaches {level}, divided by the same step at α = 1, "
            f"as a geometric mean over {study.seeds} seeds. Networks above 1 grok later than those with α = 1."
            f"{bounds if missing else ''}",
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
                members={"setting": (setting,), "relative_scale": (1.0, study.relative_scales[-1])},
                symbols={"relative_scale": "α"},
                words=("training", "test"),
                y_label="accuracy",
                x_label="training step",
                title=f"Accuracy: {setting}",
                caption="Accuracy on the training pairs and on the other pairs of the table, as a mean over seeds, at "
                "α = 1 and at the largest α. The time to grok is measured on the test pairs.",
            )
            for setting in SETTINGS
        ),
    ]


def meaning(study: GrokkingImbalance, result: Comparison) -> str:
    """Summarise the times to grok, the runs that do not generalise, and the initial outputs."""
    found = result.observed
    largest = study.relative_scales[-1]
    logarithms = xr.apply_ufunc(np.log, found["test_step"].clip(1)).mean("seed")
    parts = []
    for setting in SETTINGS:
        ends = logarithms.sel(setting=setting, relative_scale=[1.0, largest])
        even, upstream = np.exp(ends.to_numpy()).tolist()
        parts.append(f"{setting}: {rounded(even)} and {rounded(upstream)} (ratio {rounded(upstream / even)})")
    change = rounded(abs(found["transformer_projection"] - 1).max())
    missing = int((~found["generalised"].astype(bool)).sum())
    bounds = f" Runs that did not reach it ({missing}) enter these means with their last step." if missing else ""
    return (
        f"Networks were trained on {percent(study.train_fraction)} of the table of sums modulo {study.p}. Before "
        "training, the weights of the first layer were divided by α and those of the last layer multiplied by a power "
        f"of α. The test accuracy reached {percent(study.threshold)} at these steps for α = 1 and α = "
        f"{rounded(largest)}, as geometric means over seeds: {'; '.join(parts)}.{bounds} Each claim compares runs from "
        "the same seed, and is undecided if longer training could change its outcome. Two effects limit the "
        "conclusions. With AdamW, the steps of all layers are equally large, so α does not make the first layer "
        "faster, and weight decay must shrink the larger last layer. In the transformer, the attention scores are of "
        "degree two in the embeddings, so α also changes the initial outputs: their projection on those at α = 1 "
        f"differs from 1 by up to {change}."
    )
