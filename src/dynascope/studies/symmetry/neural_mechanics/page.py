"""Figures and text of the page of neural-mechanics."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        ("continuous_error", "exact_error"),
        over="group",
        log="y",
        title="What both laws miss, layer by layer",
        words=("continuous law", "law of the steps"),
        y_label="missed / moved",
        caption="Root mean square of what a law misses, over that of what the charges of the layer moved. The "
        "continuous law is of first order in the learning rate; that of the steps is exact but for rounding.",
        points=True,
    ),
    Chart(
        "excess",
        over="group",
        log="y",
        title="Laws of other optimisers are refuted",
        y_label="residual over bound",
        caption="The largest residual of laws with something wrong in them, over what rounding could do at most. "
        "What is above 1 proves that the run was not trained so.",
        points=True,
    ),
    Chart("loss", over="step", log="y", title="The loss", caption="The loss on all digits while this went on."),
)

MEANING = (
    "A convolutional network learned {parameters.samples} images by steps on batches of "
    "{parameters.batch_size}. Because of its symmetries, such as that a channel may be scaled before it is "
    "normalised, certain sums of squares of its weights do not depend on what is learned but only on how: they "
    "would stand still under infinitely small steps without decay. A law in continuous time, with friction from "
    "momentum and a spring from decay, tells how they move; of what they moved it misses "
    "{observed.continuous_error:least:percent} in the layer where it is best and "
    "{observed.continuous_error:most:percent} where it is worst. The law in single steps is exact but for "
    "rounding; of what they moved it misses at most {observed.exact_error:most}. So charges also tell whether "
    "training is what it is said to be: laws with a momentum or a decay that is off by a hundredth miss by at "
    "least {observed.excess:least} times what rounding could do."
)
