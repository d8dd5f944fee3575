"""Figures and text of the page of line-alignment."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "alignment",
        title="Alignment of the layers",
        caption="The cosine of the angle between both layers, from five starts: it rises, falls or stays. Theory "
        "knows from the start and the data alone which of these, and by how much.",
    ),
    Chart(
        "second_norm",
        title="Size of the second layer",
        caption="Layers grow where the output is too small at first, and shrink where it is too large; where it "
        "has the wrong sign they shrink and then grow.",
    ),
)

MEANING = (
    "Linear networks with {parameters.width} hidden neurons were trained on inputs along a line from five starts: "
    "small, large with layers at right angles, and with layers that are parallel, nearly so, or opposite; of each "
    "theory gives alignment, sizes and loss at every time. From the small start the alignment ended at "
    "{observed.alignment[start=small][time=last]}, from the large orthogonal one at "
    "{observed.alignment[start=large orthogonal][time=last]}, and from the nearly parallel one at "
    "{observed.alignment[start=nearly parallel][time=last]}, where it had begun at "
    "{observed.alignment[start=nearly parallel][time=first]}. By theory learning need not align layers: start and "
    "target decide, before training. Networks trained by SGD and Adam, with ReLU too, can be put beside these; of "
    "them the linear ones by SGD are judged, by the side on which their alignment ends."
)
