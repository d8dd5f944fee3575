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
    """The figures: unconstrained features and, if any were trained, networks."""
    share = result.observed["end_between_class_share"].mean()
    unconstrained = [
        Chart(
            "between_class_share",
            title="Collapse of unconstrained features",
            caption="Fraction of the feature variance that lies between classes, for unconstrained features trained "
            f"from small random initial values. The fraction ends at {rounded(share)}, averaged over the random "
            "initialisations. The theory predicts 1: all features of a class coincide.",
        ),
        Chart(
            "mode_strength",
            residual=True,
            title="Strength of each class during training",
            caption="Strength of each class (mode) over time for unconstrained features from an initialisation aligned "
            "with the targets, and the closed-form prediction (dashed). Classes of equal size have the same curve. The "
            "lower panel shows training minus theory.",
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
        caption=f"Measures of neural collapse in one network ({network}, {kind}) over training; all measures are "
        "zero at full collapse. NC1, the ratio of within-class to between-class variability, changes from "
        f"{rounded(nc1[0])} to {rounded(nc1[-1])} on average over all initialisations. NC2 measures the deviation of "
        "the class means from equal norms and angles, NC3 the distance of the classifier from the class means, and NC4 "
        "how often the classifier disagrees with the nearest class mean.",
    )
    return [
        measures,
        *unconstrained,
        _CHART_OF_NETWORK(
            "network_nc1",
            log="xy",
            title="Collapse with different labels",
            y_label="within-class over between-class variability (NC1)",
            caption="NC1 of the same network over training for each kind of labels. The theory makes no prediction "
            "for networks, whose features are functions of the inputs.",
        ),
        _CHART_OF_NETWORK(
            "network_test_accuracy",
            log="x",
            title="Accuracy on held-out digits",
            y_label="accuracy on held-out digits",
            caption="Accuracy of the same network on held-out digits with true labels, over training. Random training "
            "labels contain no information about the true labels, even if the training digits collapse.",
        ),
    ]


def meaning(study: NeuralCollapse, result: Comparison) -> str:
    """Summarise the unconstrained features and, if any were trained, one network."""
    share, loss = result.observed["end_between_class_share"].mean(), result.quantities["loss"].error
    return (
        "In the unconstrained feature model, the last-layer features of every training sample are free parameters, "
        "trained jointly with the classifier. From small random initial values, the theory predicts collapse: all "
        f"features of a class converge to one point. At the end of training, {percent(share)} of the feature variance "
        "lies between classes, averaged over random initialisations. For an initialisation aligned with the targets, "
        "the full trajectory is known in closed form, and the relative error of the predicted training loss is "
        f"{rounded(loss)}. " + _networks(study, result)
    )


def _networks(study: NeuralCollapse, result: Comparison) -> str:
    if not (study.networks and study.labels):
        return "No networks were trained in this run."
    network, kind = study.networks[-1], _RANDOM if _RANDOM in study.labels else study.labels[-1]
    run = result.observed.sel(architecture=network, run=kind).mean("seed")
    nc1, accuracy, test_accuracy = (run[f"network_{name}"] for name in ("nc1", "accuracy", "test_accuracy"))
    return (
        "For networks, whose features are functions of the inputs, the theory makes no exact prediction. The claims "
        "about networks state that NC1, the ratio of within-class to between-class variability, falls at least "
        f"tenfold. In one network ({network}, {kind}), NC1 changes from {rounded(nc1[0])} to {rounded(nc1[-1])} on "
        f"average over {study.starts} initialisations, with a final accuracy of {percent(accuracy[-1])} on the "
        f"training labels and {percent(test_accuracy[-1])} on held-out digits. Collapse on the training samples does "
        "not imply generalisation."
    )
