"""Unconstrained features trained jointly with a classifier, and their measures of neural collapse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dynascope.flows.gradient_flow import GradientFlow, gradient_flow
from dynascope.flows.solvers.solver import Solver
from dynascope.probes.class_moments import between_class_share, class_moments
from dynascope.probes.neural_collapse import collapse_metrics
from dynascope.studies.features.neural_collapse.unconstrained import aligned_features, random_features
from dynascope.tasks import Task
from dynascope.theory.features import class_modes

__all__ = ["train_free_features"]

_LAYERS = {
    "first": (lambda network: network.first, ("sample", "feature")),
    "second": (lambda network: network.second, ("feature", "target")),
}


def train_free_features(
    class_sizes: Sequence[int],
    features: int,
    aligned: tuple[float, float],
    random: tuple[float, float],
    times: np.ndarray,
    *,
    starts: int,
    seed: int,
    **options: Any,
) -> dict[str, Any]:
    """Train unconstrained features from an aligned and from random initialisations.

    The features are the first layer of a linear network on one-hot inputs.

    Args:
        class_sizes: Number of samples of each class.
        features: Number of features.
        aligned: Sizes of features and classifier in the aligned initialisation.
        random: Sizes in the random initialisations.
        times: Recorded times; the last one is used for the random initialisations only.
        starts: Number of random initialisations.
        seed: Seed of the initialisations.
        **options: Further fields of `GradientFlow`.

    Returns:
        Values by name, with their dimensions except for curves over time from the aligned initialisation.
    """
    labels, classes = np.repeat(np.arange(len(class_sizes)), class_sizes), len(class_sizes)
    networks = [aligned_features(class_sizes, features, aligned, seed=seed)]
    networks += [random_features(class_sizes, features, random, seed=[seed, 1, start]) for start in range(starts)]
    task = Task(np.eye(len(labels)), np.eye(classes)[labels])
    solver = Solver(relative_tolerance=1e-10)
    method = GradientFlow(duration=float(times[-1]), solver=solver, save=times, statistics=_LAYERS, **options)
    run = gradient_flow(task, networks, method)
    h, w, path = run["first"].to_numpy(), run["second"].to_numpy(), slice(None, -1)
    modes = class_modes(class_sizes)
    left, right = modes.sample_vector[labels], modes.output_vector
    moments = [[class_moments(each, labels, classes=classes) for each in start] for start in h]
    metrics = [
        collapse_metrics(each, classifier, layout="features_classes")
        for each, classifier in zip(moments[0][path], w[0, path], strict=True)
    ]
    ends = [start[-1].means for start in moments[1:]]
    shares = np.array([[between_class_share(each) for each in start] for start in moments[1:]])
    return {
        "time": times[path],
        "loss": run["loss"].to_numpy()[0, path],
        "mode_strength": (("time", "mode"), np.sum((left.T @ h[0] @ w[0])[path] * right.T, axis=2)),
        "class_mean_norm": (("time", "class"), [each.class_mean_norm for each in metrics]),
        "nc3": [each.nc3 for each in metrics],
        "end_class_mean_gram": (("start", "class", "target"), [means @ means.T for means in ends]),
        "end_classifier_gram": (("start", "class", "target"), w[1:, -1].mT @ w[1:, -1]),
        "end_between_class_share": ("start", shares[:, -1]),
        "between_class_share": (("start", "time"), shares[:, path]),
    }
