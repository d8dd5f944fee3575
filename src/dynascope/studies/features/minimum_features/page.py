"""Figures and text of the page of minimum-features."""

from __future__ import annotations

import functools

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

_CHART_OF_DIALS = functools.partial(Chart, over="dial", points=True)

FIGURES = (
    _CHART_OF_DIALS(
        "kappa_cka_change",
        interval=("kappa_cka_change_low", "kappa_cka_change_high"),
        title="What moves a network towards few features",
        caption="How much each change of the training, from its lowest level to its highest, moves κ, the distance "
        "to minimum features: below zero it brings fewer features. Bars are 95 % intervals over "
        "{parameters.seeds} starts; one that leaves out zero is told from chance.",
    ),
    _CHART_OF_DIALS(
        "accuracy_change",
        interval=("accuracy_change_low", "accuracy_change_high"),
        title="What moves the accuracy",
        caption="The same for the share of new images that are right: fewer features and better answers need not "
        "come together.",
    ),
    Chart(
        "kappa_cka",
        over="run",
        title="Every network",
        x_label="how it was trained",
        caption="κ of every network; a point is a start. {observed.kappa_cka[run=default]:mean} is the mean of the "
        "default.",
        points=True,
    ),
    Chart(
        "cumulative_utilization",
        over="mode",
        log="x",
        title="How the output is spread over the features",
        x_label="number of features, the strongest first",
        caption="How much of the outputs the strongest features make up after training. Where a curve reaches 1, "
        "the features beyond are not used.",
    ),
)

MEANING = (
    "To tell classes apart a network needs about one feature for each (what it computes of an image before its "
    "last layer), and it has room for many more. Networks were trained in several ways, each from "
    "{parameters.seeds} starts, and κ was measured, the distance of their features to the fewest that would do (0; "
    "below {parameters.threshold} they are called minimal). It was {observed.kappa_cka[run=default]:mean} on "
    "average for the usual training, with {observed.accuracy[run=default]:mean:percent} of new images right, and "
    "went from {observed.kappa_cka:least} to {observed.kappa_cka:most} over all networks. What moves "
    "it beyond chance is shown with intervals. Judged is whether more data, the learning rate that tests best, "
    "weight decay, batch normalisation and convolutions bring κ down, as is claimed of large networks, from which "
    "small ones on small images may differ."
)
