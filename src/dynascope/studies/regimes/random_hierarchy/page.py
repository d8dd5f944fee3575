"""Figures and text of the study `random-hierarchy`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.random_hierarchy.study import RandomHierarchy

__all__ = ["figures", "meaning"]


def figures(study: RandomHierarchy, result: Comparison) -> list[Chart]:
    """The figures: test errors over the sample size by network and relative scale, and the sensitivity to synonyms."""
    balanced = study.balanced
    threshold = rounded(study.threshold)
    return [
        Chart(
            "mean_test_error",
            over="sample_size",
            members={"relative_scale": (balanced,)},
            symbols={"network": "network"},
            log="x",
            title="Test error and the number of training strings",
            caption=f"Test error of balanced networks, mean over {study.seeds} hierarchies. The sample "
            f"complexity is the size at which the error falls to {threshold}, a tenth of that of random guesses. "
            f"The scale n_c m^L is {study.critical_samples}, and there are {study.number_of_strings} strings. The tree "
            "network combines neighbouring symbols as the hierarchy does; the other networks are perceptrons with the "
            "given number of hidden layers.",
        ),
        Chart(
            "mean_test_error",
            over="sample_size",
            members={"network": ("tree",)},
            symbols={"relative_scale": "α"},
            log="x",
            title="Test error of the tree network at each relative scale",
            caption="Test error of the tree network. The first layer is divided by α and the last multiplied by α, so "
            "α > 1 is upstream. The learning rate is set for each network by its initial neural tangent kernel.",
        ),
        Chart(
            "mean_test_error",
            over="sample_size",
            members={"network": (study.deepest,)},
            symbols={"relative_scale": "α"},
            log="x",
            title="Test error of the deepest perceptron at each relative scale",
            caption=f"Test error of the perceptron with {study.deepest}. Its first layer sees the whole string.",
        ),
        Chart(
            "mean_tree_sensitivity",
            over="sample_size",
            members={"relative_scale": (balanced,), "layer": (min(2, study.depth),)},
            symbols={"level": "level"},
            log="x",
            title="Sensitivity of the second layer to synonyms",
            caption="Mean squared change of the features of the second layer of the balanced tree network if "
            "synonyms of one level are exchanged, relative to the distance between two strings. This "
            "layer reads the features of the tuples of level 1.",
        ),
    ]


def meaning(study: RandomHierarchy, result: Comparison) -> str:
    """Summarise the sample complexities."""
    found, scale = result.observed, study.balanced
    needed = found["sample_complexity"]
    tree = needed.sel(network="tree")
    listed = ", ".join(
        f"{_size(found, name, scale)} for {'the tree network' if name == 'tree' else name}"
        for name in needed["network"].to_numpy().tolist()
    )
    scales = ", ".join(
        f"{_size(found, 'tree', each)} at α = {rounded(each)}" for each in tree["relative_scale"].to_numpy().tolist()
    )
    known = bool(found["dropped"].sel(relative_scale=scale).all())
    drop = _mean(found["sensitivity_drop"].sel(relative_scale=scale).to_numpy()) if known else "an unknown number of"
    return (
        f"Networks were trained on strings of random hierarchies with {study.number_of_strings} strings and "
        f"n_c m^L = {study.critical_samples}. The sample complexity of balanced networks was {listed} (geometric means "
        f"over {study.seeds} hierarchies). That of the tree network was {scales}, where α > 1 is upstream. The "
        "features of the second layer of the tree lost half of their sensitivity to synonyms of level 1 at "
        f"{drop} training strings."
    )


def _size(found: xr.Dataset, name: str, scale: float) -> str:
    """The geometric mean over seeds, or a lower bound if some seeds did not reach the threshold."""
    cell = found.sel(network=name, relative_scale=scale)
    reached, bounded = cell["reached"].astype(bool), cell["bounded"].astype(bool)
    if not (reached | bounded).all():
        return "unknown"
    return f"{'' if reached.all() else 'more than '}{_mean(cell['sample_complexity'].to_numpy())}"


def _mean(values: np.ndarray) -> str:
    return f"{np.exp(np.mean(np.log(values))):.0f}"
