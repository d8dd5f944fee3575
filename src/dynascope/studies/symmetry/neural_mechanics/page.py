"""Figures and text of the study `neural-mechanics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynascope.results import Chart, Comparison
from dynascope.results.numbers import percent, rounded

if TYPE_CHECKING:
    from dynascope.studies.symmetry.neural_mechanics.study import NeuralMechanics

__all__ = ["figures", "meaning"]

# Title and caption of the figure for each kind of symmetry.
_CHARGES = {
    "rescale": (
        "Charges of neurons and channels before a ReLU",
        "‖outgoing weights‖² − ‖incoming weights‖² against the training step, one line per neuron or channel. Gradient "
        "flow without weight decay conserves this difference.",
    ),
    "scale": (
        "Charges of channels followed by a normalisation layer",
        "‖kernel‖² of each channel against the training step. Gradient flow conserves this squared norm, "
        "finite steps increase it, "
        "and weight decay reduces it.",
    ),
    "translation": (
        "Charges of the last layer",
        "For each neuron, the sum of its outgoing weights over all outputs, and the sum of the output biases, against "
        "the training step. Only weight decay changes these sums.",
    ),
}


def figures(study: NeuralMechanics, result: Comparison) -> list[Chart]:
    """The figures: charges of each kind, errors of both laws, residuals for wrong optimisers, and loss."""
    options: Any = {"over": "step", "symbols": {"charge": ""}, "y_label": "charge"}
    return [
        *(
            Chart(
                "measured_charge",
                members={"charge": study.experiment.charges_of_kind(kind)},
                title=title,
                caption=f"{caption} Dashed lines show the continuous law.",
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
            y_label="error / change in the charges",
            caption="Root mean square error of each law in each layer, relative to the root mean square change in the "
            "charges. The continuous law is a first-order approximation in the learning rate; the discrete law is "
            "exact up to rounding.",
            points=True,
        ),
        Chart(
            "excess",
            over="group",
            log="y",
            title="Residuals for wrong optimisers",
            y_label="residual / rounding bound",
            caption="Largest residual of the discrete law, relative to the rounding bound, evaluated with 1 % less "
            "momentum, 1 % less weight decay or decoupled weight decay. A value above 1 proves that the network was "
            "not trained by this optimiser.",
            points=True,
        ),
        Chart(
            "loss",
            over="step",
            log="y",
            title="Training loss",
            caption="Cross-entropy on all training images against the training step.",
        ),
    ]


def meaning(study: NeuralMechanics, result: Comparison) -> str:
    """Explain why the charges change, and how well both laws predict the change."""
    found = result.observed
    network = "VGG-16 network" if study.network == "vgg16" else "small convolutional network"
    return (
        f"A {network} is trained on {study.samples} images by SGD with minibatches of {study.batch_size}. Each of its "
        "symmetries, such as scaling a kernel followed by a normalisation layer, defines charges that gradient flow "
        "without weight decay conserves. Finite steps, momentum and weight decay change the charges; a continuous law "
        "describes this change as the motion of a damped oscillator, with an error of "
        f"{percent(found['continuous_error'].min())} to {percent(found['continuous_error'].max())} of the "
        "change, depending on the layer. The discrete law is an "
        f"identity for the declared optimiser, with an error of at most {rounded(found['exact_error'].max())} of the "
        "change. The charges also identify the optimiser: with 1 % less momentum, 1 % less weight decay or decoupled "
        f"weight decay, the residual of the discrete law is at least {rounded(found['excess'].min())} times the "
        "rounding bound in every layer. A factor above 1 rules out the wrong optimiser."
    )
