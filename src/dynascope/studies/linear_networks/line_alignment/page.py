"""Figures and text of the study `line-alignment`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.linear_networks.line_alignment.study import LineAlignment

__all__ = ["figures", "meaning"]


def figures(study: LineAlignment, result: Comparison) -> list[Chart]:
    """The figures: alignment and norm under gradient flow and, if they were trained, alignment of ReLU networks."""
    charts = [
        Chart(
            "alignment",
            title="Alignment of the layers",
            caption="Cosine of the angle between the two layers, from each initialisation. The theory predicts "
            "these curves from the initial weights and the data alone.",
        ),
        Chart(
            "second_norm",
            title="Norm of the second layer",
            caption="Norm of the second layer over time. The layers grow if the initial output is too small and shrink "
            "if it is too large. If the initial output has the wrong sign, the layers first shrink and then grow.",
        ),
    ]
    for optimizer in ("SGD", "Adam") if study.descent else ():
        charts.append(
            Chart(
                f"relu_{optimizer.lower()}_alignment",
                over="step",
                title=f"ReLU networks trained by {optimizer}",
                caption=f"Alignment of the two layers of ReLU networks during training by {optimizer}, from the same "
                "initialisations. The theory does not cover these networks.",
                y_label="alignment of the layers",
            )
        )
    return charts


def meaning(study: LineAlignment, result: Comparison) -> str:
    """Summarise the final alignment from three of the initialisations, and the scope of the verdict."""
    alignment = result.observed["alignment"]
    first, last = alignment.isel(time=0), alignment.isel(time=-1)
    ends = {start: rounded(last.sel(start=start)) for start in ("small", "large orthogonal", "nearly parallel")}
    names = " and ".join(study.parametrisations)
    others = "three with nearly parallel, parallel or opposite layers"
    if names:
        others += f", and Gaussian layers of the parametrisations {names}, in which wide networks learn features"
    else:
        others = f"and {others}"
    descent = (
        " Linear and ReLU networks were also trained by SGD and Adam. Of these networks, "
        "only the linear ones trained by SGD affect the verdict: their alignment must change in the predicted "
        "direction."
        if study.descent
        else ""
    )
    return (
        f"Linear networks with {study.width} hidden neurons were trained on inputs along a line from "
        f"{len(alignment['start'])} initialisations: one small, one large with orthogonal layers, "
        f"{others}. For each initialisation, the theory "
        "predicts the alignment, the norms and the loss at every time. "
        f"The alignment ended at {ends['small']} from the small initialisation, at {ends['large orthogonal']} "
        f"from the large orthogonal one, and at {ends['nearly parallel']} from the nearly parallel one, where it began "
        f"at {rounded(first.sel(start='nearly parallel'))}. According to the theory, the layers need not align during "
        f"training: the target and the initial weights determine whether they do.{descent}"
    )
