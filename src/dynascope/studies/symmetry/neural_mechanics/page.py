"""Figures and text of the study `neural-mechanics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.neural_mechanics.study import NeuralMechanics

__all__ = ["figures", "meaning"]

# Title and caption of the charges of each kind of symmetry.
_CHARGES = {
    "rescale": (
        "Charges of neurons and channels before a ReLU",
        "‖outgoing weights‖² − ‖incoming weights‖², one line for each neuron or channel. Gradient flow without weight "
        "decay conserves this difference.",
    ),
    "scale": (
        "Charges of channels before a normalisation",
        "‖kernel‖² of each channel. Gradient flow conserves it, steps of finite size increase it, and weight decay "
        "reduces it.",
    ),
    "translation": (
        "Charges of the last layer",
        "The sum over all outputs of the weights of each neuron, and the sum of the biases. Only weight decay changes "
        "it.",
    ),
}


def figures(study: NeuralMechanics, result: Comparison) -> list[Chart]:
    """The charges of each kind, the errors of both laws, the laws of wrong optimisers, and the loss."""
    options: Any = {"over": "step", "symbols": {"charge": ""}, "y_label": "charge"}
    return [
        *(
            Chart(
                "measured_charge",
                members={"charge": study.experiment.charges_of_kind(kind)},
                title=title,
                caption=f"{caption} The dashed lines show the continuous law.",
                **options,
            )
            for kind, (title, caption) in _CHARGES.items()
        ),
        Chart(
            ("continuous_error", "exact_error"),
            over="group",
            log="y",
            title="Errors of both laws in each layer",
            words=("continuous law", "discrete law"),
            y_label="error / motion",
            caption="Root mean square error of each law, relative to the root mean square motion of the charges. The "
            "continuous law is a first-order approximation in the learning rate. The discrete law is exact up to "
            "rounding.",
            points=True,
        ),
        Chart(
            "excess",
            over="group",
            log="y",
            title="Residuals of the laws of wrong optimisers",
            y_label="residual / rounding bound",
            caption="Largest residual of the discrete law when the momentum or the weight decay is 1 % too small, or "
            "the weight decay is decoupled. A value above 1 proves that this optimiser did not train the network.",
            points=True,
        ),
        Chart("loss", over="step", log="y", title="Training loss", caption="Cross-entropy of all training images."),
    ]


def meaning(study: NeuralMechanics, result: Comparison) -> str:
    """What moves the charges, and how well both laws predict the motion."""
    found = result.observed
    network = "VGG-16 network" if study.network == "vgg16" else "small convolutional network"
    return (
        f"SGD on minibatches of {study.batch_size} trains a {network} on {study.samples} images. The network has "
        "symmetries: for example, the outputs do not change if the kernel of a channel is scaled before its "
        "normalisation. Each symmetry defines charges, sums of squares or sums of weights, which gradient flow without "
        "weight decay conserves. Finite steps, momentum, weight decay and minibatches move the charges. The continuous "
        "law describes this motion as an oscillator, with friction from momentum and a restoring force from weight "
        f"decay. Its error, relative to the motion, is {percent(found['continuous_error'].min())} in the layer where "
        f"it is smallest and {percent(found['continuous_error'].max())} in the layer where it is largest. The discrete "
        "law is an identity for every step of the declared optimiser; its largest error is "
        f"{rounded(found['exact_error'].max())} of the motion. The charges also test this declaration. With a momentum "
        "or a weight decay that is 1 % too small, or with decoupled weight decay, the largest residual of the discrete "
        f"law is at least {rounded(found['excess'].min())} times the rounding bound in every layer. A factor above 1 "
        "rules such an optimiser out."
    )
