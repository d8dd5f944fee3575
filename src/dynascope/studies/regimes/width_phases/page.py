"""Figures and text of the page of width-phases."""

from __future__ import annotations

from dynascope.results import Chart

__all__ = ["FIGURES", "MEANING"]

FIGURES = (
    Chart(
        "log_kernel_change",
        "scaling_parameter",
        "By how much training changes the tangent kernel, which says how a step on one input moves the output on "
        "another, for growing width κ (in lazy training the factor of the output). Level: features are learned at "
        "any width. Falling: the kernel stays in wide networks. Each line is a usual way to scale networks, or "
        "one that is turned into the other phase by a factor on the output.",
        log="x",
        title="Whose kernel still changes",
        x_label="width κ, or factor of the output",
    ),
    Chart(
        ("kernel_exponent", "speed_exponent"),
        "architecture",
        "The powers of κ with which the change of the kernel and the speed of learning go, fitted to training. A "
        "kernel that changes with power zero is in the phase that learns features, with a negative power in the "
        "kernel phase. A speed of power zero is stable; others are made so by learning rates that are scaled too.",
        words=("change of the kernel", "learning speed"),
        title="In which phase each is",
        x_label="how the network is scaled",
        y_label="power of κ",
    ),
    Chart(
        "digits_log_kernel_change",
        "scaling_parameter",
        "The change of the kernel in ReLU networks that learn handwritten digits, in the mean over "
        "{parameters.digits_seeds} of each kind. No closed form is known for them: judged is which lines fall.",
        log="x",
        title="The same for networks on digits",
        x_label="width κ, or factor of the output",
    ),
)

MEANING = (
    "There are several usual ways to choose initial weights and the size of the output as a network gets wider "
    "(NTK, mean field, Xavier, Kaiming, lazy). For each, two-layer linear networks of growing width κ learned a "
    "line, {parameters.seeds} at every width. The names with a second word are ways that a factor on the output "
    "turns round: into one that learns features (learning), or into one that keeps its kernel (kernel). The "
    "change of the kernel goes with powers of the width between {observed.kernel_exponent:least} and "
    "{observed.kernel_exponent:most}, where theory says {predicted.kernel_exponent:least} to "
    "{predicted.kernel_exponent:most}; the fitted powers are off by up to {agreement.kernel_exponent_maximum} of "
    "the largest. So whether a wide network learns features is decided by how it is scaled, and a factor on its "
    "output is enough to change it. The powers are exact for linear networks on a line. ReLU networks on "
    "handwritten digits (of each kind here: {parameters.digits_seeds}) are judged only by whether the kernel stays."
)
