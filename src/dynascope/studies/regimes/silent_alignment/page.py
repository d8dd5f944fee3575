"""Figures and text of the study `silent-alignment`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.silent_alignment.study import SilentAlignment

__all__ = ["figures", "meaning"]


def figures(study: SilentAlignment, result: Comparison) -> list[Chart]:
    """The figures: the alignment of the kernel and the loss over time, and the rotation of the kernel."""
    turn = result.predicted["kernel_turn"].isel(scaling_parameter=0)
    return [
        Chart(
            "kernel_alignment",
            over="time",
            title="Alignment of the kernel",
            caption="Cosine between M and I + b̂ b̂ᵀ over time on whitened inputs, for the kernel X M Xᵀ. The predicted "
            "curve does not depend on the initial scale α.",
        ),
        Chart(
            "loss",
            over="time",
            title="Loss",
            caption="Loss over time on whitened inputs. For smaller initial scales α, "
            "the loss falls later, after the kernel is aligned.",
        ),
        Chart(
            "kernel_turn",
            over="scaling_parameter",
            title="Turn of the kernel on correlated inputs",
            caption="Kernel distance between the aligned kernel at the end of the plateau and the final kernel, on "
            f"correlated inputs. For infinitely small initial scales, theory predicts {rounded(turn)}.",
            x_label="initial scale α",
            points=True,
        ),
    ]


def meaning(study: SilentAlignment, result: Comparison) -> str:
    """Summarise when the kernel aligns and when the loss falls, and the rotation on correlated inputs."""
    aligned, half, turn = (result.observed[name] for name in ("alignment_time", "half_time", "kernel_turn"))
    smallest = min(range(len(study.scales)), key=study.scales.__getitem__)
    return (
        f"Linear networks with {study.inputs} inputs, {study.width} hidden neurons and one output were trained from "
        f"small initial weights. At the smallest scale, {rounded(study.scales[smallest])}, the misalignment of the "
        f"tangent kernel fell to {rounded(study.misalignment)} at t = {rounded(aligned[smallest])}, and half of the "
        f"target was learned at t = {rounded(half[smallest])}. The alignment time does not depend on the scale, but "
        "the loss falls later for smaller scales. On whitened inputs, the kernel then only grows, so the network "
        "learns the same function as kernel regression with its final kernel. On correlated inputs, the kernel rotates "
        f"while the loss falls, by a kernel distance of {rounded(turn[smallest])} at the smallest scale."
    )
