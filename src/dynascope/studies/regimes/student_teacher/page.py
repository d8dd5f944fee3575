"""Figures and text of the study `student-teacher`."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.student_teacher.study import StudentTeacher

__all__ = ["figures", "meaning"]

_MAP = functools.partial(Chart, over="overall_scale", symbols={"relative_scale": "δ"})


def figures(study: StudentTeacher, result: Comparison) -> list[Chart]:
    """The figures: distances over both scales, curves in the four corners, and neurons in the plane."""
    upstream = rounded(study.relative_scales[-1])
    return [
        _MAP(
            "mean_hamming_distance",
            log="x",
            title="Change in the activation patterns",
            caption="Fraction of flipped activations after training, over the overall scale τ, with one line for each "
            f"relative scale δ; mean over {study.seeds} teachers. At large τ, patterns hardly change.",
        ),
        _MAP(
            "mean_kernel_distance",
            log="x",
            title="Change in the kernel",
            caption="Kernel distance between the NTK before and after training. At intermediate τ, it depends on δ in "
            "a different way than the activation patterns do.",
        ),
        _MAP(
            "mean_parameter_distance",
            log="x",
            title="Change in the parameters",
            caption="Distance of the parameters after training from their initial values. At small τ, upstream "
            "students (δ > 0) move least, although their activation patterns change most.",
        ),
        _MAP(
            "mean_loss",
            log="xy",
            title="Training loss",
            caption="Training loss at the end of training.",
        ),
        _MAP(
            "mean_test_loss",
            log="xy",
            title="Test loss",
            caption="Loss on test inputs at the end of training.",
        ),
        Chart(
            "corner_loss",
            log="xy",
            title="Training loss in the four corners",
            caption="Training loss over time at the smallest and largest overall scale, for the smallest (downstream) "
            "and the largest relative scale (upstream).",
        ),
        Chart(
            "corner_hamming_distance",
            log="x",
            title="Activation patterns in the four corners",
            caption="Fraction of flipped activations over time in the same four corners.",
        ),
        *(
            Chart(
                "plane_y",
                over="plane_x",
                members={"plane_corner": (corner,)},
                symbols={"neuron": "", "teacher": ""},
                arrows=True,
                x_label="first coordinate of |a| w",
                y_label="second coordinate of |a| w",
                title=f"Neurons in the plane at the {size} overall scale",
                caption="Paths of |a| w for the neurons of a student with two inputs at δ = "
                f"{upstream} and τ = {rounded(scale)}. Dashed lines end at "
                f"|a| w of the teacher's neurons. {words}",
            )
            for corner, size, scale, words in (
                ("rich", "smallest", study.overall_scales[0], "The neurons turn towards the teacher's neurons."),
                ("lazy", "largest", study.overall_scales[-1], "The neurons hardly move."),
            )
        ),
    ]


def meaning(study: StudentTeacher, result: Comparison) -> str:
    """Summarise the distances in the corners of the map."""
    found = result.observed
    corner = {
        name: [rounded(each) for each in found[f"mean_{name}"].to_numpy()[[0, 0, -1, -1], [0, -1, 0, -1]]]
        for name in ("hamming_distance", "kernel_distance", "parameter_distance")
    }
    flips, kernels, moved = corner.values()
    rich, lazy = (rounded(found["teacher_alignment"].sel(plane_corner=name)[-1]) for name in ("rich", "lazy"))
    before = rounded(found["teacher_alignment"].sel(plane_corner="lazy")[0])
    small, large = rounded(study.overall_scales[0]), rounded(study.overall_scales[-1])
    down, up = rounded(study.relative_scales[0]), rounded(study.relative_scales[-1])
    return (
        f"Two-layer ReLU students were trained on the outputs of a teacher with {study.teacher_width} neurons. At the "
        f"overall scale {large}, training flipped fractions of {flips[2]} (δ = {down}) and {flips[3]} (δ = {up}) of "
        f"the activations, and the kernel distances were {kernels[2]} and {kernels[3]}. At the overall scale {small}, "
        f"the fractions were {flips[0]} and {flips[1]}, and the kernel distances {kernels[0]} and {kernels[1]}. There, "
        f"the parameters moved by {moved[0]} and {moved[1]}. In the plane, the mean cosine between a student's neuron "
        f"and the closest teacher neuron of the same sign was {before} before training, {rich} after training at the "
        f"smallest overall scale, and {lazy} at the largest. Kernel distance, Hamming distance and parameter distance "
        "order the students differently, so one of them alone does not identify the regime."
    )
