"""Figures and text of the page of conservation-counts."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        ("laws", "bound"),
        "architecture",
        "How many conserved quantities each network has, and what closed forms say. The other points are how many "
        "directions gradients at one point leave open; where these are more, training on different data in turn "
        "closes the difference.",
        words=("conserved quantities", "open at one point"),
        title="Conserved quantities of small networks",
        x_label="network",
        y_label="number",
        points=True,
    ),
    Chart(
        ("linear_laws", "linear_bound"),
        "run",
        "The same for two-layer linear networks of random sizes, written as inputs-hidden neurons-outputs.",
        words=("conserved quantities", "open at one point"),
        title="Linear networks of any size",
        x_label="inputs-hidden neurons-outputs",
        y_label="number",
        points=True,
    ),
    Chart(
        "final_charge",
        "charge",
        "Every charge that was found, after training that moved the weights by {observed.moved:least:percent} to "
        "{observed.moved:most:percent} of their size; in the order of the networks above, with products of sums of "
        "weights, which are no further laws. Expected is what it was before.",
        title="The charges after training",
        y_label="charge",
        points=True,
    ),
)

MEANING = (
    "A conserved quantity is a combination of weights that gradient flow never changes, whatever the data and the "
    "loss. They were counted from gradients alone, without knowing what is inside a network. The networks above "
    "have between {observed.laws:least} and {observed.laws:most} of them; two-layer linear networks of "
    "{parameters.sizes} sizes have up to {observed.linear_laws:most}. To look at gradients at one point is not "
    "enough: they leave up to {observed.linear_bound:most} directions open, and training on several data sets in "
    "turn closes some of them. Whether every law is a sum of squares, of products or of weights is judged too. The "
    "count is for gradient flow: steps of finite size move these quantities a little."
)
