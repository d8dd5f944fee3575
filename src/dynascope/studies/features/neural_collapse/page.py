"""Figures and text of the study `neural-collapse`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.features.neural_collapse.study import NeuralCollapse

__all__ = ["figures", "meaning"]

_RANDOM = "100 % random labels"
_CHART_OF_NETWORK = functools.partial(Chart, over="step", x_label="training step", places={"architecture": (-1,)})


def figures(study: NeuralCollapse, result: Comparison) -> list[Chart]:
    """The unconstrained features and, if any were trained, the networks."""
    share = result.observed["end_between_class_share"].mean()
    unconstrained = [
        Chart(
            "between_class_share",
            title="Collapse of unconstrained features",
            caption="Share of the feature variance that lies between classes, for unconstrained features from small "
            f"random values. It ends at {rounded(share)} on average over all random initialisations. The predicted end "
            "is 1, where all features of a class coincide.",
        ),
        Chart(
            "mode_strength",
            residual=True,
            title="Learning of the classes",
            caption="Unconstrained features from an aligned initialisation. The network learns each class (mode) along "
            "a curve known in closed form. Classes of equal size are learned at the same time, so that their curves "
            "coincide. The lower panel shows training minus theory.",
        ),
    ]
    if not (study.networks and study.labels):
        return unconstrained
    network, kind = study.networks[-1], study.labels[0]
    nc1 = result.observed["network_nc1"].sel(architecture=network, run=kind).mean("seed")
    measures = _CHART_OF_NETWORK(
        tuple(f"network_{name}" for name in ("nc1", "nc2_norm", "nc2_angle", "nc3", "nc4")),
        log="xy",
        places={"architecture": (-1,), "run": (0,), "seed": (0,)},
        words=("NC1", "NC2, norms", "NC2, angles", "NC3", "NC4"),
        title="Measures of neural collapse in a network",
        y_label="distance from collapse",
        caption=f"Measures of neural collapse in one network ({network}, {kind}); all are zero at full collapse. NC1 "
        "is the spread within classes relative to that between classes. On average over all initialisations, it goes "
        f"from {rounded(nc1[0])} to {rounded(nc1[-1])}. NC2 measures how far the class means are from equal norms and "
        "equal angles, NC3 how far the classifier is from the class means, and NC4 how often the classifier disagrees "
        "with the nearest class mean.",
    )
    return [
        measures,
        *unconstrained,
        _CHART_OF_NETWORK(
            "network_nc1",
            log="xy",
            title="Collapse with different labels",
            y_label="spread within classes over that between classes (NC1)",
            caption="NC1 of the same network for each kind of labels. The features are functions of the inputs, and "
            "the theory makes no prediction.",
        ),
        _CHART_OF_NETWORK(
            "network_test_accuracy",
            log="x",
            title="Accuracy on held-out digits",
            y_label="accuracy on held-out digits",
            caption="Accuracy of the same network on held-out digits with their true labels. Random training labels "
            "contain no information about them, even if the training digits collapse.",
        ),
    ]


def meaning(study: NeuralCollapse, result: Comparison) -> str:
    """The unconstrained features and, if any were trained, one network."""
    share, loss = result.observed["end_between_class_share"].mean(), result.quantities["loss"].error
    return (
        "In the unconstrained feature model, the last-layer features of every training sample are free parameters, "
        "trained together with the classifier. From small random values, the predicted end is collapse: all features "
        f"of a class coincide. Training ends with {percent(share)} of the feature variance between classes, on average "
        f"over all random initialisations. From an aligned initialisation, the whole trajectory is known in closed "
        f"form, and the loss in training deviates from it by {rounded(loss)} (relative error). The model has no "
        "inputs, so its collapse depends neither on an architecture nor on the meaning of the labels. "
        + _networks(study, result)
    )


def _networks(study: NeuralCollapse, result: Comparison) -> str:
    if not (study.networks and study.labels):
        return "No networks were trained in this run."
    network, kind = study.networks[-1], _RANDOM if _RANDOM in study.labels else study.labels[-1]
    run = result.observed.sel(architecture=network, run=kind).mean("seed")
    nc1, accuracy, test_accuracy = (run[f"network_{name}"] for name in ("nc1", "accuracy", "test_accuracy"))
    return (
        "In a network the features are functions of the inputs, and the theory makes no exact prediction. For networks "
        "with class labels, the verdict depends on whether NC1, the spread within classes relative to that between "
        f"classes, falls to a tenth of its initial value once the labels are learned. In one network ({network}, "
        f"{kind}), NC1 goes from {rounded(nc1[0])} to {rounded(nc1[-1])} on average over {study.starts} "
        f"initialisations. At the end, the network predicts {percent(accuracy[-1])} of its training labels and "
        f"{percent(test_accuracy[-1])} of the labels of held-out digits. Collapse on the training samples alone is no "
        "evidence of generalisation."
    )
