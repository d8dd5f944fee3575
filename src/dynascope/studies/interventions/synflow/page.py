"""Figures and text of the study `synflow`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded
from dynascope.studies.interventions.synflow.experiment import METHODS

if TYPE_CHECKING:
    from dynascope.studies.interventions.synflow.study import Synflow

__all__ = ["figures", "meaning"]

_METHOD_NAMES = {
    **{"synflow": "SynFlow", "snip": "SNIP", "grasp": "GraSP"},
    **{"magnitude": "magnitude pruning", "random": "random pruning"},
}


def figures(study: Synflow, result: Comparison) -> list[Chart]:
    """The figures: accuracy and remaining paths against the compression, for each network."""
    charts = []
    for name in study.networks:
        charts.append(
            Chart(
                "mean_accuracy",
                "compression",
                f"Accuracy on test images after training, against the compression ({name} network); mean over "
                f"{study.starts} initialisations.",
                title=f"Accuracy after pruning: {name} network",
                log="x",
                members={"architecture": (name,)},
            )
        )
        charts.append(
            Chart(
                "path_exists",
                "compression",
                f"Share of the pruned networks in which a path from an input to an output remains ({name} network).",
                title=f"Remaining paths: {name} network",
                log="x",
                members={"architecture": (name,)},
            )
        )
    return charts


def meaning(study: Synflow, result: Comparison) -> str:
    """Summarise critical compressions and accuracies."""
    found, maximal = result.observed, result.predicted["maximal_compression"]
    texts = []
    for name in study.networks:
        logs = np.log10(found["critical_compression"].sel(architecture=name).to_numpy()).mean(axis=1)
        pairs = zip(10**logs, METHODS, strict=True)
        *first, last_one = (f"{rounded(float(value))} for {_METHOD_NAMES[method]}" for value, method in pairs)
        listed = f"{', '.join(first)} and {last_one}"
        last = study.compressions[-1]
        accuracy = found["mean_accuracy"].sel(architecture=name, compression=last)
        others = accuracy.drop_sel(rule="synflow")
        texts.append(
            f"In the {name} network, one weight per layer corresponds to a compression of "
            f"{rounded(float(maximal.sel(architecture=name)))}. The critical compressions (geometric means over the "
            f"initialisations) are {listed}. At a compression of {rounded(last)}, the accuracy is "
            f"{percent(float(accuracy.sel(rule='synflow')))} for SynFlow and at most {percent(float(others.max()))} "
            "for the other methods."
        )
    return (
        "Without skip connections, every layer has the same total SynFlow score, so the weights of a layer gain "
        "importance when this layer loses other weights. Scores that are computed only once lack this effect, so high "
        "compressions empty whole layers or disconnect the network. " + " ".join(texts)
    )
