"""Figures and text of the page of max-margin."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "euclidean_margin",
        over="margin_level",
        log="x",
        title="How far inputs may move",
        y_label="distance to the boundary",
        caption="The same two samples, and three parametrisations of the same functions. The linear one ends at "
        "{observed.end_euclidean_margin[architecture=linear]}, the one with a single weight and a product at "
        "{observed.end_euclidean_margin[architecture=mixed]}. Dashed is where theory says that they end.",
    ),
    Chart(
        "direction_distance",
        over="margin_level",
        log="xy",
        title="Directions settle slowly",
        y_label="relative distance from the limit",
        caption="How far β/ν is from its limit. It falls as 1/ν, of products more slowly, while ν is the logarithm "
        "of the inverse loss: {observed.direction_distance[architecture=linear]:first} of the linear classifier at "
        "the loss exp(−10), {observed.direction_distance[architecture=linear]:last} at the end.",
    ),
    Chart(
        ("random_distance", "random_own_error"),
        "run",
        "Random data: how far β/ν was from the solution of the problem in the end, at most "
        "{observed.random_distance:most}, and the error that theory knows of itself there.",
        log="y",
        symbols={"seed": ""},
        words=("measured", "theory's own error"),
        title="The problem is the one that training solves",
        x_label="classifier and dimension",
        y_label="relative distance from the limit",
        points=True,
    ),
    Chart(
        "block_share",
        over="margin_level",
        log="xy",
        title="A weight that is not needed is discarded",
        y_label="share of the margin",
        caption="One sample that the product separates by itself. The single weight keeps growing, but its share "
        "of the margin falls to {observed.block_share[parameter_block=single weight]:last}, as solved (dashed).",
    ),
    Chart(
        ("normalised_nc1", "unnormalised_nc1"),
        over="margin_level",
        log="xy",
        decades=16.0,
        symbols={"start": ""},
        words=("normalised features", "without normalisation"),
        title="Normalisation sets features free",
        y_label="spread within classes over that between",
        caption="The same two-layer network on the same inputs. With normalised features samples of a class become "
        "one point; without, their spread over that of classes ends at "
        "{observed.unnormalised_nc1[margin_level=last]:mean}.",
    ),
)

MEANING = (
    "Once a classifier is right everywhere, its loss falls further only as its outputs grow, and so training keeps "
    "small what is costly. If all parameters grow alike, that is the size of all of them, and the margin to the "
    "data is as wide as can be: inputs could move by {observed.end_euclidean_margin[architecture=linear]} before "
    "the linear classifier errs. If some grow faster than others, these alone are kept small. With a product in "
    "place of one weight the same functions can be formed, yet training ended where inputs may move by no more "
    "than {observed.end_euclidean_margin[architecture=mixed]}. Where the fast weight is not needed it is given up: "
    "its share of the margin fell to {observed.block_share[parameter_block=single weight]:last}. A layer before a "
    "normalisation does not grow at all and is free, so that its features go where the readout is cheapest: their "
    "spread within classes, over that between, ended at {observed.normalised_nc1[margin_level=last]:mean}, and at "
    "{observed.unnormalised_nc1[margin_level=last]:mean} in the same network without normalisation. All "
    "this is slow. At the loss exp(−10) the direction of the mixed classifier was still "
    "{observed.direction_distance[architecture=mixed]:first} from its end; losses as small as those judged here no "
    "training by steps will see."
)
