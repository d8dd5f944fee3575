"""Figures and text of the study `kernel-movement`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import rounded

if TYPE_CHECKING:
    from dynascope.studies.regimes.kernel_movement.study import KernelMovement

__all__ = ["figures", "meaning"]

_SYMBOLS = {"relative_scale": "α", "depth": "hidden layers", "network": ""}


def figures(study: KernelMovement, result: Comparison) -> list[Chart]:
    """The figures: movement over the relative scale at equal loss, and during training."""
    deepest = {"depth": (study.depths[-1],)}
    plain = {"network": ("plain",)}
    number = f"mean over {study.seeds} seeds"
    symbols = {"depth": "hidden layers", "network": ""}

    def over_scale(variable: str, title: str, caption: str, kind: str) -> Chart:
        members = {"network": (kind,)}
        return Chart(
            variable, over="relative_scale", log="xy", members=members, symbols=symbols, title=title, caption=caption
        )

    return [
        over_scale(
            "tenth_hamming_distance",
            "Change in the activation patterns, without batch norm",
            "Fraction of flipped activations when the training loss has fallen to a tenth, over the relative scale α; "
            f"{number}. For α > 1 (upstream), the first layer is smaller and learns faster. All networks of one depth "
            "have the same initial functions.",
            "plain",
        ),
        over_scale(
            "tenth_kernel_distance",
            "Change in the kernel, without batch norm",
            "Distance between the NTK before training and when the training loss has fallen to a tenth.",
            "plain",
        ),
        Chart(
            "mean_kernel_distance",
            over="loss_fraction",
            log="xy",
            members=plain | deepest,
            symbols={"relative_scale": "α"},
            title="Kernel against the loss",
            caption=f"Kernel distance against the fraction of the initial loss, for networks with {study.depths[-1]} "
            "hidden layers. Training runs from right to left. Higher lines change the kernel sooner, relative to the "
            "loss.",
        ),
        Chart(
            "mean_layer_hamming_distance",
            over="layer",
            members=plain,
            symbols={"relative_scale": "α"},
            log="y",
            title="Activation patterns of each layer",
            caption="Fraction of flipped activations in each hidden layer of the deepest network, when the training "
            "loss has fallen to a tenth.",
        ),
        over_scale(
            "tenth_hamming_distance",
            "Change in the activation patterns, with batch norm",
            "The same as in the first figure, with batch norm before every ReLU. There, α only sets the effective "
            "learning rate of the first layer.",
            "batch norm",
        ),
        over_scale(
            "tenth_kernel_distance",
            "Change in the kernel, with batch norm",
            "Kernel distance with batch norm when the training loss has fallen to a tenth.",
            "batch norm",
        ),
        over_scale(
            "tenth_parameter_distance",
            "Change in the parameters, without batch norm",
            "Distance of the parameters from their initial values when the training loss has fallen to a tenth.",
            "plain",
        ),
        over_scale(
            "tenth_test_loss",
            "Test loss, without batch norm",
            "Test loss when the training loss has fallen to a tenth.",
            "plain",
        ),
        Chart(
            "mean_time",
            over="loss_fraction",
            log="xy",
            members=plain | deepest,
            symbols={"relative_scale": "α"},
            title="Time to reach a loss",
            caption="Sum of the learning rates until the training loss has fallen to a fraction of its initial value, "
            "for the deepest network. This time depends on the overall size of the kernel, so the claims compare "
            "networks at equal loss instead.",
        ),
    ]


def meaning(study: KernelMovement, result: Comparison) -> str:
    """Summarise the movement of the deepest networks at both extreme relative scales."""
    found = result.observed.isel(depth=-1)

    def ends(name: str, kind: str) -> list[str]:
        return [rounded(found[f"tenth_{name}"].sel(network=kind)[place]) for place in (0, -1)]

    down, up = rounded(study.relative_scales[0]), rounded(study.relative_scales[-1])
    parts = []
    for kind, words in (("plain", "Without"), ("batch norm", "With")):
        kernel, patterns, moved = (
            ends(name, kind) for name in ("kernel_distance", "hamming_distance", "parameter_distance")
        )
        parts.append(
            f"{words} batch norm, the kernel distance was {kernel[0]} at α = {down} and {kernel[1]} at α = {up}; the "
            f"fraction of flipped activations was {patterns[0]} and {patterns[1]}; and the parameters had moved by "
            f"{moved[0]} and {moved[1]}."
        )
    return (
        f"ReLU networks with {study.depths[-1]} hidden layers were trained on the outputs of a ReLU teacher and "
        f"compared when their training loss had fallen to a tenth. {' '.join(parts)} In both cases, the relative scale "
        "is equivalent to learning rates of the layers: rescaled networks at one rate learn exactly like networks at "
        "α = 1 with matched rates. With batch norm, only the rate of the first layer changes, so the results with "
        "batch norm do not show that training is lazier or richer."
    )
